// SPDX-License-Identifier: MIT
// BREAKS: what a system call leaves alone: every general register but rax, rcx and r11, all vector, mask and x87
// registers, MXCSR, the flags; rcx is the next instruction's address, r11 the flags. For calls of every kind.
// BUILD: cc -O1
#include "check.h"

struct state {
	unsigned long gpr[16]; /* hardware order; rsp is not stored */
	unsigned long flags, next;
	unsigned mxcsr, fcw;
	unsigned char xmm[16][16], st0[16];
};

/* in: registers to load, the call's number in rax. out: what they are behind the call. */
void call_with(const struct state *in, struct state *out);
__asm__(".text\n"
	".globl call_with\n"
	".type call_with, @function\n"
	"call_with: .cfi_startproc\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rsi; push %rdi\n"
	".cfi_def_cfa_offset 72; .cfi_offset %rbx, -16; .cfi_offset %rbp, -24; .cfi_offset %r12, -32\n"
	".cfi_offset %r13, -40; .cfi_offset %r14, -48; .cfi_offset %r15, -56\n"
	"fldt 408(%rdi)\n"
	"ldmxcsr 144(%rdi)\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"movdqu 152+16*\\n(%rdi), %xmm\\n\n"
	".endr\n"
	"mov (%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
	"mov 40(%rdi), %rbp; mov 48(%rdi), %rsi; mov 64(%rdi), %r8; mov 72(%rdi), %r9\n"
	"mov 80(%rdi), %r10; mov 88(%rdi), %r11; mov 96(%rdi), %r12; mov 104(%rdi), %r13\n"
	"mov 112(%rdi), %r14; mov 120(%rdi), %r15\n"
	"push 128(%rdi); popf\n"
	"mov 56(%rdi), %rdi\n"
	"syscall\n"
	"1: push %rdi; pushf; mov 24(%rsp), %rdi\n" /* out */
	"pop 128(%rdi); pop 56(%rdi)\n"
	"mov %rax, (%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi); mov %rbx, 24(%rdi)\n"
	"mov %rbp, 40(%rdi); mov %rsi, 48(%rdi); mov %r8, 64(%rdi); mov %r9, 72(%rdi)\n"
	"mov %r10, 80(%rdi); mov %r11, 88(%rdi); mov %r12, 96(%rdi); mov %r13, 104(%rdi)\n"
	"mov %r14, 112(%rdi); mov %r15, 120(%rdi)\n"
	"lea 1b(%rip), %rax; mov %rax, 136(%rdi)\n"
	"stmxcsr 144(%rdi)\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"movdqu %xmm\\n, 152+16*\\n(%rdi)\n"
	".endr\n"
	"fstpt 408(%rdi)\n"
	"pushq $0x1f80; ldmxcsr (%rsp); pop %rax\n"
	"pop %rdi; pop %rsi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	".cfi_def_cfa_offset 8\n"
	"pushq $0x202; popf\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_with, . - call_with\n");

_Static_assert(__builtin_offsetof(struct state, mxcsr) == 144, "offsets in the assembly");
_Static_assert(__builtin_offsetof(struct state, xmm) == 152, "offsets in the assembly");
_Static_assert(__builtin_offsetof(struct state, st0) == 408, "offsets in the assembly");

static void fill(struct state *s, unsigned seed)
{
	unsigned char *p = (unsigned char *)s;

	for (size_t i = 0; i < sizeof(*s); i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = seed >> 24;
	}
	s->mxcsr = 0x1f80 | (seed >> 8 & 3) << 13 | 0x21;
	memcpy(s->st0, "\x00\x00\x00\x00\x00\x00\x00\xc9\x00\x40", 10);
	s->flags = 0x202 | (seed >> 4 & 0x8d5); /* CF PF AF ZF SF OF */
}

int main(void)
{
	static char buf[4096];
	static const struct {
		long nr, a, b, c, d, e, f, ret; /* ret: -1000 for whatever it is */
	} calls[] = {
		{ SYS_getpid, 11, 12, 13, 14, 15, 16, -1000 },
		{ SYS_close, 9999, 1, 2, 3, 4, 5, -EBADF },
		{ 9999, 1, 2, 3, 4, 5, 6, -ENOSYS }, /* no such call */
		{ SYS_write, -1, (long)buf, 10, 7, 8, 9, -EBADF },
		{ SYS_mmap, 0, 4096, 3, 0x22, -1, 0, -1000 },
		{ SYS_mprotect, 8, 4096, 3, 4, 5, 6, -EINVAL },
		{ SYS_rt_sigprocmask, 0, 0, 0, 8, 5, 6, 0 },
		{ SYS_rt_sigaction, 65, 0, 0, 8, 5, 6, -EINVAL },
		{ SYS_munmap, 8, 4096, 3, 4, 5, 6, -EINVAL },
		{ SYS_execve, 8, 0, 0, 4, 5, 6, -EFAULT },
		{ SYS_futex, (long)buf, 0 /* WAIT */, 5, 0, 5, 6, -EAGAIN },
		{ SYS_sched_yield, 1, 2, 3, 4, 5, 6, 0 },
		{ SYS_clone, 0x10000 /* THREAD without SIGHAND */, 0, 0, 0, 0, 6, -EINVAL },
		{ 435 /* clone3 */, 8, 1, 3, 4, 5, 6, -EINVAL },
		{ SYS_arch_prctl, 0x7777, 1, 3, 4, 5, 6, -EINVAL },
		{ 334 /* rseq */, 8, 1, 3, 4, 5, 6, -EINVAL },
	};
	static const int arg_reg[] = { 7, 6, 2, 10, 8, 9 };
	struct state in, out;
	unsigned bad = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const long *arg = &calls[i].a;

		fill(&in, i + 1);
		for (int k = 0; k < 6; k++)
			in.gpr[arg_reg[k]] = arg[k];
		in.gpr[0] = calls[i].nr;
		memset(&out, 0, sizeof(out));
		call_with(&in, &out);
		if (calls[i].ret != -1000 && (long)out.gpr[0] != calls[i].ret) {
			printf("call %ld: %ld\n", calls[i].nr, (long)out.gpr[0]);
			bad++;
		}
		for (int r = 1; r < 16; r++) {
			if (r == 4)
				continue;
			if (r == 1 ? out.gpr[1] != out.next : r == 11 ? out.gpr[11] != in.flags : out.gpr[r] != in.gpr[r]) {
				printf("call %ld: register %d: %lx\n", calls[i].nr, r, out.gpr[r]);
				bad++;
			}
		}
		if (out.flags != in.flags || out.mxcsr != in.mxcsr || memcmp(out.xmm, in.xmm, sizeof(in.xmm)) ||
		    memcmp(out.st0, in.st0, 10)) {
			printf("call %ld: flags %lx %lx or vector state\n", calls[i].nr, in.flags, out.flags);
			bad++;
		}
	}
	printf("sys_regs %zu %u\n", sizeof(calls) / sizeof(calls[0]), bad);
	return bad != 0;
}
