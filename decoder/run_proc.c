/* SPDX-License-Identifier: MIT
 *
 * run_proc.c - the processes of a run: how each began and ended, who was forked from whom, its threads
 *
 * No log is decoded here: a run may have very many.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dec.h"

/* the first thread, then the others by id: mostly the order they were made in */
static int cmp_thread(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;
	bool p = x->pub.tid == x->pub.pid, q = y->pub.tid == y->pub.pid;

	if (p != q)
		return p ? -1 : 1;
	if (x->pub.tid != y->pub.tid)
		return x->pub.tid < y->pub.tid ? -1 : 1;
	if (x->shared != y->shared)
		return x->shared ? 1 : -1;
	if (x->shared)
		return x->at < y->at ? -1 : x->at > y->at;
	return x->pub.again < y->pub.again ? -1 : x->pub.again > y->pub.again;
}

/* thread-TID.log, thread-TID.K.log */
static bool log_name(const char *name, uint32_t *tid, uint32_t *again)
{
	int end = 0;

	*again = 0;
	if (sscanf(name, "thread-%u.log%n", tid, &end) == 1 && end && !name[end])
		return true;
	end = 0;
	return sscanf(name, "thread-%u.%u.log%n", tid, again, &end) == 2 && end && !name[end];
}

static struct thread *add_thread(struct ptrace_run *r, struct proc *p, uint32_t tid, uint32_t again)
{
	struct thread *t;

	if (r->nthread == PTRACE_MAX_THREADS) {
		run_note(r, "%s: more than %u threads; %u and others are left out", p->dir,
			 PTRACE_MAX_THREADS, tid);
		return NULL;
	}
	if (r->nthread == r->capthread) {
		r->capthread = r->capthread ? r->capthread * 2 : 64;
		r->thread = xrealloc(r->thread, r->capthread, sizeof(*r->thread));
	}
	t = xcalloc(1, sizeof(*t));
	t->proc = p;
	t->rec = p->rec && p->rec->start->s.tid == tid && !again ? p->rec : NULL;
	t->pub = (struct ptrace_thread){.pid = p->pid, .tid = tid, .image = proc_image(p), .again = again};
	r->thread[r->nthread++] = t;
	return t;
}

static void add_file(struct ptrace_run *r, struct proc *p, const char *name)
{
	uint32_t tid, again;

	if (log_name(name, &tid, &again))
		add_thread(r, p, tid, again);
}

