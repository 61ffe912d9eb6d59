/* SPDX-License-Identifier: MIT
 *
 * sim_exec.c - one thread, instruction for instruction
 *
 * A thread runs a block natively up to the int3 at its end; the branch there is done here, on its registers:
 *
 *	exec_resume: rip ─▶ branches, while there is nothing in front of them ─▶ a block: let it run
 *	exec_stopped: the block's instructions up to where it stopped have retired; tell the trace unit
 *
 * A signal or a fault stops it at the exact instruction. Code that changes, and everything under --step, is
 * single-stepped instead. Where the thread is in the kernel, the unit learns of user mode with the first instruction
 * that retires, so a signal before it leaves no TIP.PGE behind.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "emu.h"
#include "sim.h"
#include "sim_tasks.h"

#define SPINS                                                                                                \
	2000 /* instructions and branches done in a row before the thread is let run: it may have signals waiting */
#define FLAG_TF 0x100ull
#define KERNEL_CYCLES 500 /* an interrupt takes so long */

void (*sim_retired)(struct task *t, uint64_t ip);
uint64_t sim_irq, sim_seed = 1, sim_verified;

/* --- what retires ------------------------------------------------------------------------------- */

static void interrupt(struct task *t, uint64_t ip)
{
	if (!sim_irq)
		return;
	if (!t->until_irq) {
		t->until_irq = 1 + rnd(&sim_seed) % (2 * sim_irq);
		return;
	}
	if (--t->until_irq)
		return;
	pt_cpu_async_exit(t->cpu, ip);
	pt_cpu_tick(t->cpu, KERNEL_CYCLES);
	pt_cpu_user(t->cpu, ip);
}

/* False when it is not recorded any more. */
static bool retire(struct task *t, uint64_t ip)
{
	if (t->pmi)
		sim_hooks->pmi(t, ip);
	if (!t->cpu)
		return false;
	if (!t->cpu->in_user)
		pt_cpu_user(t->cpu, ip);
	else
		interrupt(t, ip);
	pt_cpu_between(t->cpu, ip);
	pt_cpu_tick(t->cpu, 1);
	if (sim_retired)
		sim_retired(t, ip);
	return true;
}

/* A branch has retired and control is at next. */
static void branch(struct task *t, const struct insn *in, bool taken, uint64_t next)
{
	if (!retire(t, in->ip))
		return;
	switch (in->kind) {
	case I_JCC:
	case I_LOOP:
		pt_cpu_jcc(t->cpu, taken);
		break;
	case I_CALL:
		if (in->target != in->ip + in->len)
			pt_cpu_call(t->cpu, in->ip + in->len, false, next);
		break;
	case I_ICALL:
		pt_cpu_call(t->cpu, in->ip + in->len, true, next);
		break;
	case I_IJMP:
		pt_cpu_jmp(t->cpu, next);
		break;
	case I_RET:
		pt_cpu_ret(t->cpu, next);
		break;
	case I_FAR: /* by way of the kernel */
		pt_cpu_sync_exit(t->cpu);
		break;
	default:
		break;
	}
}

/* Instructions of the block from t->run_ip on have retired, up to the one at ip. */
static void ran_to(struct task *t, const struct block *b, uint64_t ip)
{
	uint64_t at = b->start;

	for (uint32_t i = 0; i < b->n && at != ip; i++) {
		if (t->cpu)
			retire(t, at);
		at += b->len[i];
	}
	if (at != ip)
		fail("thread %d: stopped at %#lx, which is no instruction of the block at %#lx, %u "
		     "instructions in front of "
		     "%#lx (%d)",
		     t->pid, ip, b->start, b->n, b->end.ip, b->end.kind);
}

/* --- branches on a thread's registers ------------------------------------------------------------ */

static bool value(struct task *t, const struct operand *o, uint64_t *v, unsigned size)
{
	*v = 0;
	if (!o->mem)
		*v = *emu_gpr(&t->regs, o->reg);
	else if (!mem_read(t->pid, emu_address(&t->regs, o), v, size))
		return false;
	if (size == 4)
		*v = (uint32_t)*v;
	return true;
}

static bool loops(struct user_regs_struct *r, const struct insn *in)
{
	uint64_t mask = in->addr32 ? 0xffffffff : ~0ull, zf = r->eflags >> 6 & 1;

	if (in->sub == L_JCXZ)
		return !(r->rcx & mask);
	r->rcx = (r->rcx - 1) & mask;
	return (r->rcx & mask) && (in->sub == L_LOOP || zf == (in->sub == L_LOOPE));
}

