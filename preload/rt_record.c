/* SPDX-License-Identifier: MIT
 *
 * rt_record.c - recording for a replay (PTRACE_CF=replay): what the kernel says, and nothing else
 *
 *   rt_syscall ─▶ rt_record_before() ─▶ the call, with the program's own mask ─▶ finish ─▶ rt_record_call()
 *                        │                                                         │
 *                        └── a thread, a process ──▶ rt_switch.c ◀── not replayable ┘
 *
 * The program runs in its original text but for the functions with system calls in them (MAP_F_SPARSE). What those
 * copies log is nobody's business: the record stream (include/run_rec.h) is in the same chunk, up to
 * ring_thread.rec, and begins to be written there again whatever has been scribbled behind it.
 *
 * Three things that the kernel does unasked are taken out of the way at the start: the clock that the
 * vDSO reads from memory (its functions become system calls), the processor number in the rseq area
 * (unregistered), and the break (said once).
 */
#include <cpuid.h>
#include "rt.h"
#include "rt_sysout.h"

static struct out_range out[RT_SYSOUT_MAX];

/* ---- the stream ---- */

void rt_record_put(struct rt_tcb *t, const void *p, uint64_t n)
{
	static const uint8_t zero[8];

	t->t.lp = t->th.rec;
	rt_log(t, p, n);
	if (n % 8)
		rt_log(t, zero, 8 - n % 8);
}

void rt_record_end(struct rt_tcb *t, uint32_t why, uint32_t value, uint64_t rip)
{
	struct rec_end e = {{REC_END, sizeof(e)}, why, value, rip};

	rt_recfile_end(t);
	rt_record_put(t, &e, sizeof(e));
}

static void put_call(struct rt_tcb *t, long r, int n)
{
	struct rec_call c = {{REC_CALL, sizeof(c)},
			     (uint32_t)t->sv.nr,
			     (uint32_t)n,
			     r,
			     t->t.target,
			     {0},
			     t->called,
			     rt_tsc(),
			     t->sv.gpr[R11]};

	rt_args(t, c.arg);
	for (int i = 0; i < n; i++)
		c.head.size += sizeof(struct rec_out) + rec_padded(out[i].len);
	rt_record_put(t, &c, sizeof(c));
	for (int i = 0; i < n; i++) {
		rt_record_put(t, &out[i], sizeof(out[i]));
		rt_record_put(t, (void *)out[i].addr, out[i].len);
	}
	t->th.calling = 0; /* killed from here on, it was so while it computed */
}

/* ---- memory ---- */

/* Pages that the kernel takes when it likes (MADV_FREE) it takes at once. What is dropped of a file comes from there again,
 * which the replay does not have: false */
static bool can_drop(const struct rt_tcb *t, long r)
{
	const uint64_t *g = t->sv.gpr;

	if (rt_err(r) || (g[RDX] != MADV_DONTNEED && g[RDX] != 8 /* MADV_FREE */ &&
			  g[RDX] != 24 /* MADV_DONTNEED_LOCKED */))
		return true;
	if (g[RDX] == 8)
		rt_sc(__NR_madvise, g[RDI], g[RSI], MADV_DONTNEED);
	return !rt_mod_at(g[RDI]) && !rt_recfile_at(g[RDI], g[RSI]);
}

/* a change of the address space: NULL if the replay makes it, too, or why it cannot */
static const char *cannot_repeat(struct rt_tcb *t, long r)
{
	switch (t->sv.nr) {
	case __NR_mmap:
		return rt_recfile_map(t, r);
	case __NR_madvise:
		return can_drop(t, r) ? NULL : "it dropped pages of a file";
	case __NR_mremap:
		return rt_err(r) || !rt_recfile_at(t->sv.gpr[RDI], t->sv.gpr[RSI])
			       ? NULL
			       : "it moved what it had mapped of a file";
	case __NR_munmap:
		if (!rt_err(r))
			rt_recfile_unmap(t, t->sv.gpr[RDI], t->sv.gpr[RSI]);
		return NULL;
	case __NR_mprotect:
	case __NR_pkey_mprotect:
	case __NR_brk:
		return NULL;
	}
	/* shmdt, remap_file_pages, process_madvise */
	return rt_err(r) ? NULL : "it changed its memory in a way that cannot be repeated";
}

/* ---- calls ---- */

