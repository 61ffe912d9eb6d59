/* SPDX-License-Identifier: MIT
 *
 * collect_pt.c - Intel PT of the traced threads: asked for, drained, ended
 *
 *   thread: ring_thread.pt = START, waits ─▶ pt_requests(): event, buffers, pt-TID.bin, enable ─▶ ON
 *                                            drainer(): poll, what is new ─▶ pt-TID.bin; TRUNCATED: enable again
 *   thread ends: its event hangs up (POLLHUP) ─▶ drainer(): the rest, END
 *   process ends, stops, executes another: pt_end(): disable, the rest, END
 *
 * An event is the thread's alone and is not inherited: each thread has a buffer of its own and streams need not be taken
 * apart. pt.lock is held whenever the list or one of its entries is looked at.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "collect.h"
#include "collect_pt.h"

#define DRAIN_MS 20 /* between two looks at what nobody called for */
#define KEY_MS 100 /* from keyframe to keyframe, where there is something to lose: */
#define KEY_BYTES 4096 /* so many bytes of packets */

struct pt_thread {
	struct pt_thread *next;
	struct cproc *p;
	uint64_t uid; /* ring_thread.uid */
	uint32_t tid;
	struct ring_thread *th;
	uint32_t key; /* th->key as last seen: */
	uint64_t key_at, key_ms; /* how much had been taken then, when that was */
	struct pt_area a;
	struct pt_read r;
	struct pt_file f;
	bool on;
	/* which poll(2) looks at its event, 0: none does. The descriptor alone would not tell: while that waits, an event may
	 * be closed and the next one opened with the same */
	uint32_t polled;
};

static struct {
	pthread_mutex_t lock;
	struct collect *c;
	struct pt_thread *list;
	uint32_t n;
	int wake; /* eventfd: the list has changed */
	bool up; /* the drainer is there */
	struct pt_pmu pmu;
	struct perf_event_attr attr;
	struct run_pt_info info; /* what all threads have in common */
} pt = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = -1};

/* ---- draining ---- */

static int on_data(void *arg, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
		   unsigned flags)
{
	struct pt_thread *t = arg;

	t->p->pt.bytes += n + n2;
	/* where it is half full it fills faster than this goes, or the machine is busy: then nothing else counts */
	return pt_file_data(&t->f, offset, p, n, p2, n2, flags, n + n2 > t->a.aux_size / 2);
}