/* those that share a file */
static void add_shared(struct ptrace_run *r, struct proc *p)
{
	char *path = xprintf("%s/threads.log", p->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct run_chunk c;
	struct thread *t;
	struct stat st;

	for (uint64_t at = 0, next = 0; fd >= 0 && !fstat(fd, &st) && at < (uint64_t)st.st_size; at = next) {
		if (!log_head(fd, &next, &c) || next > (uint64_t)st.st_size) {
			/* not one that is only just being written */
			if (!dir_locked(p->dir))
				run_note(r, "%s: damaged at byte %llu, the threads behind that are missing",
					 path, (unsigned long long)at);
			break;
		}
		t = add_thread(r, p, c.tid, 0);
		if (!t)
			break;
		t->shared = true;
		t->at = at;
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

/* A thread id may have come again: those that share a file are numbered behind those that do not. */
static void number(struct ptrace_run *r, const struct proc *p)
{
	for (uint32_t i = p->first + 1; i < r->nthread; i++) {
		const struct ptrace_thread *before = &r->thread[i - 1]->pub;

		if (r->thread[i]->shared && r->thread[i]->pub.tid == before->tid)
			r->thread[i]->pub.again = before->again + 1;
	}
}

/* the thread of the recorded image, if what it did behind that is not there */
static void add_recorded(struct ptrace_run *r, struct proc *p)
{
	for (uint32_t i = p->first; i < r->nthread; i++)
		if (r->thread[i]->rec)
			return;
	add_thread(r, p, p->rec->start->s.tid, 0);
}

void run_open_threads(struct ptrace_run *r, struct proc *p)
{
	DIR *h = opendir(p->dir);
	struct dirent *d;

	p->first = r->nthread;
	while (h && (d = readdir(h)))
		add_file(r, p, d->d_name);
	if (h)
		closedir(h);
	add_shared(r, p);
	if (p->rec)
		add_recorded(r, p);
	p->nlog = r->nthread - p->first;
	if (p->nlog)
		qsort(r->thread + p->first, p->nlog, sizeof(*r->thread), cmp_thread);
	number(r, p);
}

char *thread_path(const struct thread *t, const struct proc *p)
{
	if (t->shared)
		return xprintf("%s/threads.log", p->dir);
	if (!t->pub.again)
		return xprintf("%s/thread-%u.log", p->dir, t->pub.tid);
	return xprintf("%s/thread-%u.%u.log", p->dir, t->pub.tid, t->pub.again);
}

uint32_t proc_image(const struct proc *p)
{
	return p->rec ? p->rec->image : p->image;
}

/* proc.json's word for a stop, in the reader's words */
static const char *stop_words(const char *why)
{
	static const char *const word[] = RUN_STOP_NAMES;

	for (uint64_t i = 0; i < NELEM(word); i++)
		if (!strcmp(why, word[i]))
			return stop_name(i);
	return why;
}

/* How the process ended, in words, when not by exit or exec. */
static char *how_ended(const char *json)
{
	char end[40], why[60], sig[20];

	if (!json || !json_get(json, "end", end, sizeof(end)))
		return NULL;
	if (json_get(json, "truncated", why, sizeof(why)))
		return xprintf("%s; %s (%s)", end, stop_name(RUN_STOP_SPACE), why);
	if (!strcmp(end, "exit") || !strcmp(end, "exec") || !strcmp(end, "switch"))
		return NULL;
	if (json_get(json, "exit_signal", sig, sizeof(sig)))
		return xprintf("%s by signal %s", end, sig);
	if (!strcmp(end, "killed"))
		return xprintf("killed, or ended in code that was not traced");
	if (!json_get(json, "stop_reason", why, sizeof(why)) || !strcmp(why, "none"))
		return xprintf("%s", end);
	return xprintf("%s (%s)", end, stop_words(why));
}

static void open_stop(struct proc *p)
{
	char *path = xprintf("%s/stop.bin", p->dir);
	struct run_stop_state s;
	size_t size;
	const uint8_t *b = file_map(path, &size, NULL);

	if (b && size >= sizeof(s)) {
		memcpy(&s, b, sizeof(s));
		if (s.magic != RUN_STOP_MAGIC || s.version != RUN_VERSION) {
			run_note(p->run,
				 "%s is damaged or of another version; the end of the trace is not exact",
				 path);
		} else if (s.async) {
			p->async = true;
			p->stop_at = s;
		}
	}
	file_unmap(b, size);
	free(path);
}

/* every way it ended, in words */
static char *any_end(const char *json, const char *stop)
{
	char end[40], status[20];

	if (stop)
		return xprintf("%s", stop);
	if (!json || !json_get(json, "end", end, sizeof(end)))
		return NULL;
	if (json_get(json, "exit_status", status, sizeof(status)))
		return xprintf("%s %s", end, status);
	if (!strcmp(end, "switch"))
		return xprintf("goes on, recorded in full");
	return xprintf("%s", end);
}

void proc_end(struct proc *p)
{
	char *path = xprintf("%s/proc.json", p->dir), *text = text_read(path), end[40];

	free(p->stop);
	free(p->end);
	p->ended = text && json_get(text, "end", end, sizeof(end));
	p->stopped = p->ended && !strcmp(end, "stopped");
	p->switched = p->ended && !strcmp(end, "switch");
	p->stop = how_ended(text);
	p->end = any_end(text, p->stop);
	free(text);
	free(path);
}

/* Of one that is gone ptrace-collect is about to say how it ended. Then stop.bin and all files of its threads are there,
 * though more may come into them. */
void proc_settle(struct proc *p)
{
	for (int i = 0; i < 2500; i++) {
		proc_end(p);
		if (p->ended || !kill((pid_t)p->pid, 0) || errno != ESRCH || !dir_locked(p->dir))
			break;
		usleep(2000);
	}
}

const struct run_start *proc_cpu(const struct proc *p)
{
	for (; p; p = p->parent)
		if (p->start)
			return &p->start->s;
	return NULL;
}

/* What proc.json says about where it came from; parents are looked up when all are known. */
static void open_json(struct proc *p)
{
	char *path = xprintf("%s/proc.json", p->dir), *text = text_read(path), name[64];
	char cmd[400];
	int end = 0;

	/* of one that has only just been made, or is being written: it is locked then, but for its first moment */
	for (int i = 0; !text && (i < 5 || dir_locked(p->dir)) && i < 5000; i++) {
		usleep(2000);
		text = text_read(path);
	}
	if (text && json_words(text, "command", cmd, sizeof(cmd)))
		p->command = xprintf("%s", cmd);
	if (text && json_get(text, "parent", name, sizeof(name)) &&
	    sscanf(name, "proc-%u.%u%n", &p->parent_pid, &p->parent_image, &end) == 2 && !name[end])
		p->forked = true;
	free(text);
	free(path);
}

/* Without a start state: a forked process, whose streams say how they begin. */
static void open_start(struct proc *p)
{
	char *path = xprintf("%s/start.bin", p->dir), *log;
	struct ptrace_error e = {0};

	p->tsc = UINT64_MAX;
	if (!p->forked || !access(path, F_OK)) {
		p->start = start_open(path, &e);
		if (p->start) {
			p->tsc = p->start->s.tsc;
			p->recorded = p->start->s.replay;
		} else if (p->stopped && access(path, F_OK)) {
			p->untraced = true;
			run_note(p->run, "pid %u: nothing was traced: %s", p->pid, p->stop);
		} else {
			run_note(p->run, "%s; its first thread cannot be decoded", e.text);
		}
	} else {
		log = xprintf("%s/thread-%u.log", p->dir, p->pid);
		p->tsc = log_start(log, 0);
		free(log);
	}
	free(path);
}

void run_open_proc(struct ptrace_run *r, const char *name, uint32_t pid, uint32_t image)
{
	struct proc *p = xcalloc(1, sizeof(*p));

	p->run = r;
	p->dir = xprintf("%s/%s", r->dir, name);
	p->pid = pid;
	p->image = image;
	if (r->nproc == r->capproc) {
		r->capproc = r->capproc ? r->capproc * 2 : 16;
		r->proc = xrealloc(r->proc, r->capproc, sizeof(*r->proc));
	}
	r->proc[r->nproc++] = p;
	open_json(p);
	proc_settle(p);
	open_stop(p);
	open_start(p);
}

static int by_id(const void *a, const void *b)
{
	const struct proc *x = *(struct proc *const *)a, *y = *(struct proc *const *)b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->image < y->image ? -1 : x->image > y->image;
}

/* a parent is there before its child, even where time stamps are missing or damaged */
static uint64_t since(const struct proc *p)
{
	uint64_t tsc = p->tsc;
	uint32_t n = p->run->nproc;

	for (; tsc == UINT64_MAX && p->parent && n--; p = p->parent)
		tsc = p->parent->tsc;
	return tsc;
}

static int by_time(const void *a, const void *b)
{
	const struct proc *x = *(struct proc *const *)a, *y = *(struct proc *const *)b;
	uint64_t s = since(x), t = since(y);

	return s != t ? s < t ? -1 : 1 : by_id(a, b);
}

static struct proc *find_proc(const struct ptrace_run *r, uint32_t pid, uint32_t image)
{
	const struct proc key = {.pid = pid, .image = image}, *k = &key;
	struct proc **p = bsearch(&k, r->proc, r->nproc, sizeof(*r->proc), by_id);

	return p ? *p : NULL;
}

/* did it go on as another image of its process, as far as is known? Else a later one has its id by chance */
static bool goes_on(const struct proc *p)
{
	return !p->end || (strncmp(p->end, "exit", 4) && strncmp(p->end, "killed", 6));
}

/* The image that p was before its exec: the last one of the process that began earlier. Their numbers do not say
 * it where a forked process's first image got its number late. */
static struct proc *image_before(const struct ptrace_run *r, const struct proc *p, uint32_t at)
{
	struct proc *last = NULL;

	while (at && r->proc[at - 1]->pid == p->pid)
		at--;
	for (; at < r->nproc && r->proc[at]->pid == p->pid; at++) {
		struct proc *k = r->proc[at];
		bool earlier = k->tsc != p->tsc ? k->tsc < p->tsc : k->image < p->image;

		if (k != p && earlier && (!last || k->tsc >= last->tsc))
			last = k;
	}
	return last && goes_on(last) ? last : NULL;
}

/* p goes on with its parent, a recorded image: one process image for whoever reads the run */
static void join_recorded(struct proc *p)
{
	struct proc *rec = p->parent;

	p->rec = rec;
	p->parent = rec->parent;
	p->forked = rec->forked;
	p->parent_pid = rec->parent_pid;
	p->parent_image = rec->parent_image;
	p->tsc = rec->tsc;
	if (!p->command) {
		p->command = rec->command;
		rec->command = NULL;
	}
}

static bool is_rest(const struct proc *p)
{
	return p->parent && !p->forked && p->parent->switched && p->parent->recorded && !p->parent->rest &&
	       p->start;
}

/* Recorded images are taken out of the table, into those that go on with them. */
static void join_all(struct ptrace_run *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nproc; i++)
		if (is_rest(r->proc[i])) {
			r->proc[i]->parent->rest = r->proc[i];
			join_recorded(r->proc[i]);
		}
	for (uint32_t i = 0; i < r->nproc; i++) {
		struct proc *p = r->proc[i];

		while (p->parent && p->parent->rest)
			p->parent = p->parent->rest;
		if (!p->rest)
			r->proc[n++] = p;
	}
	r->nproc = n;
}

/* Who was forked from whom, and what was exec'd by whom. Damage may make a ring of it, which is cut open. */
void run_find_parents(struct ptrace_run *r)
{
	qsort(r->proc, r->nproc, sizeof(*r->proc), by_id);
	for (uint32_t i = 0; i < r->nproc; i++) {
		struct proc *p = r->proc[i], *up;
		uint32_t n = r->nproc;

		p->parent = p->forked ? find_proc(r, p->parent_pid, p->parent_image) : image_before(r, p, i);
		for (up = p->parent; up && up != p && n--; up = up->parent)
			;
		if (up)
			p->parent = NULL;
		if (p->forked && !p->parent)
			run_note(r, "%s: the process it was forked from, %u.%u, is not in the run", p->dir,
				 p->parent_pid, p->parent_image);
	}
	join_all(r);
	qsort(r->proc, r->nproc, sizeof(*r->proc), by_time);
	for (uint32_t i = 0; i < r->nproc; i++)
		r->proc[i]->index = i;
}
