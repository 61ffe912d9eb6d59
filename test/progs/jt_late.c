// SPDX-License-Identifier: MIT
// BREAKS: indirect jumps found in bytes that nothing was found to reach, after the jump tables of other functions were
// read: these must not be lost over it, and the late jumps, too, may go to any of those bytes.
// BUILD: cc -O2
// VARIANTS: clang
#include <stdio.h>

unsigned interp(void *const *table, const unsigned char *code);
extern const unsigned short handler_at[9];
#define GO "movzbl (%rsi), %ecx; inc %rsi; mov (%rbx,%rcx,8), %rcx; jmp *%rcx\n"
__asm__(".text\n"
	".type interp, @function\n"
	"interp: .cfi_startproc\n"
	"push %rbx; mov %rdi, %rbx; xor %eax, %eax\n" GO "10: add $5, %eax;" GO "11: shl $1, %eax;" GO
	"12: xor $0x33, %eax;" GO "13: rol $3, %eax;" GO "14: sub $7, %eax;" GO "15: not %eax;" GO
	"16: imul $3, %eax, %eax;" GO "17: ror $5, %eax;" GO "18: pop %rbx; ret\n"
	".cfi_endproc\n"
	".size interp, . - interp\n"
	".section .rodata\n"
	"handler_at: .word 10b - interp, 11b - interp, 12b - interp, 13b - interp, 14b - interp\n"
	".word 15b - interp, 16b - interp, 17b - interp, 18b - interp\n"
	".text\n");

#define SWITCH(name, k)                                                                                      \
	__attribute__((noinline)) static unsigned name(unsigned x, unsigned n)                               \
	{                                                                                                    \
		for (unsigned i = 0; i < n; i++)                                                             \
			switch ((x + i) % 8) {                                                               \
			case 0:                                                                              \
				x += k;                                                                      \
				break;                                                                       \
			case 1:                                                                              \
				x ^= 0x5 * k;                                                                \
				break;                                                                       \
			case 2:                                                                              \
				x = x << 3 | x >> 29;                                                        \
				break;                                                                       \
			case 3:                                                                              \
				x -= 77 + k;                                                                 \
				break;                                                                       \
			case 4:                                                                              \
				x *= 5;                                                                      \
				break;                                                                       \
			case 5:                                                                              \
				x = ~x;                                                                      \
				break;                                                                       \
			case 6:                                                                              \
				printf("%x\n", x);                                                           \
				break;                                                                       \
			default:                                                                             \
				x = x * 3 + i;                                                               \
				break;                                                                       \
			}                                                                                    \
		return x;                                                                                    \
	}
SWITCH(a, 3)
SWITCH(b, 11)
SWITCH(c, 19)
SWITCH(d, 23)

int main(void)
{
	static const unsigned char code[] = {0, 1, 2, 3, 5, 4, 6, 7, 1, 3, 0, 2, 7, 6, 5, 4, 1, 0, 8};
	unsigned (*volatile call)(void *const *, const unsigned char *) = interp;
	void *table[9];

	for (int i = 0; i < 9; i++)
		table[i] = (char *)interp + handler_at[i];
	printf("jt_late %x\n", call(table, code));
	printf("%x\n", a(1, 40) + b(2, 40) + c(3, 40) + d(4, 40));
	return 0;
}
