/* SPDX-License-Identifier: MIT
 *
 * rt_replay.c - the runtime in a process that ptrace-replay has restored: every system call is answered from
 * the recording (include/run_rec.h), none is made but those that give the process its memory
 *
 *   rt_replay_entry ─▶ rt_replay_init(): as the constructor does ─▶ on at the first instruction
 *   rt_syscall ─▶ rt_replay_before(): the next record is this call ─▶ rt_answer() in place of the call
 *
 * Whatever is not as recorded ends the replay, at once, with one line: it is never guessed.
 */
#include "rt.h"

static const uint8_t *cursor, *end;
static const struct rec_call *now; /* the call that is being answered */
static const struct rec_file *mapped; /* what it maps, or NULL */
static const struct rec_bytes *bytes; /* or this */
static uint64_t brk_end; /* page behind the break */
static uint64_t unmask; /* the mask that the frame of a signal must show, while it is on its way */
static bool unmasking;
static uint64_t then, since; /* the time that the recording had last, and the TSC when it was taken over */

static void __attribute__((noreturn)) leave(int status)
{
	for (;;)
		rt_sc(__NR_exit_group, status);
}

static void __attribute__((noreturn)) differs(const char *what, uint64_t rip, uint64_t is, uint64_t was)
{
	char buf[160];
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, " before ");
	rt_putx(&s, rip, 16);
	if (is != was) {
		rt_put(&s, ": ");
		rt_putx(&s, is, 16);
		rt_put(&s, ", recorded ");
		rt_putx(&s, was, 16);
	}
	rt_say("the replay is not what was recorded: ", what, buf, NULL);
	leave(REPLAY_EXIT_DIVERGED);
}

void rt_replay_diverged(const char *what, uint64_t rip)
{
	differs(what, rip, 0, 0);
}

static const struct rec_head *peek(void)
{
	const struct rec_head *h = (const void *)cursor;

	if ((uint64_t)(end - cursor) < sizeof(*h) || h->size < sizeof(*h) ||
	    h->size > (uint64_t)(end - cursor))
		return NULL;
	return h;
}

/* The recording ends without saying why: its process was killed. So is this one. */
static const struct rec_head *next(void)
{
	const struct rec_head *h = peek();

	if (!h)
		for (;;)
			rt_sc(__NR_kill, rt_getpid(), 9);
	cursor += h->size;
	rt_reach_record(cursor);
	return h;
}

/* ---- time ---- */

static void set_time(uint64_t tsc)
{
	then = tsc;
	since = rt_tsc();
}

#define SLOWER 4 /* than the program, about */

/* Between calls it passes by the clock, up to the next call's beginning. */
uint64_t rt_now(void)
{
	const struct rec_call *c = (const void *)(rt.how == RT_REPLAY ? peek() : NULL);
	uint64_t now_at = then + (rt_tsc() - since) / SLOWER;

	if (rt.how != RT_REPLAY)
		return rt_tsc();
	if (!c || c->head.kind != REC_CALL || c->before < then)
		return then;
	return now_at < c->before ? now_at : c->before;
}

/* ---- signals ---- */

bool rt_replay_signal(struct rt_tcb *t, uint32_t when, uint64_t *mask)
{
	const struct rec_signal *s = (const void *)peek();

	if (!s || s->head.kind != REC_SIGNAL || s->when != when)
		return false;
	next();
	unmasking = true;
	unmask = *mask;
	*mask &= ~(1ull << (s->signo - 1));
	if (rt_err(rt_sc(__NR_rt_tgsigqueueinfo, rt_getpid(), rt_gettid(), s->signo, s->info)))
		rt_replay_diverged("a signal", t->t.target);
	return true;
}

/* the mask that was in force when the signal came */
void rt_replay_mask(uint64_t *mask)
{
	if (unmasking)
		*mask = unmask;
	unmasking = false;
}

/* ---- calls ---- */

/* The image ends here; another one has what follows, if anything: at rip, if that is not 0, and this very place. */
static void __attribute__((noreturn)) over(struct rt_tcb *t, uint64_t rip, int status)
{
	struct ring_head *h = rt.ring;

	if (rt.replay->why && rt.replay->why != REC_KILLED)
		rt_event(t, RUN_EV_EXEC, rip);
	rt_thread_end(t);
	__atomic_store_n(&rt_proc(t)->state, RING_EXEC, __ATOMIC_RELEASE);
	rt_ring_kick();
	rt_munmap((uint64_t)h, ring_size(h));
	leave(status);
}

/* where the last signal came */
void rt_replay_here(struct rt_tcb *t, const struct rt_intr *in)
{
	if (rt_frame_enter(t, 0, 0, in))
		rt_replay_diverged("no room for the log's end", in->w.rip);
	over(t, in->w.rip, 0);
}