/* RT_DO_*, or -1: the call is one of those that rt_syscall() treats itself */
int rt_record_before(struct rt_tcb *t)
{
	uint64_t arg[6];
	const char *why;
	long r;

	t->t.lp = t->lp0 = t->th.rec;
	t->called = rt_tsc();
	rt_args(t, arg);
	why = rt_full_before(t, arg);
	if (why)
		return rt_switch_here(t, t->t.target - 2, why);
	rt_sysin((long)t->sv.nr, arg, &t->before);
	if (t->sv.nr == __NR_exit || t->sv.nr == __NR_exit_group)
		rt_record_end(t, REC_EXIT, (uint32_t)arg[0], t->t.target);
	if (t->sv.nr == __NR_execve || t->sv.nr == __NR_execveat)
		rt_record_end(t, REC_EXEC, 0, t->t.target);
	if (rt_clock(t, arg, &r)) {
		rt_result(t, t->sv.gpr, (uint64_t)r);
		return rt_record_call(t, r);
	}
	return t->sv.nr < RT_NSYS && rt_special[t->sv.nr] ? -1 : RT_DO_REAL;
}

/* After a call, its registers set. RT_DO_* */
int rt_record_call(struct rt_tcb *t, long r)
{
	uint64_t arg[6];
	const char *why = NULL;
	int n = 0, class;

	rt_args(t, arg);
	class = rt_sysout((long)t->sv.nr, arg, r, &t->before, out, RT_SYSOUT_MAX, &n);
	rt_clock_called(t, r, class);
	if (class == OUT_STOP)
		why = "a system call of which nobody knows what it wrote";
	else if (rt.blind)
		why = "it loaded a module whose system calls would not be seen";
	else if (class == OUT_MAP)
		why = cannot_repeat(t, r);
	else if (rt_recfile_written(t, r))
		why = "it may write to a file that it has mapped";
	if (why)
		return rt_switch_here(t, t->t.target, why);
	if (t->sv.nr == __NR_sigaltstack && !r && arg[0])
		rt_hold_stack(t, (const void *)arg[0]);
	put_call(t, r, n);
	t->sv.gpr[R15] = t->t.lp = t->th.rec;
	return RT_DO_FINISH;
}

/* by default; the others are ignored, or stop it */
static bool kills(int sig)
{
	return sig != 17 && sig != 18 && sig != 23 && sig != 28 &&
	       !(sig >= 19 && sig <= 22); /* CHLD CONT URG WINCH; STOP … */
}

/* A handler is about to return. What waits for the mask that was in force comes before the first instruction there, and may be
 * the end. */
void rt_record_sigreturn(struct rt_tcb *t, const uint64_t *uc)
{
	uint64_t waiting = 0, mask = uc[UC_SIGMASK / 8];
	int last = 0;

	rt_hold_stack(t, &uc[UC_STACK / 8]);
	put_call(t, 0, 0);
	rt_sc(__NR_rt_sigpending, &waiting, sizeof(waiting));
	for (int sig = 1; sig <= 64; sig++) {
		const struct rt_sigview *v = &t->sig[sig];

		if (!((waiting & ~mask) >> (sig - 1) & 1))
			continue;
		if (v->act.handler > 1)
			t->at_once = 1;
		else if (!v->act.handler && !v->ours && kills(sig))
			last = sig;
	}
	if (last && !t->at_once)
		rt_record_end(t, REC_KILLED, (uint32_t)last, t->t.target);
}

/* A handler is about to be entered for a signal that somebody sent. */
void rt_record_signal(struct rt_tcb *t, int sig, const void *info, uint32_t when)
{
	struct rec_signal s = {{REC_SIGNAL, sizeof(s)}, (uint32_t)sig, when, {0}};

	memcpy(s.info, info, sizeof(s.info));
	rt_record_put(t, &s, sizeof(s));
}

#define RSEQ_NR 334
#define RSEQ_SIZE 32

static uint64_t rseq; /* where its area was */

/* ---- the place of a signal that came while the program computed ---- */

/* The kernel's struct _fpx_sw_bytes in an FXSAVE area, where software may keep what it likes
 * (arch/x86/include/uapi/asm/sigcontext.h): how much of an XSAVE area there is */
struct fp_extent {
	uint32_t magic, all;
	uint64_t features;
	uint32_t xstate;
};
#define FP_EXTENT 464
#define FP_EXTENT_MAGIC 0x46505853u
#define FP_LEGACY 512