static bool push(struct task *t, uint64_t v)
{
	if (!mem_write(t->pid, t->regs.rsp - 8, &v, 8))
		return false;
	t->regs.rsp -= 8;
	return true;
}

/* Do it. False when it has to be done natively (it faults, or the stack has to grow); nothing has changed then. */
static bool emulate(struct task *t, const struct insn *in, bool *taken, uint64_t *next)
{
	struct user_regs_struct *r = &t->regs;
	uint64_t behind = in->ip + in->len;

	*taken = true;
	*next = behind;
	if (in->odd)
		return false;
	switch (in->kind) {
	case I_JCC:
		*taken = emu_condition(in->sub, r->eflags);
		*next = *taken ? in->target : behind;
		break;
	case I_LOOP:
		*taken = loops(r, in);
		*next = *taken ? in->target : behind;
		break;
	case I_JMP:
		*next = in->target;
		break;
	case I_IJMP:
		if (!value(t, &in->op, next, 8))
			return false;
		break;
	case I_CALL:
		*next = in->target;
		if (!push(t, behind))
			return false;
		break;
	case I_ICALL:
		if (!value(t, &in->op, next, 8) || !push(t, behind))
			return false;
		break;
	case I_RET:
		if (!mem_read(t->pid, r->rsp, next, 8))
			return false;
		r->rsp += 8 + in->pop;
		break;
	case I_PTWRITE:
		break;
	default:
		return false;
	}
	/* a jump to where no code can be faults at the target; natively it does so at the jump when it is not canonical */
	if ((uint64_t)((int64_t)(*next << 16) >> 16) != *next)
		return false;
	r->rip = *next;
	t->dirty = true;
	return true;
}

/* --- going on ------------------------------------------------------------------------------------ */

static bool ptwrite(struct task *t, const struct insn *in)
{
	uint64_t v;

	if (!value(t, &in->op, &v, in->sub))
		return false;
	if (t->cpu && retire(t, in->ip))
		pt_cpu_ptwrite(t->cpu, in->ip, v, in->sub);
	return true;
}

/* False when it is not recorded: then it reads the processor's. */
static bool rdtsc(struct task *t, const struct insn *in)
{
	uint64_t now;

	if (!t->cpu || !retire(t, in->ip))
		return false;
	now = pt_cpu_tsc(t->cpu);
	t->regs.rax = (uint32_t)now;
	t->regs.rdx = now >> 32;
	return true;
}

/* never done natively */
static bool here(const struct insn *in)
{
	return in->kind == I_PTWRITE || in->kind == I_TSC || in->kind == I_XBEGIN;
}

/* Aborted at once, for no reason that eax tells */
static void transaction(struct task *t, const struct insn *in)
{
	if (t->cpu && retire(t, in->ip))
		pt_cpu_abort(t->cpu, in->ip, in->target);
	t->regs.rax = 0;
	t->regs.rip = in->target;
	t->dirty = true;
}

/* The branch at the block's end, if it can be done here. */
static bool at_end(struct task *t, const struct insn *in)
{
	uint64_t next;
	bool taken;

	if (in->kind == I_PTWRITE || in->kind == I_TSC) {
		if (in->kind == I_TSC ? !rdtsc(t, in) : !ptwrite(t, in))
			return false;
		t->regs.rip = in->ip + in->len;
		t->dirty = true;
		return true;
	}
	if (in->kind == I_XBEGIN) {
		transaction(t, in);
		return true;
	}
	if (code_step || !emulate(t, in, &taken, &next))
		return false;
	if (t->cpu)
		branch(t, in, taken, next);
	return true;
}

bool sim_verify;

static struct {
	pid_t pid; /* whose instruction it is; 0: nothing to be checked */
	struct emu e;
	struct user_regs_struct regs;
	struct emu_write write;
} would;

static void verify_begins(struct task *t, const struct insn *in)
{
	uint8_t bytes[15];

	would.pid = 0;
	if (!sim_verify || !mem_read(t->pid, in->ip, bytes, in->len) ||
	    !emu_decode(&would.e, in->ip, bytes, in->len))
		return;
	would.regs = t->regs;
	emu_write = (struct emu_write){.dry = true};
	if (emu_do(&would.e, t->pid, &would.regs))
		would.pid = t->pid;
	would.write = emu_write;
	emu_write.dry = false;
}