/* No call follows, and the program came to its end, or to what another image goes on with, within this call, or at a
 * place that cannot be found: while it computed. What it did after this call is not the replay's to say. */
static bool last_call(int *status)
{
	const uint8_t *was = cursor;
	const struct rec_head *h;
	const struct rec_end *e;

	while ((h = peek()) && (h->kind == REC_NONDET || h->kind == REC_SIGNAL))
		cursor += h->size;
	cursor = was;
	e = (const void *)h;
	*status = h && h->kind == REC_PLACE ? REPLAY_EXIT_LOST : 0;
	if (!h)
		return rt.replay->killed;
	if (h->kind == REC_PLACE)
		return !rt_reach_possible();
	return h->kind == REC_END && e->why == REC_KILLED && now && e->rip == now->rip;
}

/* the last record; NULL for an exit, or the one behind it, of an exec that failed */
static const struct rec_head *last(struct rt_tcb *t, const struct rec_end *e)
{
	if (e->rip != t->t.target && e->rip != t->t.target - 2)
		rt_replay_diverged("another system call was to be the last", t->t.target);
	if (e->why == REC_EXIT)
		return NULL;
	if (e->why == REC_EXEC && peek() && peek()->kind == REC_CALL)
		return next();
	over(t, e->why == REC_SWITCH && e->value != REC_SOMEWHERE ? e->rip : 0, 0);
}

static void __attribute__((noreturn)) passed(const struct rt_tcb *t)
{
	char buf[80] = "";
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, "the place where a signal came has been passed");
	if (rt_reach_unlike()) {
		rt_put(&s, ", unlike memory at ");
		rt_putx(&s, rt_reach_unlike(), 12);
	}
	rt_replay_diverged(buf, t->t.target);
}

/* How many arguments a system call has, at least: what is in the other registers is not its business, and may
 * be anything. 60 a line */
static const char nargs[] = "332122233632144024433215043333331202213043336633232334550003"
			    "142133312453221122321122122123223331222114030110020002222333"
			    "311112224322231122232322311122210032112121012522142213032004"
			    "000000035554443332222133312153313100531044342112224144320635"
			    "415523455413203243345343453433651236444646321442442132155455"
			    "254532142366533453325151336664215640000000000000000000000000"
			    "000000000000000000000000000000000000000000000000000000000000"
			    "000042643525332034345654342125444000000000000000000000000000";

/* RT_DO_*, or -1: rt_syscall() goes on, and comes to rt_answer() */
int rt_replay_before(struct rt_tcb *t)
{
	static const char what[6][32] = {"rdi of a system call", "rsi of a system call",
					 "rdx of a system call", "r10 of a system call",
					 "r8 of a system call",	 "r9 of a system call"};
	const struct rec_head *h;
	uint64_t arg[6];
	int status;

	now = NULL;
	t->lp0 = t->t.lp;
	if (rt_replay_signal(t, REC_BEFORE_CALL, &t->sv.mask))
		return RT_DO_REAL; /* the call starts again here then */
	h = next();
	mapped = NULL;
	bytes = NULL;
	for (; h->kind == REC_FILE || h->kind == REC_BYTES; h = next())
		if (h->kind == REC_FILE)
			mapped = (const void *)h;
		else
			bytes = (const void *)h;
	if (h->kind == REC_PLACE)
		passed(t);
	if (h->kind == REC_END && !(h = last(t, (const void *)h)))
		return -1;
	now = (const void *)h;
	if (h->kind != REC_CALL)
		differs("a system call", t->t.target, t->sv.nr, h->kind << 16);
	if (now->nr != (uint32_t)t->sv.nr)
		differs("another system call", t->t.target, t->sv.nr, now->nr);
	if (now->rip != t->t.target)
		differs("a system call elsewhere", t->t.target, t->t.target, now->rip);
	set_time(now->before);
	rt_args(t, arg);
	for (int i = 0; now->nr < sizeof(nargs) - 1 && i < nargs[now->nr] - '0'; i++)
		if (now->arg[i] != arg[i])
			differs(what[i], t->t.target, arg[i], now->arg[i]);
	if (last_call(&status))
		over(t, 0, status);
	return -1;
}

static void check_at(long r, uint64_t want)
{
	if ((uint64_t)r != want)
		differs("the result of a call for memory", now->rip, (uint64_t)r, want);
}

