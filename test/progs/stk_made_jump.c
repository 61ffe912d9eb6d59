// SPDX-License-Identifier: MIT
// BREAKS: generated code that returns elsewhere than to whoever called it last, a second time from one call: its own setjmp and
// longjmp, which nobody can tell from other functions. What is known of a frame behind a call is so for the first time.
// PT_ENV: PTRACE_PT_RETC=0
// BUILD: cc -O2
// STOPS_TODAY: untraced code comes back twice from a call
#include "check.h"
#include "made.h"

// (buf): 0 now; what jump brings later
MADE(set, int (*)(void **),
     "mov (%rsp), %rax; mov %rax, (%rdi); lea 8(%rsp), %rax; mov %rax, 8(%rdi)\n"
     "mov %rbx, 16(%rdi); mov %rbp, 24(%rdi); mov %r12, 32(%rdi); mov %r13, 40(%rdi); mov %r14, 48(%rdi)\n"
     "mov %r15, 56(%rdi); xor %eax, %eax; ret");
MADE(jump, void (*)(void **, int),
     "mov %esi, %eax; mov 16(%rdi), %rbx; mov 24(%rdi), %rbp; mov 32(%rdi), %r12; mov 40(%rdi), %r13\n"
     "mov 48(%rdi), %r14; mov 56(%rdi), %r15; mov 8(%rdi), %rsp; jmp *(%rdi)");

static void *buf[8];
static unsigned char cells[1024];
static volatile int depth;

static unsigned __attribute__((noinline)) down(int n, unsigned char *p, void *volatile *b)
{
	unsigned s;

	if (!n) {
		jump((void **)b, depth);
		return 0;
	}
	s = down(n - 1, p + 3, b);
	return s + *p;
}

// The compiler must know that set comes back more than once; the analysis does not.
void *set_to __attribute__((visibility("hidden")));
int set_again(void **) __attribute__((returns_twice));
__asm__(".type set_again, @function\nset_again: .cfi_startproc\njmp *set_to(%rip)\n.cfi_endproc\n"
	".size set_again, . - set_again\n");

static unsigned __attribute__((noinline)) tries(unsigned char *volatile p)
{
	volatile int n = 0;
	volatile unsigned s = 0;
	int r = set_again(buf);

	s = s * 7 + p[r] + ++p[(r + n) % 100];
	if (++n < 9) {
		depth = n % 4 + 1;
		s += down(n % 5, p, buf);
	}
	return s;
}

int main(void)
{
	unsigned sum;

	CHECK(MAKE(set) && MAKE(jump));
	set_to = (void *)set;
	sum = tries(cells) * 31 + tries(cells + 200);
	printf("stk_made_jump %x\n", sum);
	return 0;
}
