/* SPDX-License-Identifier: MIT
 *
 * collect_proc.c - the traced processes that share a ring: from their birth to their end
 *
 *   ring_proc  TAKEN ─▶ RUN ─┬─▶ EXIT, STOP: it waits until its log is out of the ring (`done`)
 *              (fork)        ├─▶ EXEC: tries to; seen by what it has mapped
 *                            └─▶ gone (killed): seen by its pidfd
 *   cproc      birth: directory, modules.bin as its parent's was ─▶ end: what its threads left in their chunks,
 *              proc.json ─▶ over: everything is on disk
 *
 * The entry of a child is there before the child. Its parent may have come to its end before the child has
 * said who it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "collect.h"

#define PATIENCE_MS 5 /* a process that ends waits so long for its log to be complete */
#define UNBORN_S 2 /* a child whose parent is gone and that has not said who it is */
#define HASH 4096

static struct cproc *live, *all;
static struct cproc *stopped; /* over, as their traces are, and going on */
static struct cproc *entry[RING_PROCS]; /* whose ring_proc it is */
static struct cthread *thread[HASH];

static uint32_t state_of(const struct cproc *p)
{
	return __atomic_load_n(&p->p->state, __ATOMIC_ACQUIRE);
}

int proc_open(const struct collect *c, const struct cproc *p, const char *file, int flags)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", p->name, file);
	return openat(c->run_fd, path, flags | O_CLOEXEC, 0666);
}

static uint32_t index_of(const struct collect *c, const struct ring_proc *r)
{
	return (uint32_t)(r - ring_proc(c->ring, 0));
}

/* A parent: it is alive, mostly, however many there have been since. */
static struct cproc *known(uint32_t uid)
{
	struct cproc *p = live;

	while (p && p->uid != uid)
		p = p->next;
	for (p = p ? p : all; p && p->uid != uid;)
		p = p->older;
	return p;
}

struct cproc *proc_at(uint32_t index)
{
	return index < RING_PROCS ? entry[index] : NULL;
}

/* the first error is the one to tell; threads stop at their next slow path */
static void failed(struct collect *c, int err)
{
	if (err && !c->error)
		c->ring->error = c->error = err;
}

static struct cproc *proc_new(struct collect *c, struct ring_proc *r, uint32_t pid, char *name,
			      const struct cproc *from)
{
	struct cproc *p = calloc(1, sizeof(*p));

	p->p = r;
	p->uid = r->uid;
	p->pid = pid;
	p->name = name;
	p->status = -1;
	p->next = live;
	live = p;
	p->older = all;
	all = entry[index_of(c, r)] = p;
	ns_find(c, p, from);
	watch_open(p);
	p->dir_fd = openat(c->run_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd >= 0)
		flock(p->dir_fd,
		      LOCK_EX | LOCK_NB); /* where there are no locks, readers take logs as they are */
	json_describe(p, from);
	p->parent = from ? from->name : NULL;
	return p;
}

int proc_first(struct collect *c, const char *name)
{
	struct ring_proc *r = NULL;
	struct cproc *p;

	for (uint32_t i = 0; i < c->ring->nprocs && !r; i++)
		if (ring_proc(c->ring, i)->state == RING_RUN)
			r = ring_proc(c->ring, i);
	if (!r)
		return ESRCH;
	p = proc_new(c, r, r->pid, strdup(name), NULL);
	p->first = true;
	if (p->dir_fd < 0 ||
	    chunk_begin(c, proc_thread(c, ring_desc(c->ring, ring_thread(c->ring, 0)->chunk))))
		return errno;
	return json_proc(c, p, JSON_RUNNING);
}

/* ---- birth ---- */

static char *make_dir(struct collect *c, uint32_t pid)
{
	char name[64];

	for (int n = 0; n < 100000; n++) {
		snprintf(name, sizeof(name), "proc-%u.%d", pid, n);
		if (!mkdirat(c->run_fd, name, 0777))
			return strdup(name);
		if (errno != EEXIST)
			break;
	}
	failed(c, errno);
	return NULL;
}