static void verify_ends(struct task *t)
{
	uint64_t flags = emu_flags(&would.e, &t->before), mask = would.e.op == E_NOP ? 0 : flags, v = 0;
	const struct emu_write *w = &would.write;

	if (would.pid != t->pid)
		return;
	would.pid = 0;
	would.regs.rip = t->regs.rip;
	if ((would.regs.eflags ^ t->regs.eflags) & mask)
		fail("verify: flags behind %#lx are %#llx, not %#llx", t->insn.ip, t->regs.eflags,
		     would.regs.eflags);
	for (unsigned i = 0; i < 16; i++)
		if (*emu_gpr(&would.regs, i) != *emu_gpr(&t->regs, i))
			fail("verify: register %u behind %#lx is %#lx, not %#lx", i, t->insn.ip,
			     *emu_gpr(&t->regs, i), *emu_gpr(&would.regs, i));
	if (w->made && (!mem_read(t->pid, w->addr, &v, w->size) || memcmp(&v, &w->value, w->size)))
		fail("verify: %#lx wrote %#lx to %#lx, not %#lx", t->insn.ip, v, w->addr, w->value);
	sim_verified++;
}

/* One instruction natively, with nothing of ours in the way. */
static int step(struct task *t, const struct insn *in)
{
	verify_begins(t, in);
	t->one = true;
	t->insn = *in;
	t->before = t->regs;
	if (mm_is_ours(t->mm, in->ip)) {
		sim_quiesce(t, true);
		mm_lift(t->mm, t->pid, in->ip);
		t->lifted = true;
	}
	if (in->exits) {
		/* a hypervisor that does its work may lose the trap behind it */
		sim_quiesce(t, true);
		if (!mem_poke(t->pid, in->ip + in->len, 0xcc, &t->under))
			fail("cannot put a breakpoint behind %#lx", in->ip);
		t->fenced = true;
		return PTRACE_SYSCALL;
	}
	return PTRACE_SINGLESTEP;
}

static int resume_free(struct task *t)
{
	struct insn in;

	if (t->restarts) /* it is not here that it goes on */
		return PTRACE_SYSCALL;
	if (!mm_is_ours(t->mm, t->regs.rip) || !mm_insn(t->mm, t->pid, t->regs.rip, &in) || at_end(t, &in))
		return PTRACE_SYSCALL;
	t->running = true;
	return step(t, &in);
}

/* Instructions of the block that are simple, up to the first that is not. */
static unsigned simple(struct task *t, const struct block *b)
{
	uint32_t i;

	/* loads and stores of a thread that is not alone are to be what its processor makes of them */
	if (code_step || !mm_alone(t->mm))
		return 0;
	for (i = 0; i < b->n && emu_do(&b->emu[i], t->pid, &t->regs); i++) {
		retire(t, t->regs.rip);
		t->regs.rip += b->len[i];
		t->dirty = true;
	}
	return i;
}

int exec_resume(struct task *t, bool as_is)
{
	t->own_int3 = false;
	if (!t->cpu)
		return resume_free(t);
	t->running = true;
	for (unsigned done = 0;; done++) {
		const struct block *b = mm_block(t->mm, t->pid, t->regs.rip);
		/* what comes out of the kernel first gets the signals that wait for it there */
		bool natively = as_is || !t->ahead || done >= SPINS;

		t->run_ip = t->regs.rip;
		if (b->n && !natively)
			done += simple(t, b);
		if (!t->cpu) { /* the unit has stopped on the way */
			t->running = false;
			return resume_free(t);
		}
		if (b->n && t->regs.rip == b->start)
			return PTRACE_SYSCALL;
		if (t->regs.rip != b->end.ip)
			continue; /* the rest of it */
		t->run_ip = t->regs.rip;
		if ((!natively || (b->watch && here(&b->end))) && at_end(t, &b->end))
			continue;
		if (b->end.kind == I_SYSCALL)
			return PTRACE_SYSCALL;
		if (natively && !b->watch)
			return PTRACE_SYSCALL; /* stops at our int3 at once */
		return step(t, &b->end);
	}
}

/* --- having stopped ------------------------------------------------------------------------------ */

static void unstep(struct task *t)
{
	if (t->fenced) {
		uint8_t mine;

		mem_poke(t->pid, t->insn.ip + t->insn.len, t->under, &mine);
		if (t->regs.rip == t->insn.ip + t->insn.len + 1) {
			t->regs.rip--;
			t->dirty = true;
		}
	}
	if (t->lifted)
		mm_put_back(t->mm, t->pid, t->insn.ip);
	if (t->lifted || t->fenced)
		sim_quiesce(t, false);
	t->lifted = t->fenced = false;
}