static void do_brk(uint64_t to)
{
	uint64_t hi = (to + RT_PAGE - 1) & ~(RT_PAGE - 1);

	if (hi > brk_end)
		check_at(rt_mmap(brk_end, hi - brk_end, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 brk_end);
	else if (hi < brk_end)
		rt_munmap(hi, brk_end - hi);
	brk_end = hi;
}

/* a file's, of which the recording has them */
static void map_bytes(const uint64_t *g, uint64_t flags)
{
	int prot = (int)g[RDX];

	flags = (flags & ~15ull) | MAP_PRIVATE | MAP_ANONYMOUS;
	check_at(rt_mmap(now->ret, g[RSI], PROT_READ | PROT_WRITE, (int)flags, -1, 0), now->ret);
	memcpy((void *)now->ret, bytes + 1, bytes->len);
	if (prot != (PROT_READ | PROT_WRITE))
		check_at(rt_mprotect(now->ret, g[RSI], prot), 0);
}

static void do_map(struct rt_tcb *t, const struct rec_file *f)
{
	const uint64_t *g = t->sv.gpr;
	uint64_t flags = (g[R10] & ~(MAP_HUGETLB | MAP_LOCKED | MAP_POPULATE)) | MAP_FIXED;
	long fd = -1, r;

	if (!(g[R10] & MAP_FIXED))
		flags |= MAP_FIXED_NOREPLACE;
	if (bytes) {
		map_bytes(g, flags);
		return;
	}
	if (f) {
		flags = (flags & ~15ull) | MAP_PRIVATE;
		fd = rt_open((const char *)(f + 1), O_RDONLY, 0);
		if (rt_err(fd))
			rt_replay_diverged("a file that was mapped is gone", now->rip);
	}
	r = rt_mmap(now->ret, g[RSI], (int)g[RDX], (int)flags, (int)fd, g[R9]);
	if (fd >= 0)
		rt_close((int)fd);
	check_at(r, now->ret);
}

static void do_mask(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	uint64_t set;

	if (!g[RSI] || rt_copy_out(&set, g[RSI], sizeof(set)))
		return;
	set &= ~(1ull << 8 | 1ull << 18); /* SIGKILL, SIGSTOP */
	t->sv.mask = g[RDI] == 0 ? t->sv.mask | set : g[RDI] == 1 ? t->sv.mask & ~set : set;
}

static void same_result(const struct rt_tcb *t, uint64_t nr)
{
	check_at(rt_call(t->sv.gpr, nr), (uint64_t)now->ret);
}

static void memory_call(struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;

	switch (t->sv.nr) {
	case __NR_mmap:
		do_map(t, mapped);
		break;
	case __NR_mremap:
		check_at(now->ret == (int64_t)g[RDI]
				 ? rt_sc(__NR_mremap, g[RDI], g[RSI], g[RDX], g[R10] & ~3ull)
				 : rt_sc(__NR_mremap, g[RDI], g[RSI], g[RDX], g[R10] | 3, now->ret),
			 now->ret);
		break;
	case __NR_munmap:
	case __NR_mprotect:
	case __NR_sigaltstack:
		same_result(t, t->sv.nr);
		break;
	case __NR_pkey_mprotect:
		same_result(t, __NR_mprotect);
		break;
	case __NR_madvise: /* other advice changes no contents */
		if (g[RDX] == MADV_DONTNEED || g[RDX] == 8 || g[RDX] == 24) /* _FREE, _DONTNEED_LOCKED */
			check_at(rt_sc(__NR_madvise, g[RDI], g[RSI], MADV_DONTNEED), 0);
		else if (g[RDX] == 9 || g[RDX] == 102 || g[RDX] == 103) /* _REMOVE, guard pages */
			same_result(t, t->sv.nr);
		break;
	case __NR_arch_prctl:
		if (g[RDI] == 0x1002) /* ARCH_SET_FS */
			same_result(t, t->sv.nr);
		break;
	case __NR_rt_sigprocmask:
		do_mask(t);
		break;
	}
}

/* Into memory that may be read-only in part: a call that failed with EFAULT there has left it as it was, and the record has that. */
static bool put_or_same(uint64_t to, const uint8_t *from, uint64_t n)
{
	uint8_t was[256];

	for (uint64_t k; n; to += k, from += k, n -= k) {
		k = sizeof(was) - to % sizeof(was); /* no more than a page */
		k = k < n ? k : n;
		if (rt_copy_in(to, from, k) && (rt_copy_out(was, to, k) || memcmp(was, from, k)))
			return false;
	}
	return true;
}

/* what the call wrote */
static void outputs(void)
{
	const uint8_t *p = (const void *)(now + 1), *lim = (const uint8_t *)now + now->head.size;

	for (uint32_t i = 0; i < now->nout; i++) {
		const struct rec_out *o = (const void *)p;

		if ((uint64_t)(lim - p) < sizeof(*o) || (uint64_t)(lim - p) - sizeof(*o) < o->len)
			rt_replay_diverged("a record is damaged", now->rip);
		if (rt_copy_in(o->addr, o + 1, o->len) &&
		    !put_or_same(o->addr, (const uint8_t *)(o + 1), o->len))
			rt_replay_diverged("a system call's memory is not there", now->rip);
		p += sizeof(*o) + rec_padded(o->len);
	}
}

/* in place of the call */
long rt_answer(struct rt_tcb *t)
{
	if (t->sv.nr == __NR_brk && !rt_err(now->ret))
		do_brk(now->ret);
	else if (!rt_err(now->ret))
		memory_call(t);
	outputs();
	set_time(now->tsc);
	return now->ret;
}

/* after the call: signals that came then */
void rt_replay_after(struct rt_tcb *t, long r)
{
	if (now && r != now->ret)
		rt_replay_diverged("a system call has another result", t->t.target);
	if (now)
		t->sv.gpr[R11] = now->r11;
	if (now && t->sv.nr == __NR_rt_sigaction) /* ours: it cannot know what the process was started with */
		outputs();
	rt_replay_signal(t, REC_AFTER_CALL, &t->sv.mask);
}

const struct rec_nondet *rt_replay_nondet(struct rt_tcb *t, uint32_t what)
{
	const struct rec_nondet *n = (const void *)next();

	if (n->head.kind != REC_NONDET || n->what != what || n->rip != t->t.target)
		rt_replay_diverged("another instruction was recorded", t->t.target);
	return n;
}

/* The image that goes on in full has what follows. */
void rt_replay_transaction(struct rt_tcb *t)
{
	const struct rec_end *e = (const void *)next();
	struct rt_intr in;

	if (e->head.kind != REC_END || e->why != REC_SWITCH || e->rip != t->t.target)
		rt_replay_diverged("the beginning of a transaction was not recorded", t->t.target);
	rt_resume_where(t, &in);
	rt_replay_here(t, &in);
}

/* ---- the start ---- */

/* Only the runtime's system calls are made from here on. Those of code that it has not relocated come back as SIGSYS
 * (kernel, Documentation/admin-guide/syscall-user-dispatch.rst, Linux 5.11), so that nothing that the program does reaches
 * the world. What the runtime executes is no matter of that. */
static void only_ours(const struct replay_info *info)
{
	static uint8_t block = 1; /* SYSCALL_DISPATCH_FILTER_BLOCK */

	rt_sc(__NR_prctl, 59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, info->lo, info->hi - info->lo, &block);
}

/* what follows uses none of these registers */
static void vector_state(const struct rec_xstate *x)
{
	static uint8_t area[sizeof(x->area)] __attribute__((aligned(64)));

	memcpy(area, x->area, sizeof(area));
	__asm__ volatile("xrstor64 %0" : : "m"(area), "a"(REC_XSTATE_MASK), "d"(0));
}

bool rt_replay_init(const struct replay_info *info)
{
	uint64_t regs[17], all = ~0ull;
	const struct rec_call *first;
	const struct rec_head *h;
	const struct rec_xstate *x = NULL;
	int status;

	rt_sc(__NR_rt_sigprocmask, 2, &all, 0, 8);
	if (info->magic != REPLAY_MAGIC || info->version != REPLAY_VERSION)
		leave(REPLAY_EXIT_FAILED);
	rt.how = RT_REPLAY;
	rt.replay = info;
	rt.pid = (uint32_t)rt_getpid();
	cursor = info->rec;
	end = cursor + info->rec_size;
	rt_reach_init(cursor, end);
	first = (const void *)next();
	if (first->head.kind != REC_CALL || first->nr != __NR_brk || first->rip)
		rt_replay_diverged("no recording", 0);
	for (; (h = peek()) && (h->kind == REC_XSTATE || h->kind == REC_CPU); next())
		if (h->kind == REC_XSTATE)
			x = (const void *)h;
	set_time(info->start->tsc);
	brk_end = (first->ret + RT_PAGE - 1) & ~(RT_PAGE - 1);
	memcpy(regs, info->start->gpr, sizeof(info->start->gpr));
	regs[16] = info->start->rip;
	rt_start(info->envp, regs);
	if (!rt.active)
		leave(REPLAY_EXIT_FAILED);
	rt_reach_record(cursor);
	if (last_call(&status)) { /* there is none */
		rt_thread_end(rt.main);
		leave(status);
	}
	memcpy(rt_out.gpr, regs, sizeof(rt_out.gpr));
	rt_out.rip = regs[16];
	rt_out.flags = 0x4400; /* ZF, PF: rt_ctor */
	rt_out.mask = 0;
	rt.main->stamp = 1;
	only_ours(info);
	if (x)
		vector_state(x);
	return true;
}