/* of the frame's vector registers to area; where the frame ends */
static uint64_t take_vectors(const uint64_t *uc, uint8_t *area, size_t max)
{
	const uint8_t *fp = (const void *)uc[UC_FPREGS / 8];
	struct fp_extent x;

	if (!fp)
		return (uint64_t)uc + UC_SIZE + sizeof(((struct rec_signal *)0)->info);
	memcpy(&x, fp + FP_EXTENT, sizeof(x));
	if (x.magic != FP_EXTENT_MAGIC || x.xstate < FP_LEGACY || x.all < x.xstate) {
		memcpy(area, fp, FP_LEGACY);
		area[FP_LEGACY] = 3; /* XSTATE_BV: x87, SSE (SDM Vol. 1, 13.4.2) */
		return (uint64_t)fp + FP_LEGACY;
	}
	memcpy(area, fp, x.xstate < max ? x.xstate : max);
	return (uint64_t)fp + x.all;
}

/* uc: of a signal, with the program's registers in it */
void rt_record_place(struct rt_tcb *t, const uint64_t *uc)
{
	static struct rec_place p;
	const struct rt_module *self = rt_mod_at((uint64_t)rt_text_lo);

	memset(&p, 0, sizeof(p));
	p.head = (struct rec_head){REC_PLACE, sizeof(p)};
	p.rip = uc[UC_RIP / 8];
	p.rflags = uc[UC_EFLAGS / 8];
	for (int i = 0; i < 16; i++)
		p.gpr[i] = uc[rt_uc_word[i]];
	p.skip[0].lo = (uint64_t)uc - 8; /* the return address */
	p.skip[0].hi = take_vectors(uc, p.area, sizeof(p.area));
	if (self) {
		p.skip[1].lo = self->lo;
		p.skip[1].hi = self->hi;
	}
	if (rseq) {
		p.skip[2].lo = rseq;
		p.skip[2].hi = rseq + RSEQ_SIZE;
	}
	p.nsec = rt_cpu_nsec();
	rt_record_put(t, &p, sizeof(p));
}

/* ---- instructions (tcb.what) ---- */

static void execute(uint32_t kind, uint64_t *g, uint32_t *carry)
{
	uint32_t a, b, c, d;
	uint64_t v = 0;
	uint8_t ok = 1;

	switch (kind) {
	case NONDET_RDTSC:
		__asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
		g[RAX] = a;
		g[RDX] = d;
		break;
	case NONDET_RDTSCP:
		__asm__ volatile("rdtscp" : "=a"(a), "=d"(d), "=c"(c));
		g[RAX] = a;
		g[RDX] = d;
		g[RCX] = c;
		break;
	case NONDET_CPUID:
		__asm__ volatile("cpuid"
				 : "=a"(a), "=b"(b), "=c"(c), "=d"(d)
				 : "a"((uint32_t)g[RAX]), "c"((uint32_t)g[RCX]));
		g[RAX] = a;
		g[RBX] = b;
		g[RCX] = c;
		g[RDX] = d;
		break;
	case NONDET_XGETBV:
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"((uint32_t)g[RCX]));
		g[RAX] = a;
		g[RDX] = d;
		break;
	case NONDET_RDRAND:
	case NONDET_RDSEED:
		if (kind == NONDET_RDRAND)
			__asm__ volatile("rdrand %0; setc %1" : "=r"(v), "=qm"(ok) : : "cc");
		else
			__asm__ volatile("rdseed %0; setc %1" : "=r"(v), "=qm"(ok) : : "cc");
		*carry = ok; /* the other flags are cleared: SDM Vol. 2, RDRAND */
		g[0] = v;
		break;
	case NONDET_RDPID:
		__asm__ volatile("rdtscp" : "=a"(a), "=d"(d), "=c"(c)); /* IA32_TSC_AUX, too */
		g[0] = c;
		break;
	}
}

static void set_random(struct rt_tcb *t, uint64_t v, uint32_t reg, uint32_t size, uint32_t carry)
{
	uint64_t *to = &t->sv.gpr[reg];

	*to = size == 2 ? (*to & ~0xffffull) | (v & 0xffff) : size == 4 ? (uint32_t)v : v;
	t->sv.flags = carry << 8; /* lahf form: CF is bit 0 of AH */
}

void rt_nondet(struct rt_tcb *t)
{
	uint32_t what = (uint32_t)t->t.what, kind = what & 0xff, reg = what >> 8 & 0xff,
		 size = what >> 16 & 0xff;
	struct rec_nondet n = {{REC_NONDET, sizeof(n)}, what, 0, t->t.target, {0}};
	uint64_t g[16];

	t->t.what = 0;
	memcpy(g, t->sv.gpr, sizeof(g));
	if (rt.how == RT_REPLAY) {
		const struct rec_nondet *r = rt_replay_nondet(t, what);

		memcpy(n.value, r->value, sizeof(n.value));
		n.flags = r->flags;
	} else {
		execute(kind, g, &n.flags);
		memcpy(n.value, g, sizeof(n.value)); /* rax rcx rdx rbx */
	}
	if (rt.how == RT_RECORD)
		rt_record_put(t, &n, sizeof(n));
	if (kind >= NONDET_RDRAND && kind != NONDET_RDPID)
		set_random(t, n.value[0], reg, size, n.flags);
	else if (kind == NONDET_RDPID)
		t->sv.gpr[reg] = n.value[0];
	else
		memcpy(t->sv.gpr, n.value, sizeof(n.value));
}

