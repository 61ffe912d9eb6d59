// SPDX-License-Identifier: MIT
// BREAKS: an interpreter whose handlers only a table filled at run time leads to, some by falling through from others (as
// LuaJIT's do): a patch over the one lies over where the other begins.
// BUILD: cc -O2
// UNTRACED: 55
#include <stdio.h>

unsigned interp(void *const *table, const unsigned char *code);
extern const unsigned short handler_at[5];
__asm__(".text\n"
	".type interp, @function\n"
	"interp: .cfi_startproc\n"
	"push %rbx; mov %rdi, %rbx; xor %eax, %eax\n"
	"movzbl (%rsi), %ecx; inc %rsi; jmp *(%rbx,%rcx,8)\n"
	"10: add $5, %eax\n"
	"11: shl $1, %eax; movzbl (%rsi), %ecx; inc %rsi; jmp *(%rbx,%rcx,8)\n"
	"12: xor $0x33, %eax\n"
	"13: rol $3, %eax; movzbl (%rsi), %ecx; inc %rsi; jmp *(%rbx,%rcx,8)\n"
	"14: pop %rbx; ret\n"
	".cfi_endproc\n"
	".size interp, . - interp\n"
	".section .rodata\n"
	"handler_at: .word 10b - interp, 11b - interp, 12b - interp, 13b - interp, 14b - interp\n"
	".text\n");

int main(void)
{
	static const unsigned char code[] = {0, 1, 2, 3, 1, 3, 0, 2, 1, 1, 3, 3, 0,
					     0, 2, 2, 1, 3, 0, 3, 1, 2, 0, 1, 3, 4};
	void *table[5];

	for (int i = 0; i < 5; i++)
		table[i] = (char *)interp + handler_at[i];
	printf("jt_hidden %x\n", interp(table, code));
	return 0;
}
