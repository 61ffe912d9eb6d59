// SPDX-License-Identifier: MIT
// BREAKS: operand sizes that are not what one expects: the 16-bit x87 environment (14 and 94 bytes), push
// and pop of fs and gs, 16-bit pushes, enter's last push, movdir64b.
// BUILD: cc -O2
#include <cpuid.h>
#include <stdio.h>

static unsigned char buf[256] __attribute__((aligned(64)));

__attribute__((noinline)) static void x87(void)
{
	__asm__ volatile("fld1\n\tfnstenv %0\n\tfldenv %0" : "+m"(*(char(*)[28])buf));
	__asm__ volatile(".byte 0x66\n\tfnstenv %0\n\t.byte 0x66\n\tfldenv %0" : "+m"(*(char(*)[14])buf));
	__asm__ volatile("fnsave %0\n\tfrstor %0" : "+m"(*(char(*)[108])buf));
	__asm__ volatile(".byte 0x66\n\tfnsave %0\n\t.byte 0x66\n\tfrstor %0" : "+m"(*(char(*)[94])buf));
	__asm__ volatile("fninit");
}

/* Below the red zone, so that the compiler's locals are safe. */
__attribute__((noinline)) static void stack(void)
{
	__asm__ volatile("lea -256(%%rsp), %%rsp\n\t"
			 "push %%fs\n\tpop %%rax\n\tpush %%gs\n\tpop %%rax\n\t"
			 ".byte 0x66; push %%fs\n\tpopw %%ax\n\t"
			 "pushw $7\n\tpopw %%ax\n\tpushw %%ax\n\tpopw %%ax\n\t"
			 "pushfw\n\tpopw %%ax\n\tpush $-1\n\tpop %%rax\n\t"
			 "push %%rbp\n\tmov %%rsp, %%rbp\n\tsub $16, %%rsp\n\t"
			 "enter $24, $2\n\tmov %%rax, -8(%%rbp)\n\tleave\n\tleave\n\t"
			 "lea 256(%%rsp), %%rsp" : : : "rax", "memory", "cc");
}

__attribute__((noinline)) static void direct(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c >> 28 & 1))
		return;
	__asm__ volatile("movdir64b (%0), %1" : : "r"(buf), "r"(buf + 64) : "memory");
	__asm__ volatile("movdir64b %%fs:0, %0" : : "r"(buf + 128) : "memory");
	for (int i = 128; i < 192; i++)
		buf[i] = 3; /* what is at fs:0 differs from run to run */
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 256; i++)
		buf[i] = i;
	stack();
	direct();
	x87();
	for (int i = 128; i < 256; i++)
		sum = sum * 7 + buf[i];
	printf("odd_sizes %ld\n", sum);
	return 0;
}