/* about to begin a transaction: what becomes of it is logged in full */
int rt_transaction(struct rt_tcb *t)
{
	t->t.what = 0;
	if (rt.how == RT_REPLAY)
		rt_replay_transaction(t);
	t->t.lp = t->lp0 = t->th.rec;
	return rt_switch_here(t, t->t.target, "it begins a transaction") == RT_DO_FINISH ? 0 : RT_DO_LEAVE;
}

/* ---- the start ---- */

#define RSEQ_SIG 0x53053053u /* glibc's, sysdeps/unix/sysv/linux/x86/bits/rseq.h */
#define RSEQ_REACH 4096 /* it is in libc's struct pthread, at fs, aligned to 32 */

static void drop_rseq(void)
{
	uint64_t fs = 0;

	rt_sc(__NR_arch_prctl, 0x1003 /* ARCH_GET_FS */, &fs);
	for (uint64_t off = 0; off < RSEQ_REACH; off += 32)
		if (!rt_sc(RSEQ_NR, fs + off, RSEQ_SIZE, 1 /* RSEQ_FLAG_UNREGISTER */, RSEQ_SIG)) {
			rseq = fs + off;
			return;
		}
}

static bool is_private(const struct rt_vma *v, void *arg)
{
	bool *shared = arg;

	*shared = !v->priv && (v->prot & PROT_WRITE) && !rt_ours(v->lo);
	return !*shared;
}

/* constructors that ran before this library's may have made threads */
static bool one_thread(void)
{
	char buf[512];
	long fd = rt_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0), n, entries = 0;

	if (rt_err(fd))
		return false;
	n = rt_sc(__NR_getdents64, fd, buf, sizeof(buf));
	rt_close((int)fd);
	for (long at = 0; at < n; entries++) {
		uint16_t len;

		memcpy(&len, buf + at + 16, 2); /* struct linux_dirent64: d_reclen */
		at += len;
	}
	return entries == 3; /* . and .. */
}

bool rt_record_alone(void)
{
	bool shared = false;

	return one_thread() && !rt_maps(is_private, &shared) && !shared;
}

void rt_record_not(const char *why)
{
	rt_vdso_back();
	rt.how = RT_FULL;
	rt.full_why = why;
	rt.restorable = false;
	rt.mapflags = rt.fullflags;
	if (rseq)
		rt_sc(RSEQ_NR, rseq, RSEQ_SIZE, 0, RSEQ_SIG);
	rseq = 0;
}

/* before anything of the program has been looked at */
int rt_record_prepare(void)
{
	int r = rt_vdso_change();

	if (r)
		return r;
	drop_rseq();
	return 0;
}

static void put_xstate(struct rt_tcb *t)
{
	static struct {
		uint8_t room[64 - sizeof(struct rec_head)];
		struct rec_xstate x;
	} __attribute__((aligned(64))) s = {.x = {{REC_XSTATE, sizeof(s.x)}, {0}}};
	uint32_t a, b, c, d;

	__cpuid(1, a, b, c, d);
	if (!(c & bit_OSXSAVE))
		return;
	__asm__ volatile("xsave64 %0" : "+m"(s.x.area) : "a"(REC_XSTATE_MASK), "d"(0));
	rt_record_put(t, &s.x, sizeof(s.x));
}

/* the first records: where the break is, the processor, vector registers */
void rt_record_start(struct rt_tcb *t)
{
	struct rec_call c = {
		{REC_CALL, sizeof(c)}, __NR_brk, 0, rt_sc(__NR_brk, 0), 0, {0}, rt_tsc(), rt_tsc(), 0};
	struct rec_cpu cpu = {.head = {REC_CPU, sizeof(cpu)}};

	rt_hold_start(t);
	t->th.rec = t->t.lp;
	rt.umask = (uint32_t)rt_sc(__NR_umask, 022);
	rt_sc(__NR_umask, rt.umask);
	rt_record_put(t, &c, sizeof(c));
	rec_cpu_get(&cpu);
	rt_record_put(t, &cpu, sizeof(cpu));
	put_xstate(t);
}
