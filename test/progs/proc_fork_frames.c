// SPDX-License-Identifier: MIT
// BREAKS: a fork, or a first thread, below callers that no unwind table tells, or one that lies: what their registers hold is
// used as addresses when they go on. On the program's stack, in a handler that returns, one that jumps out, one on a
// stack of its own, one of a fault, and in a fiber; parent and child. Each in an image of its own: a recording for a replay
// ends there.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
// VARIANTS: O0 clang
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

typedef unsigned long word;

/* word bare(word *t, word (*next)(void)): t and its neighbours in all registers that a callee saves, across next */
#define KEEPS(name, table, end)                                                                              \
	__asm__(".text\n.type " name ", @function\n" name ": " table "\n"                                    \
		"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; sub $8, %rsp\n"           \
		"mov %rdi, %rbx; lea 64(%rdi), %rbp; lea 128(%rdi), %r12; lea 192(%rdi), %r13\n"             \
		"lea 256(%rdi), %r14; lea 320(%rdi), %r15\n"                                                 \
		"call *%rsi\n"                                                                               \
		"add (%rbx), %rax; add (%rbp), %rax; add (%r12), %rax; add (%r13), %rax\n"                   \
		"add (%r14), %rax; add (%r15), %rax; mov %rax, 8(%rbx)\n"                                    \
		"add $8, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"                 \
		"ret\n" end "\n.size " name ", . - " name "\n")
KEEPS("bare", "", "");
KEEPS("lying", ".cfi_startproc", ".cfi_endproc");
word bare(word *t, word (*next)(void));
word lying(word *t, word (*next)(void));

/* as in fiber.c */
void fiber_switch(void **save, void *to);
__asm__(".text\n"
	".type fiber_switch, @function\n"
	"fiber_switch:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"mov %rsp, (%rdi); mov %rsi, %rsp\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"ret\n"
	".size fiber_switch, . - fiber_switch\n");

static word table[8][64];
static int mode, child;
static sigjmp_buf out;
static word *volatile page;
static void *main_sp, *fiber_sp;
static _Alignas(16) char stack[65536];

static word split(void)
{
	int st;
	pid_t pid = fork();

	if (!pid)
		child = 1; /* goes on, too, up to main */
	else
		CHECK(pid > 0 && waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 3);
	return 1;
}

static void *run(void *arg)
{
	return (void *)((word)arg * 3);
}

static word thread(void)
{
	pthread_t t;
	void *r;

	CHECK(!pthread_create(&t, NULL, run, (void *)7) && !pthread_join(t, &r));
	return (word)r;
}

static word __attribute__((noinline)) below(void)
{
	return bare(table[4], split) + lying(table[5], split);
}

static void handler(int sig, siginfo_t *si, void *uc)
{
	(void)si;
	(void)uc;
	table[6][0] += lying(table[6], below);
	if (sig == SIGSEGV)
		CHECK(!mprotect(page, 4096, PROT_READ | PROT_WRITE));
	if (mode == 3)
		siglongjmp(out, 1);
}

static word by_signal(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | (mode == 4 ? SA_ONSTACK : 0) };
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };

	CHECK(!sigaltstack(&ss, NULL) && !sigaction(SIGUSR1, &sa, NULL) && !sigaction(SIGSEGV, &sa, NULL));
	if (mode == 5) {
		page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(page != MAP_FAILED);
		page[3] += 5; /* comes twice to its load */
		return page[3];
	}
	if (!sigsetjmp(out, 1))
		raise(SIGUSR1);
	return 9;
}

static void fiber(void)
{
	for (;;) {
		table[7][1] += bare(table[7], split);
		fiber_switch(&fiber_sp, main_sp);
	}
}

static word by_fiber(void)
{
	void **sp = (void **)(stack + sizeof(stack));

	*--sp = 0;
	*--sp = (void *)fiber;
	fiber_sp = sp - 6;
	fiber_switch(&main_sp, fiber_sp);
	fiber_switch(&main_sp, fiber_sp);
	return table[7][1];
}

static word leaf(void)
{
	static word (*const how[])(void) = { split, thread, by_signal, by_signal, by_signal, by_signal, by_fiber };

	return how[mode]();
}

static word __attribute__((noinline)) middle(void)
{
	word *t = table[2], s = lying(t, leaf);

	return s + t[1];
}

int main(int argc, char **argv)
{
	word s = argc > 2 ? strtoul(argv[2], NULL, 16) : 1;
	char num[16], sum[20];

	mode = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < 512; i++)
		table[i / 64][i % 64] = (word)i * 0x9e3779b97f4a7c15ul;
	s = s * 31 + bare(table[1], middle) + work(mode, 20);
	for (int i = 0; i < 512; i++)
		s = s * 31 + table[i / 64][i % 64];
	if (child)
		_exit(3);
	snprintf(num, sizeof(num), "%d", mode + 1);
	snprintf(sum, sizeof(sum), "%lx", s);
	if (mode < 6)
		execl("/proc/self/exe", argv[0], num, sum, (char *)NULL);
	printf("proc_fork_frames %lx\n", s);
	return 0;
}