static int on_note(void *arg, uint32_t kind, uint64_t value)
{
	struct pt_thread *t = arg;

	return pt_file_note(&t->f, kind, value);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What is lost ends at the next keyframe: where log fills no chunk, one is asked for. `lost`: something is just now */
static void keys(struct pt_thread *t, bool lost)
{
	uint32_t key = __atomic_load_n(&t->th->key, __ATOMIC_ACQUIRE);
	uint64_t n = t->r.offset - t->key_at, ms = now_ms();

	if (key != t->key) {
		t->key = key;
		t->key_at = t->r.offset;
		t->key_ms = ms;
		n = 0;
	}
	if (lost || n >= pt.c->ring->pt.key || (n >= KEY_BYTES && ms - t->key_ms >= KEY_MS))
		ring_ask_key(t->th);
}

/* true: there was something */
static bool drain(struct pt_thread *t)
{
	const struct pt_sink s = {t, on_data, on_note};
	struct pt_read old = t->r;
	bool any = t->on && pt_read(&t->r, &t->a, &s), lost = t->r.again;

	if (lost) {
		pt_area_enable(&t->a, false);
		pt_read_rest(&t->r, &t->a, &s);
		pt_area_enable(&t->a, true);
	}
	t->p->pt.truncated += t->r.truncated - old.truncated;
	t->p->pt.partial += t->r.partial - old.partial;
	t->p->pt.collision += t->r.collision - old.collision;
	t->p->pt.lost += t->r.lost - old.lost;
	if (t->f.error && !pt.c->error)
		pt.c->error = t->f.error;
	if (t->on)
		keys(t, lost);
	return any;
}

/* the end of t's event; it is out of the list */
static void finish(struct pt_thread *t, uint32_t how)
{
	while (drain(t) && !t->f.error)
		;
	if (t->on)
		pt_file_note(&t->f, RUN_PT_END, how);
	pt_file_close(&t->f);
	pt_area_close(&t->a);
	pt.n--;
	free(t);
}

static void look(const struct pollfd *fd)
{
	struct pt_thread **at = &pt.list, *t;

	while ((t = *at)) {
		bool hup = t->polled && (fd[t->polled].revents & (POLLHUP | POLLERR));

		drain(t);
		if (hup && t->on) {
			*at = t->next;
			finish(t, RUN_PT_END_THREAD);
		} else {
			at = &t->next;
		}
	}
}

static void *drainer(void *arg)
{
	struct pollfd *fd = NULL;
	uint32_t cap = 0, n;
	uint64_t any;

	(void)arg;
	for (;;) {
		n = 1;
		pthread_mutex_lock(&pt.lock);
		if (cap < pt.n + 1) {
			cap = 2 * (pt.n + 1);
			fd = realloc(fd, cap * sizeof(*fd));
		}
		fd[0] = (struct pollfd){.fd = pt.wake, .events = POLLIN};
		for (struct pt_thread *t = pt.list; t; t = t->next) {
			t->polled = n;
			fd[n++] = (struct pollfd){.fd = t->a.fd, .events = POLLIN};
		}
		pthread_mutex_unlock(&pt.lock);
		poll(fd, n, n > 1 ? DRAIN_MS : -1);
		if (fd[0].revents && read(pt.wake, &any, sizeof(any)) < 0)
			continue;
		pthread_mutex_lock(&pt.lock);
		look(fd);
		pthread_mutex_unlock(&pt.lock);
	}
	return NULL;
}

void pt_end(struct cproc *p, bool gone)
{
	struct pt_thread **at = &pt.list, *t;

	if (!pt.up)
		return;
	pthread_mutex_lock(&pt.lock);
	while ((t = *at)) {
		if (t->p != p) {
			at = &t->next;
			continue;
		}
		pt_area_enable(&t->a, false);
		*at = t->next;
		finish(t, gone ? RUN_PT_END_THREAD : RUN_PT_END_STOPPED);
	}
	pthread_mutex_unlock(&pt.lock);
}

/* ---- opening ---- */

static void cpu_info(struct run_pt_info *i)
{
	uint32_t a, b, c, d, max;

	__cpuid(0, max, b, c, d);
	memcpy(i->vendor, &b, 4);
	memcpy(i->vendor + 4, &d, 4);
	memcpy(i->vendor + 8, &c, 4);
	__cpuid(1, a, b, c, d); /* SDM Vol. 2, CPUID, "Version Information" */
	i->family = (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0);
	i->model = (uint8_t)((a >> 4 & 15) | (a >> 12 & 0xf0));
	i->stepping = a & 15;
	i->tsc_ratio_eax = pt.pmu.tsc_ratio_eax;
	i->tsc_ratio_ebx = pt.pmu.tsc_ratio_ebx;
	i->nom_freq = pt.pmu.nom_freq;
	if (max >= 0x15) {
		__cpuid_count(0x15, 0, a, b, c, d);
		i->crystal_hz = c;
		if (!i->tsc_ratio_eax) {
			i->tsc_ratio_eax = a;
			i->tsc_ratio_ebx = b;
		}
	}
	if (max >= 0x16) {
		__cpuid_count(0x16, 0, a, b, c, d);
		i->base_mhz = a;
		if (!i->nom_freq)
			i->nom_freq = (a + 50) / 100;
	}
}

/* once: the PMU, the configuration, the thread that drains. 0 or errno; why not is said */
static int set_up(struct collect *c)
{
	struct ring_pt *rp = &c->ring->pt;
	struct pt_want w = {rp->cyc != 0, rp->noretc != 0, rp->psb, rp->mtc};
	char what[4200];
	pthread_t thread;
	int err;

	if (pt.up)
		return 0;
	pt.c = c;
	err = pt_pmu_read(pt_pmu_dir(), &pt.pmu, what, sizeof(what));
	if (err) {
		pt_why_pmu(rp->why, sizeof(rp->why), err, what);
		return err;
	}
	cpu_info(&pt.info);
	pt.attr.type = pt.info.pmu_type = pt.pmu.type;
	pt.attr.size = sizeof(pt.attr);
	pt.attr.config = pt.info.config = pt_config(&pt.pmu, &w, &pt.info);
	pt.attr.exclude_kernel = pt.attr.exclude_hv = 1;
	pt.attr.disabled = 1;
	pt.info.rt_base = rp->rt_base;
	pt.info.counter_branch = rp->counter_branch;
	pt.info.counter_ptw = rp->counter_ptw;
	pt.info.counter_stride = 8;
	rp->counter = pt.info.counter;
	rp->ptwrite = pt.info.flags & RUN_PT_PTW ? 1 : 0;
	pt.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = pt.wake < 0 ? errno : pthread_create(&thread, NULL, drainer, NULL);
	if (err) {
		snprintf(rp->why, sizeof(rp->why), "no thread to drain the buffers: %s", strerror(err));
		return err;
	}
	pthread_detach(thread);
	pt.up = true;
	return 0;
}

static struct pt_thread *find(uint64_t uid)
{
	struct pt_thread *t = pt.list;

	while (t && t->uid != uid)
		t = t->next;
	return t;
}

/* NULL: f says why not */
static struct pt_thread *open_thread(struct cproc *p, struct ring_thread *th, struct pt_fail *f)
{
	struct ring_pt *rp = &pt.c->ring->pt;
	struct pt_thread *t = calloc(1, sizeof(*t));
	uint32_t tid;

	*f = (struct pt_fail){ESRCH, false};
	if (!t)
		f->err = ENOMEM;
	if (!t || !(tid = ns_thread(p, th->tid))) {
		free(t);
		return NULL;
	}
	/* Half of the area if this is 0. From Linux 5.13 on the area is also made of pieces of this size (get_order in
	 * rb_alloc_aux), and the unit cannot stop in one: where less than the rest of a piece is free it is full
	 * (pt_buffer_reset_markers in arch/x86/events/intel/pt.c) */
	pt.attr.aux_watermark = (uint32_t)(rp->key < rp->aux / 4 ? rp->key : rp->aux / 4);
	if (pt_area_open(&t->a, &pt.attr, tid, rp->ring, rp->aux, f)) {
		free(t);
		return NULL;
	}
	pt_area_pieces(&t->a, &pt.attr, !pt.pmu.topa_multiple);
	f->err = 0;
	t->p = p;
	t->uid = th->uid;
	t->tid = th->tid;
	t->th = th;
	t->key_ms = now_ms();
	t->f.fd = -1;
	t->next = pt.list;
	pt.list = t;
	pt.n++;
	return t;
}

/* perf's clock (struct perf_event_mmap_page: the seqlock is there) */
static void clock_of(const struct perf_event_mmap_page *p, struct run_pt_info *i)
{
	uint32_t seq;

	do {
		seq = __atomic_load_n(&p->lock, __ATOMIC_ACQUIRE);
		i->time_zero = p->time_zero;
		i->time_mult = p->cap_user_time_zero ? p->time_mult : 0;
		i->time_shift = p->time_shift;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (p->lock != seq || (seq & 1));
}

/* 0 or errno */
static int begin_file(struct pt_file *f, const struct cproc *p, uint32_t tid, const struct pt_area *a)
{
	struct run_pt_info i = pt.info;

	i.pid = p->pid;
	i.tid = tid;
	if (a) {
		i.aux_size = a->aux_size;
		i.ring_size = a->ring_size;
		clock_of(a->page, &i);
	}
	if (!pt_file_open(f, p->dir_fd, tid, pt.c->codec))
		pt_file_info(f, &i);
	return f->error;
}

static int start_thread(struct pt_thread *t)
{
	int err = begin_file(&t->f, t->p, t->tid, &t->a);

	if (!err)
		err = pt_area_enable(&t->a, true);
	t->on = !err;
	t->p->pt.threads += t->on;
	return err;
}

/* the run says so; whoever decodes it must not wonder */
static void tell_failed(struct cproc *p, uint32_t tid, int err)
{
	struct pt_file f;

	p->pt.failed++;
	if (!begin_file(&f, p, tid, NULL))
		pt_file_note(&f, RUN_PT_OPEN_FAILED, (uint64_t)err);
	pt_file_close(&f);
}

static void drop(struct pt_thread *t)
{
	struct pt_thread **at = &pt.list;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->on = false;
	finish(t, 0);
}

static void wake_drainer(void)
{
	uint64_t one = 1;
	ssize_t r = write(pt.wake, &one, sizeof(one));

	(void)r; /* it has been told already */
}

static void answer(struct ring_thread *th, uint32_t want, uint32_t state, int err)
{
	th->pt_error = (uint32_t)err;
	__atomic_compare_exchange_n(&th->pt, &want, state, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	futex_wake(&th->pt);
}

static void request(struct collect *c, struct ring_thread *th, uint32_t want)
{
	struct cproc *p = proc_at(th->proc);
	struct pt_fail f = {0, false};
	struct pt_thread *t = NULL;
	bool first = want == RING_PT_OPEN;

	if (!p)
		return; /* it is born, but not known yet */
	f.err = set_up(c);
	pthread_mutex_lock(&pt.lock);
	if (!f.err) {
		t = find(th->uid);
		if (!t)
			t = open_thread(p, th, &f);
		if (!t && first)
			pt_why_open(c->ring->pt.why, sizeof(c->ring->pt.why), &f);
	}
	if (t && want == RING_PT_START) {
		f.err = start_thread(t);
		if (f.err) {
			drop(t);
			t = NULL;
		}
	}
	if (!t && !first && pt.up)
		tell_failed(p, th->tid, f.err);
	pthread_mutex_unlock(&pt.lock);
	if (t)
		wake_drainer();
	answer(th, want, !t ? RING_PT_FAILED : first ? RING_PT_OPENED : RING_PT_ON, f.err);
	if (want == RING_PT_START && p->first)
		json_run(c, p, JSON_RUNNING);
}

void pt_requests(struct collect *c)
{
	if (c->ring->pt.cf != RING_CF_PT)
		return;
	for (uint32_t i = 0; i < __atomic_load_n(&c->ring->nslots, __ATOMIC_ACQUIRE); i++) {
		struct ring_thread *th = ring_thread(c->ring, i);
		uint32_t want = __atomic_load_n(&th->pt, __ATOMIC_ACQUIRE);

		if (want == RING_PT_OPEN || want == RING_PT_START)
			request(c, th, want);
	}
}
