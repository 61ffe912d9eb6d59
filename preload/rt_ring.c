/* SPDX-License-Identifier: MIT
 *
 * rt_ring.c - the ring of chunks shared with ptrace-collect (ring.h), and marks
 *
 * A full chunk is handed over by counting `head` up; the thread then waits until the next
 * chunk is free. Nothing is ever dropped. The collector's death is seen in a robust futex
 * (set_robust_list(2)): that works whoever reaps it.
 */
#include "rt.h"

#define SPINS 2000

_Static_assert(offsetof(struct rt_tcb, sv) == T_SV, "rt_off.h");
_Static_assert(offsetof(struct tcb, lp) == T_LP && offsetof(struct tcb, r15) == T_R15, "rt_off.h");
_Static_assert(offsetof(struct tcb, resume) == T_RESUME && offsetof(struct tcb, target) == T_TARGET,
	       "rt_off.h");
_Static_assert(offsetof(struct tcb, self) == T_SELF && offsetof(struct tcb, rt_stack) == T_STACK, "rt_off.h");
_Static_assert(offsetof(struct rt_regs, rip) == R_RIP && offsetof(struct rt_regs, flags) == R_FLAGS,
	       "rt_off.h");
_Static_assert(offsetof(struct rt_regs, mask) == R_MASK && offsetof(struct rt_regs, nr) == R_NR, "rt_off.h");

static struct ring_desc *desc(void)
{
	return &rt.ring->desc[rt.ring->head % rt.ring->nchunks];
}

static uint64_t chunk_base(uint32_t n)
{
	return rt.ring->base + (1ull + n % rt.ring->nchunks) * RUN_CHUNK_SPAN;
}

bool rt_in_ring(uint64_t addr)
{
	if (rt.ring && addr >= rt.ring->base && addr < rt.ring->base + (1ull + rt.nchunks) * RUN_CHUNK_SPAN)
		return true;
	for (int i = 0; i < RT_NCHILD; i++)
		if (rt.child[i] && addr - rt.child[i]->chunk < RUN_CHUNK_SPAN)
			return true;
	return false;
}

uint64_t rt_ring_pos(const struct rt_tcb *t, uint64_t lp)
{
	return desc()->first + (lp - t->chunk);
}

static void tcb_init(struct rt_tcb *t, uint64_t chunk, uint64_t stack)
{
	t->t.self = (uint64_t)t;
	t->t.chunk_full = (uint64_t)rt_full_entry;
	t->t.syscall = (uint64_t)rt_sys_entry;
	t->t.rt_stack = stack;
	t->t.lp = t->chunk = chunk;
	t->sig = rt.sig;
}

