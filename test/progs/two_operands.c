// SPDX-License-Identifier: MIT
// BREAKS: instructions with two memory operands, or with one that is not written out: each access has its own
// address. push, pop and call of memory (on rsp, with an index, 16 and 32 bits), movs, cmps, movdir64b, xlat, leave.
// BUILD: cc -O2
#include <cpuid.h>
#include <stdio.h>

static unsigned char buf[512] __attribute__((aligned(64)));
static void *volatile fn;

__attribute__((noinline)) static void callee(void)
{
	__asm__ volatile("");
}

/* Below the red zone, so that the compiler's locals are safe. What pop writes is left of rsp after it. */
__attribute__((noinline)) static void stack(void)
{
	__asm__ volatile("lea -256(%%rsp), %%rsp\n\t"
			 "mov $2, %%ecx\n\t"
			 "push 8(%0)\n\t pop 16(%0)\n\t"
			 "push (%0,%%rcx,8)\n\t pop 8(%0,%%rcx,8)\n\t"
			 "push 8(%%rsp)\n\t pop 16(%%rsp)\n\t"
			 "push (%%rsp,%%rcx,8)\n\t pop 8(%%rsp,%%rcx,8)\n\t"
			 "pushw 8(%%rsp)\n\t popw 8(%%rsp)\n\t"
			 "pushw 8(%%rsp,%%rcx,8)\n\t popw 8(%%rsp,%%rcx,8)\n\t"
			 "lea 256(%%rsp), %%rsp"
			 : : "r"(buf) : "rcx", "memory", "cc");
	__asm__ volatile("lea -256(%%rsp), %%rsp\n\t"
			 "call *(%0)\n\t"
			 "xor %%ecx, %%ecx\n\t"
			 "call *(%0,%%rcx,8)\n\t"
			 "push %0\n\t mov %%rsp, %%rax\n\t"
			 "push (%0)\n\t call *(%%rsp)\n\t call *(%%rsp,%%rcx,8)\n\t pop %%rax\n\t pop %%rax\n\t"
			 "push %%rbp\n\t mov %%rsp, %%rbp\n\t sub $40, %%rsp\n\t leave\n\t"
			 "lea 256(%%rsp), %%rsp"
			 : : "r"(&fn) : "rax", "rcx", "memory", "cc");
}

/* a segment prefix is for the source alone; DF set and clear */
__attribute__((noinline)) static void strings(void)
{
	unsigned char *s = buf, *d = buf + 256;

	__asm__ volatile("movsb\n\t movsw\n\t movsl\n\t movsq\n\t cmpsb\n\t cmpsq\n\t lodsb\n\t lodsq\n\t scasb\n\t"
			 "stosb\n\t stosq\n\t std\n\t movsq\n\t cmpsl\n\t scasw\n\t stosw\n\t lodsl\n\t cld"
			 : "+S"(s), "+D"(d) : : "rax", "memory", "cc");
	__asm__ volatile("xor %%esi, %%esi\n\t movsb %%fs:(%%rsi), %%es:(%%rdi)\n\t"
			 "xor %%esi, %%esi\n\t cmpsb %%es:(%%rdi), %%fs:(%%rsi)\n\t"
			 "xor %%esi, %%esi\n\t lodsb %%fs:(%%rsi)"
			 : "+D"(d) : : "rax", "rsi", "memory", "cc");
	d[-1] = d[-2] = 5; /* what is at fs:0 differs from run to run */
	for (int i = 0; i < 256; i += 85)
		__asm__ volatile("xlatb" : "+a"(i) : "b"(buf) : "memory");
}

__attribute__((noinline)) static void direct(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c >> 28 & 1))
		return;
	__asm__ volatile("movdir64b (%0), %1\n\t"
			 "mov $64, %%ecx\n\t"
			 "movdir64b (%0,%%rcx), %2\n\t"
			 "push %1\n\t mov (%%rsp), %%rcx\n\t movdir64b 8(%0), %%rcx\n\t pop %%rcx"
			 : : "r"(buf), "r"(buf + 384), "r"(buf + 448) : "rcx", "memory");
	__asm__ volatile("mov %%r15, %%rcx\n\t mov %1, %%r15\n\t movdir64b 64(%0), %%r15\n\t"
			 "mov %0, %%r15\n\t movdir64b 64(%%r15), %1\n\t mov %%rcx, %%r15"
			 : : "r"(buf), "r"(buf + 384) : "rcx", "memory");
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 512; i++)
		buf[i] = i * 3;
	fn = callee;
	stack();
	strings();
	direct();
	for (int i = 0; i < 512; i++)
		sum = sum * 7 + buf[i];
	printf("two_operands %ld\n", sum);
	return 0;
}