static bool is_pushf(struct task *t, uint64_t ip, unsigned len)
{
	uint8_t b[15];

	return mem_read(t->pid, ip, b, len) && b[len - 1] == 0x9c;
}

static bool is_branch(const struct insn *in)
{
	return in->kind != I_PLAIN && in->kind != I_BAD && in->kind != I_PTWRITE && in->kind != I_TSC;
}

/* The step's instruction has retired, if it has. */
static void stepped(struct task *t)
{
	const struct insn *in = &t->insn;
	uint64_t rip = t->regs.rip, behind = in->ip + in->len;
	struct insn next;

	if (!is_branch(in) && rip == in->ip)
		return; /* an iteration of a rep */
	if (is_branch(in)) {
		bool taken =
			in->kind == I_LOOP ? loops(&t->before, in) : emu_condition(in->sub, t->before.eflags);

		if (in->kind == I_JCC || in->kind == I_LOOP) {
			if (rip != (taken ? in->target : behind))
				fail("thread %d: the branch at %#lx went to %#lx", t->pid, in->ip, rip);
		}
		if (t->cpu)
			branch(t, in, taken, rip);
		return;
	}
	if (rip == behind)
		verify_ends(t);
	if (t->cpu)
		retire(t, in->ip);
	if (rip != behind) {
		/* mov ss delays the trap by an instruction, as may an instruction that a hypervisor does */
		if (!mm_insn(t->mm, t->pid, behind, &next) || next.kind != I_PLAIN ||
		    rip != behind + next.len)
			fail("thread %d: the trap behind %#lx was lost, now at %#lx", t->pid, in->ip, rip);
		if (t->cpu)
			retire(t, behind);
	}
	if (is_pushf(t, in->ip, in->len)) {
		uint64_t fl;

		if (mem_read(t->pid, t->regs.rsp, &fl, 8)) {
			fl &= ~FLAG_TF;
			mem_write(t->pid, t->regs.rsp, &fl, 8);
		}
	}
}

/* The kernel has aborted a restartable sequence on the way (rseq(2)). Where in it is not known: at its beginning, as far as its
 * stores tell, or where the thread was resumed in it. */
static bool aborted(struct task *t, enum stop_kind kind)
{
	bool trap = mm_is_ours(t->mm, t->regs.rip - 1);
	uint64_t rip = trap ? t->regs.rip - 1 : t->regs.rip, at = 0, from;
	const struct block *b = mm_block(t->mm, t->pid, t->run_ip);

	if (!t->rseq || rip == b->end.ip || !mm_aborts(t->mm, rip, &at))
		return false;
	from = !t->one && at > t->run_ip && at <= b->end.ip ? at : t->run_ip;
	if (!t->one)
		ran_to(t, b, from);
	t->regs.rip = rip;
	t->dirty |= trap;
	t->stale_trap |= trap && kind != STOP_TRAP;
	if (t->cpu && t->cpu->in_user)
		pt_cpu_async_exit(t->cpu, from);
	return true;
}

/* Does it run a restartable sequence? The kernel clears the pointer when it lets it go on outside of it. */
static void sequence(struct task *t)
{
	uint64_t cs, at;
	struct { /* linux/rseq.h */
		uint32_t version, flags;
		uint64_t start, length, abort;
	} c;

	if (!t->rseq || !mem_read(t->pid, t->rseq + 8 /* rseq_cs */, &cs, sizeof(cs)) || !cs ||
	    !mem_read(t->pid, cs, &c, sizeof(c)) || mm_aborts(t->mm, c.abort, &at))
		return;
	sim_quiesce(t, true);
	mm_sequence(t->mm, t->pid, c.start, c.abort);
	sim_quiesce(t, false);
}

static void stopped_step(struct task *t, enum stop_kind kind)
{
	bool fenced = t->fenced;

	unstep(t);
	if (aborted(t, kind))
		return;
	if (kind == STOP_TRAP) {
		stepped(t);
	} else if (t->insn.kind == I_INT3) {
		t->own_int3 = t->regs.rip != t->insn.ip;
	} else if (t->regs.rip != t->insn.ip) {
		stepped(t); /* and something else is told first: the trap is yet to come */
		t->stale_trap = true;
	} else if (kind == STOP_ENTRY || (fenced && t->regs.rip != t->insn.ip)) {
		fail("thread %d: an instruction at %#lx became a system call", t->pid, t->insn.ip);
	}
}

