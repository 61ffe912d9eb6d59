// SPDX-License-Identifier: MIT
// BREAKS: generated code that switches stacks, and comes back to the same place on another one: the same function with
// other values in its frame and its callee-saved registers, as deep and not as deep, at once or by way of a traced function that
// it calls in between; frames that lie alike on their stacks.
// PT_ENV: PTRACE_PT_RETC=0
// BUILD: cc -O2
// VARIANTS: O0 clang
#include "check.h"
#include "made.h"

#define FIBERS 3
#define SIZE 65536

// (save, to, call): call() first, if there is one, then on at `to`
MADE(swap, void (*)(void **, void *, void (*)(void)),
     "push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
     "mov %rdi, %r12; mov %rsi, %r13; test %rdx, %rdx; jz 1f\n"
     "mov %rsp, %rbp; and $-16, %rsp; call *%rdx; mov %rbp, %rsp\n"
     "1: mov %rsp, (%r12); mov %r13, %rsp\n"
     "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret");

static void *sp[FIBERS + 1];
static unsigned char cells[FIBERS + 1][4096];
static volatile int current;
static unsigned sum, calls;

static void __attribute__((noinline)) between(void)
{
	calls += cells[current][calls & 63];
}

// What is used behind the switch is kept over it: in registers, and more than there are.
static unsigned __attribute__((noinline)) step(unsigned char *p, long from, long to, unsigned v, void (*call)(void))
{
	unsigned char *a = p + v % 7, *b = a + v % 11, *c = b + v % 13, *d = c + v % 17, *e = d + v % 19,
		      *f = e + v % 23, *g = f + v % 29;

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	__asm__ volatile("" : "+r"(f), "+r"(g));
	swap(&sp[from], sp[to], call);
	return ++*a + ++*b * 3 + ++*c * 5 + ++*d * 7 + ++*e * 11 + ++*f * 13 + ++*g * 17;
}

static unsigned __attribute__((noinline)) deep(int n, unsigned char *p, long from, long to, unsigned v,
					       void (*call)(void))
{
	volatile unsigned w = v;

	if (!n)
		return step(p, from, to, v, call);
	v = deep(n - 1, p + 1, from, to, v + 1, call);
	return v + p[w & 15];
}

static void body(void)
{
	int id = current;

	for (unsigned i = 0;; i++) {
		int to = (id + 1 + (int)(i % 3)) % (FIBERS + 1);

		current = to;
		sum = sum * 31 + deep(i / 8 % 4 * (unsigned)id, cells[id] + i * 4 % 512, id, to, i * 37 + id,
				      i & 1 ? between : NULL);
	}
}

int main(void)
{
	static _Alignas(SIZE) char stack[FIBERS][SIZE];

	CHECK(MAKE(swap));
	for (int i = 0; i < FIBERS; i++) {
		void **p = (void **)(stack[i] + SIZE);

		*--p = NULL;
		*--p = (void *)body;
		for (int k = 0; k < 6; k++)
			*--p = NULL;
		sp[i] = p;
	}
	for (unsigned i = 0; i < 60; i++) {
		int to = i % FIBERS;

		current = to;
		sum = sum * 31 + deep(i / 8 % 3, cells[FIBERS] + i * 4, FIBERS, to, i * 41, i % 5 ? NULL : between);
	}
	printf("stk_made_switch %x %u\n", sum, calls);
	return 0;
}