/* the first n records of its parent's modules.bin are its own */
static int inherit(struct collect *c, const struct cproc *from, const struct cproc *to, uint32_t n)
{
	int in = proc_open(c, from, "modules.bin", O_RDONLY);
	int out = proc_open(c, to, "modules.bin", O_WRONLY | O_CREAT | O_APPEND);
	struct stat st;
	uint64_t at = 0;
	char *buf = NULL;
	int err = in < 0 || out < 0 || fstat(in, &st) ? errno : 0;

	if (!err && st.st_size) {
		buf = malloc((size_t)st.st_size);
		if (!buf || pread(in, buf, (size_t)st.st_size, 0) != st.st_size)
			err = EIO;
	}
	while (!err && n-- && at + sizeof(struct run_module) <= (uint64_t)st.st_size) {
		struct run_module m;

		memcpy(&m, buf + at, sizeof(m));
		at += m.size;
	}
	if (!err)
		err = write_at(out, buf, at, 0);
	free(buf);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return err;
}

/* a process that is not known yet; NULL, or its state */
static struct ring_proc *unknown(struct collect *c, uint32_t i, uint32_t *state)
{
	struct ring_proc *r = ring_proc(c->ring, i);

	*state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
	if (*state == RING_FREE || proc_at(i) || r->done) /* done: stopped, over */
		return NULL;
	return r;
}

static void born(struct collect *c, struct ring_proc *r);

/* The parent, which need not have been noticed yet: it may have come to life, and forked, behind the back of who looks
 * through the entries one after the other. */
static struct cproc *parent(struct collect *c, const struct ring_proc *r)
{
	uint32_t n = __atomic_load_n(&c->ring->nprocs, __ATOMIC_ACQUIRE), state;
	struct cproc *from = known(r->parent);

	for (uint32_t i = 0; i < n && !from && r->parent; i++) {
		struct ring_proc *q = unknown(c, i, &state);

		if (q && state != RING_TAKEN && q->uid == r->parent) {
			born(c, q);
			from = known(r->parent);
		}
	}
	return from;
}

static void born(struct collect *c, struct ring_proc *r)
{
	struct cproc *from = parent(c, r), *p;
	/* once: its parent may be about to say another one, where it is in a pid namespace of its own */
	uint32_t pid = __atomic_load_n(&r->pid, __ATOMIC_RELAXED);
	char *name = make_dir(c, pid);
	int err;

	if (!name)
		name = strdup("."); /* nothing will be written there */
	p = proc_new(c, r, pid, name, from);
	if (!from || c->error)
		return;
	err = inherit(c, from, p, r->nmodules);
	if (!err &&
	    state_of(p) == RING_RUN) /* else its end is told at once: a file that is replaced is dear */
		err = json_proc(c, p, JSON_RUNNING);
	failed(c, err);
}

static bool appeared(struct collect *c)
{
	uint32_t state;

	for (uint32_t i = 0; i < __atomic_load_n(&c->ring->nprocs, __ATOMIC_ACQUIRE); i++)
		if (unknown(c, i, &state) && state != RING_TAKEN)
			return true;
	return false;
}

/* Children that have appeared; true while one is expected. What their parents had said before they forked must
 * have been taken out of the ring: modules.bin is copied. */
static bool births(struct collect *c)
{
	static time_t since;
	bool expected = false;

	for (uint32_t i = 0; i < __atomic_load_n(&c->ring->nprocs, __ATOMIC_ACQUIRE); i++) {
		uint32_t state;
		struct ring_proc *r = unknown(c, i, &state);

		if (r && state != RING_TAKEN)
			born(c, r);
		expected |= r && state == RING_TAKEN;
	}
	if (!expected || live)
		since = 0;
	else if (!since)
		since = time(NULL);
	return expected && !(since && time(NULL) - since > UNBORN_S);
}

/* ---- threads ---- */

/* The process of a chunk: it may have been born, and even have ended, since proc_look(). */
static struct cproc *proc_of(struct collect *c, const struct ring_desc *d)
{
	struct cproc *p = proc_at(d->proc);

	if (p)
		return p;
	births(c);
	return proc_at(d->proc);
}

struct cthread *proc_thread(struct collect *c, const struct ring_desc *d)
{
	struct cthread **at = &thread[d->uid % HASH], *t;
	struct cproc *p;