static void stopped_block(struct task *t, enum stop_kind kind)
{
	const struct block *b = mm_block(t->mm, t->pid, t->run_ip);
	uint64_t rip = t->regs.rip;

	if (aborted(t, kind))
		return;
	switch (kind) {
	case STOP_TRAP:
		if (rip - 1 != b->end.ip)
			fail("thread %d: trapped at %#lx on the way from %#lx to %#lx", t->pid, rip, b->start,
			     b->end.ip);
		ran_to(t, b, b->end.ip);
		t->regs.rip = b->end.ip;
		t->dirty = true;
		break;
	case STOP_ENTRY:
		if (t->restarts && rip == t->run_ip) {
			/* the kernel moved rip back to do the call once more */
			if (t->cpu)
				retire(t, rip - 2);
		} else {
			ran_to(t, b, rip - 2);
			if (t->cpu)
				retire(t, rip - 2);
		}
		if (t->cpu)
			pt_cpu_sync_exit(t->cpu);
		break;
	case STOP_SIGTRAP:
		if (b->end.kind == I_INT3 && rip == b->end.ip + 1) {
			ran_to(t, b, b->end.ip);
			t->own_int3 = true;
			break;
		}
		/* fall through */
	case STOP_SIGNAL:
	case STOP_FAULT:
		if (rip - 1 == b->end.ip && mm_is_ours(t->mm, rip - 1)) {
			/* at our int3, but something else is told first: the trap is yet to come */
			ran_to(t, b, b->end.ip);
			t->regs.rip = b->end.ip;
			t->dirty = t->stale_trap = true;
			break;
		}
		if (b->end.kind == I_SYSCALL && rip == b->end.ip + b->end.len) {
			/* killed at its entry */
			ran_to(t, b, b->end.ip);
			if (t->cpu && retire(t, b->end.ip))
				pt_cpu_sync_exit(t->cpu);
			break;
		}
		if (!(t->restarts && rip == t->run_ip - 2))
			ran_to(t, b, rip);
		break;
	}
}

enum stop_kind exec_trap_kind(struct task *t)
{
	uint64_t rip = t->regs.rip;
	siginfo_t si;
	uint8_t byte;

	if (ptrace(PTRACE_GETSIGINFO, t->pid, 0, &si) < 0 || si.si_code <= 0)
		return STOP_SIGTRAP;
	if (t->stale_trap) {
		t->stale_trap = false;
		return STOP_SIGNAL;
	}
	if (t->running && t->one && t->fenced)
		return STOP_TRAP;
	if (t->running && t->one)
		return t->insn.kind == I_INT3 ? STOP_SIGTRAP : STOP_TRAP;
	/* ours, or it was till another thread changed that code */
	if (mm_is_ours(t->mm, rip - 1) || (mem_read(t->pid, rip - 1, &byte, 1) && byte != 0xcc))
		return STOP_TRAP;
	return STOP_SIGTRAP;
}

void exec_stopped(struct task *t, enum stop_kind kind)
{
	t->ahead = kind == STOP_TRAP;
	if (!t->running) {
		t->restarts &= kind == STOP_SIGNAL;
		if (kind == STOP_TRAP) { /* a thread without an event, at an int3 of ours */
			t->regs.rip--;
			t->dirty = true;
		}
		return;
	}
	if (t->one)
		stopped_step(t, kind);
	else
		stopped_block(t, kind);
	t->running = t->one = false;
	sequence(t);
	/* what stops it before it has left the kernel comes before the call is made once more */
	t->restarts &= kind == STOP_SIGNAL && t->regs.rip == t->run_ip;
	if (!t->cpu || kind == STOP_TRAP || kind == STOP_ENTRY)
		return;
	/* what faults does so in user mode, even as the first instruction there */
	if (!t->cpu->in_user && (kind == STOP_FAULT || t->own_int3))
		pt_cpu_user(t->cpu, t->own_int3 ? t->regs.rip - 1 : t->regs.rip);
	if (!t->cpu->in_user)
		return;
	/* the FUP of an int3 names it (SDM, FUP packet: software interrupts) */
	pt_cpu_async_exit(t->cpu, t->own_int3 ? t->regs.rip - 1 : t->regs.rip);
}