/* TCBs for vfork children: one throw-away chunk each, untouched until needed */
static int children_init(void)
{
	for (uint32_t i = 0; i < RT_NCHILD; i++) {
		uint64_t c = rt_place_far(RUN_CHUNK_SPAN, RUN_CHUNK_SPAN, -1, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
		struct rt_tcb *t = rt_alloc(sizeof(*t));
		uint8_t *stack = rt_alloc(65536);
		struct rt_sigview *sig = rt_alloc(sizeof(rt.sig));

		if (!c || !t || !stack || !sig)
			return -ENOMEM;
		tcb_init(t, c, (uint64_t)stack + 65536);
		t->sig_own = sig;
		t->level = i + 1;
		rt.child[i] = t;
	}
	return 0;
}

/* A fault on the first touch of a page costs more than all the logging in it; not being able to prefault
 * (before Linux 5.14) only costs that. The collector has the pages made ahead of the program. */
static void populate(uint32_t chunk)
{
	rt_sc(__NR_madvise, chunk_base(chunk), RUN_CHUNK_SIZE + RUN_CHUNK_SLACK, MADV_POPULATE_WRITE);
}

static int ring_map(int fd)
{
	uint64_t size = (1ull + rt.nchunks) * RUN_CHUNK_SPAN, base;
	struct ring_head *h;
	long r = rt_sc(__NR_ftruncate, fd, size);

	if (r == -EFBIG)
		rt_take_xfsz();
	if (rt_err(r))
		return (int)r;
	base = rt_place_far(size, RUN_CHUNK_SPAN, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	if (!base)
		return -ENOMEM;
	h = rt.ring = (void *)base;
	h->magic = RING_MAGIC;
	h->version = RING_VERSION;
	h->nchunks = rt.nchunks;
	h->pid = h->tid = rt.pid;
	h->base = base;
	h->desc[0].tsc_open = rt_tsc();
	populate(0);
	rt.tcb = (void *)(base + RING_TCB_OFF);
	tcb_init(rt.tcb, chunk_base(0), (uint64_t)rt_stack_top);
	return 0;
}

static void cannot_start(int r)
{
	char buf[RT_PATH + 32];
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, "cannot start ");
	rt_put(&s, rt.collect);
	rt_say(buf, ": ", rt_strerror(r), "; running untraced (see PTRACE_COLLECT in libptrace_rt(7))");
}

/* 0, or -errno; what failed is said */
int rt_ring_open(void)
{
	long fd = rt_sc(__NR_memfd_create, "ptrace-ring", 1 /* MFD_CLOEXEC */);
	int r;

	if (rt_err(fd)) {
		rt_say("cannot make shared memory: ", rt_strerror(fd), "; running untraced", NULL);
		return (int)fd;
	}
	r = ring_map((int)fd);
	if (!r)
		r = children_init();
	if (r)
		rt_say("cannot map the log: ", rt_strerror(r),
		       r == -EFBIG ? "; running untraced (raise the limit: ulimit -f)"
				   : "; running untraced (PTRACE_RING=2 needs least)",
		       NULL);
	if (!r) {
		r = rt_spawn_collector((int)fd);
		if (r)
			cannot_start(r);
	}
	rt_close((int)fd);
	return r;
}

int rt_ring_ready(void)
{
	int r = rt_spawn_wait();

	if (r)
		cannot_start(r);
	return r;
}

bool rt_ring_dead(void)
{
	return __atomic_load_n(&rt.ring->owner, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}

void rt_ring_kick(void)
{
	__atomic_add_fetch(&rt.ring->wake, 1, __ATOMIC_RELEASE);
	rt_futex_wake(&rt.ring->wake);
}

void rt_ring_wait_done(void)
{
	rt_ring_kick();
	while (!__atomic_load_n(&rt.ring->done, __ATOMIC_ACQUIRE) && !rt_ring_dead())
		rt_futex_wait(&rt.ring->done, 0, 100);
}

void rt_mark(struct rt_tcb *t, uint32_t kind, uint32_t id, uint64_t arg)
{
	uint8_t *p = (uint8_t *)t->t.lp;
	uint32_t word = kind | id << RUN_MARK_ID_SHIFT;

	memcpy(p, &word, 4);
	memcpy(p + 4, &arg, 8);
	t->t.lp += 12;
}

static bool wait_free(void)
{
	struct ring_head *h = rt.ring;

	for (uint32_t i = 0;; i++) {
		uint32_t tail = __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE);

		if (h->head - tail < h->nchunks)
			return true;
		if (i < SPINS) {
			__asm__ volatile("pause");
			continue;
		}
		if (rt_ring_dead())
			return false;
		rt_futex_wait(&h->tail, tail, 100);
	}
}

/* the chunk is full: 0 to go on at tcb.resume with a new log pointer, 1 to leave by rt_out */
int rt_chunk_full(struct rt_tcb *t)
{
	struct ring_head *h = rt.ring;
	struct ring_desc *d = desc();
	uint64_t next;

	if (t->level) { /* a vfork child's log is thrown away */
		t->t.lp = t->sv.gpr[R15] = t->chunk;
		return 0;
	}
	if (rt.stopped || h->error || rt_ring_dead())
		return rt_stop_leave(t, h->error ? RUN_STOP_SPACE : RUN_STOP_COLLECTOR, 0);
	d->bytes = t->t.lp - t->chunk;
	d->tsc_close = rt_tsc();
	next = d->first + d->bytes;
	__atomic_add_fetch(&h->head, 1, __ATOMIC_RELEASE);
	rt_ring_kick();
	/* meanwhile the published log pointer lies in a chunk that is handed over: the collector takes
	 * it for a position only when it lies in chunk `head` */
	if (!wait_free()) {
		h->head--;
		return rt_stop_leave(t, RUN_STOP_COLLECTOR, 0);
	}
	if (h->head < h->nchunks)
		populate(h->head);
	d = desc();
	d->first = next;
	d->bytes = 0;
	d->tsc_open = rt_tsc();
	t->chunk = chunk_base(h->head);
	t->t.lp = t->sv.gpr[R15] = t->chunk;
	return 0;
}