	for (t = *at; t; t = t->next)
		if (t->uid == d->uid)
			return t;
	p = proc_of(c, d);
	if (!p)
		return NULL;
	t = calloc(1, sizeof(*t));
	t->p = p;
	t->uid = d->uid;
	t->tid = d->tid;
	t->next = *at;
	*at = t;
	p->nthreads++;
	return t;
}

void proc_forget(struct cthread *t)
{
	struct cthread **at = &thread[t->uid % HASH];

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
}

void proc_modules(struct collect *c, const struct ring_desc *d, const void *p)
{
	struct cproc *of = proc_of(c, d);
	int fd = of ? proc_open(c, of, "modules.bin", O_WRONLY | O_APPEND) : -1;
	struct stat st;
	int err = fd < 0 || fstat(fd, &st) ? errno : write_at(fd, p, d->bytes, (uint64_t)st.st_size);

	if (fd >= 0)
		close(fd);
	if (of)
		failed(c, err);
}

/* what a thread left in its chunk, up to the log pointer it published: all of it, where it was in a system call */
static void left(struct collect *c, struct cproc *p, uint32_t slot, uint32_t chunk)
{
	struct ring_head *h = c->ring;
	const struct ring_thread *th = ring_thread(h, slot);
	uint32_t start = ring_desc(h, chunk)->start;
	bool here = p->state == RING_STOP && th->uid == p->p->stop_uid, whole = here || th->calling;
	uint64_t rec = __atomic_load_n(&th->rec, __ATOMIC_ACQUIRE);
	uint64_t lp = rec ? rec : __atomic_load_n(&ring_tcb(h, slot)->lp, __ATOMIC_ACQUIRE);
	uint64_t n = lp - (h->base + ring_chunk_off(h->nthreads, h->nchunks, chunk)) - start;

	if (n > RING_BYTES - start)
		n = 0;
	if (here && p->p->extra <= RUN_CHUNK_SLACK)
		n += p->p->extra;
	else if (!whole && !rec && p->state != RING_STOP) /* it does not run any more */
		n = fill_end(c, chunk, start + (uint32_t)n, th->copied) - start;
	p->salvaged |= !whole;
	work_left(c, chunk, n, whole ? 1 : 2);
	if (p->state != RING_STOP)
		fill_again(c, chunk, start, start + (uint32_t)n);
}

static bool of_process(struct collect *c, uint32_t slot, uint32_t index)
{
	const struct ring_thread *th = ring_thread(c->ring, slot);

	return th->life != RING_THREAD_FREE && th->proc == index;
}

/* The chunk of a thread that does not run any more, or RING_NONE: killed when it had handed it over, that may be another
 * thread's by now */
static uint32_t own_chunk(struct collect *c, uint32_t slot)
{
	const struct ring_thread *th = ring_thread(c->ring, slot);
	uint32_t chunk = __atomic_load_n(&th->chunk, __ATOMIC_ACQUIRE);
	bool own = chunk < c->ring->nchunks && ring_desc(c->ring, chunk)->uid == th->uid &&
		   ring_desc(c->ring, chunk)->kind != RING_NOBODY;

	return own ? chunk : RING_NONE;
}

static void free_slot(struct collect *c, uint32_t slot, uint32_t chunk)
{
	struct ring_thread *th = ring_thread(c->ring, slot);

	if (chunk != RING_NONE) {
		ring_desc(c->ring, chunk)->kind = RING_NOBODY;
		ring_push_free(c->ring, chunk);
	}
	th->chunk = RING_NONE;
	if (th->life != RING_THREAD_ENDED)
		__atomic_sub_fetch(&c->ring->live, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&th->life, RING_THREAD_FREE, __ATOMIC_RELEASE);
}

/* What threads of p left. Those of a process that is about
 * to exit have given theirs away, and still run on their TCBs, up to the system call (rt_exit frees them): they
 * must not become another's, nor be taken for those of whoever has p's entry next. */
static void salvage(struct collect *c, struct cproc *p, bool alive)
{
	struct ring_head *h = c->ring;
	uint32_t index = index_of(c, p->p);

	for (uint32_t i = 0; i < __atomic_load_n(&h->nslots, __ATOMIC_ACQUIRE); i++) {
		uint32_t chunk;

		if (!of_process(c, i, index))
			continue;
		chunk = own_chunk(c, i);
		if (chunk != RING_NONE)
			left(c, p, i, chunk);
		if (p->state == RING_STOP)
			continue; /* it goes on, and needs them */
		/* it waited for the next one */
		p->salvaged |= chunk == RING_NONE && ring_thread(h, i)->life == RING_THREAD_LIVE;
		if (alive && p->state == RING_EXIT)
			ring_thread(h, i)->proc = RING_NONE;
		else
			free_slot(c, i, chunk);
	}
}

/* ---- end ---- */

static void let_go(struct cproc *p)
{
	p->let_go = true;
	__atomic_store_n(&p->p->done, 1, __ATOMIC_RELEASE);
	futex_wake(&p->p->done);
}

/* p says how it ends (fate ALIVE), or it has */
static void ends(struct collect *c, struct cproc *p, enum fate fate)
{
	work_drain(c);
	p->state = state_of(p);
	p->stop_reason = p->p->stop_reason;
	p->exit_code = p->p->exit_code;
	pt_end(p, p->state != RING_STOP || fate != FATE_ALIVE);
	salvage(c, p, fate == FATE_ALIVE);
	if (p->state == RING_STOP && p->p->stop.magic == RUN_STOP_MAGIC)
		json_stop(p);
	p->last = work_in();
	p->ending = true;
	if (work_finish(p->last, p->first && fate == FATE_ALIVE ? PATIENCE_MS : 1))
		return; /* and is over */
	work_begin(p);
	json_proc(c, p, JSON_ENDED);
	if (fate == FATE_ALIVE)
		let_go(p);
}

static void free_entry(struct cproc *p)
{
	if (p->pid_fd >= 0)
		close(p->pid_fd);
	__atomic_store_n(&p->p->state, RING_FREE, __ATOMIC_RELEASE);
	p->p = NULL;
}

static void over(struct collect *c, struct cproc *p)
{
	struct cproc **at = &live;

	json_proc(c, p, JSON_FINAL);
	if (p->first)
		json_run(c, p, JSON_FINAL);
	let_go(p);
	if (p->first)
		watch_exit(p, 2000); /* it is about to go: take its registry entry along */
	if (p->dir_fd >= 0)
		close(p->dir_fd); /* and with it the lock */
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	entry[index_of(c, p->p)] = NULL;
	if (p->state == RING_STOP) {
		p->next = stopped;
		stopped = p;
		return;
	}
	free_entry(p);
}

/* What processes whose trace had stopped have kept in the ring, after their end */
static void bury(struct collect *c)
{
	static time_t last;
	time_t now = time(NULL);

	if (now == last)
		return;
	last = now;
	for (struct cproc **at = &stopped, *p; (p = *at);) {
		if (!watch_gone(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		for (uint32_t i = 0; i < __atomic_load_n(&c->ring->nslots, __ATOMIC_ACQUIRE); i++)
			if (of_process(c, i, index_of(c, p->p)))
				free_slot(c, i, own_chunk(c, i));
		free_entry(p);
	}
}

bool proc_look(struct collect *c, bool *soon)
{
	bool expected;

	if (stopped)
		bury(c);
	if (appeared(c))
		work_drain(c);
	expected = births(c);
	*soon = false;
	for (struct cproc *p = live, *next; p; p = next) {
		uint32_t state = state_of(p);
		enum fate fate = FATE_ALIVE;

		next = p->next;
		if (!p->ending) {
			/* threads that still run when one says exit_group: until they do not */
			bool alone = !__atomic_load_n(&p->p->nlive, __ATOMIC_ACQUIRE);

			if (state == RING_EXIT && !alone && !p->let_go)
				let_go(p);
			if (state != RING_STOP && (state != RING_EXIT || !alone))
				fate = watch(c, p);
			*soon |= state == RING_EXEC || state == RING_EXIT;
			if (fate != FATE_ALIVE || state == RING_STOP || (state == RING_EXIT && alone))
				ends(c, p, fate);
		}
		if (p->ending && work_finish(p->last, 0))
			over(c, p);
		else
			*soon |= p->ending;
	}
	return live || expected;
}
