/* SPDX-License-Identifier: MIT
 *
 * run.c - a run directory: processes, threads, modules, maps
 *
 * Opened for reading while it may still be written. A part that is damaged costs that part: the
 * rest stays usable and one note says what was lost. Maps are matched by the key in their
 * head, not by their file name.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>
#include "dec.h"

void run_note(struct ptrace_run *r, const char *fmt, ...)
{
	char line[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	one_line(line);
	r->damage++;
	if (r->note)
		r->note(r->note_ctx, line);
}

/* ---- maps --------------------------------------------------------------------------------- */

static struct map *map_for(struct ptrace_run *r, const struct run_module *m, char **lost)
{
	char *dir = xprintf("%s/maps", r->dir);
	struct ptrace_error e = {0};
	struct map *found = NULL;
	struct dirent *d;
	DIR *h;

	for (uint32_t i = 0; i < r->nmap && !found; i++)
		if (r->map[i]->head->key_len == m->key_len && !memcmp(r->map[i]->head->key, m->key, 32))
			found = r->map[i];
	h = found ? NULL : opendir(dir);
	while (h && !found && (d = readdir(h))) {
		struct map_head head;
		char *path;
		FILE *f;

		if (!strstr(d->d_name, ".ptmap"))
			continue;
		path = xprintf("%s/%s", dir, d->d_name);
		f = fopen(path, "rb");
		if (f && fread(&head, sizeof(head), 1, f) == 1 && head.key_len == m->key_len &&
		    !memcmp(head.key, m->key, 32) && (found = map_open(path, &e))) {
			r->map = xrealloc(r->map, r->nmap + 1, sizeof(*r->map));
			r->map[r->nmap++] = found;
		}
		if (f)
			fclose(f);
		free(path);
	}
	if (h)
		closedir(h);
	if (!found)
		*lost = e.text[0] ? xprintf("%s", e.text) : xprintf("no map with its key in %s", dir);
	free(dir);
	return found;
}

/* ---- modules.bin -------------------------------------------------------------------------- */

static bool modrec_ok(const struct run_module *m, size_t left, uint32_t index)
{
	struct run_module copy = *m;
	XXH3_state_t *x;
	uint64_t h;

	if (m->magic != RUN_MODULE_MAGIC || m->size < sizeof(*m) || m->size > left || m->size % 8 ||
	    m->path_len > m->size - sizeof(*m) || m->index != index || m->kind > 2 || m->key_len > 32)
		return false;
	copy.xxh3 = 0;
	x = XXH3_createState();
	if (!x)
		return false;
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, &copy, sizeof(copy));
	XXH3_64bits_update(x, m + 1, m->size - sizeof(*m));
	h = XXH3_64bits_digest(x);
	XXH3_freeState(x);
	return h == m->xxh3;
}

static void add_module(struct proc *p, const struct run_module *m)
{
	struct modrec *r;
	size_t n = m->path_len;

	p->mod = xrealloc(p->mod, p->nmod + 1, sizeof(*p->mod));
	r = &p->mod[p->nmod++];
	memset(r, 0, sizeof(*r));
	r->m = *m;
	r->path = xcalloc(n + 1, 1);
	memcpy(r->path, m + 1, n);
	if (m->kind != 1)
		return;
	r->map = map_for(p->run, m, &r->lost);
	if (!r->map)
		run_note(p->run, "%s: module %s cannot be decoded: %s", p->dir, r->path, r->lost);
}

static void open_modules(struct proc *p)
{
	char *path = xprintf("%s/modules.bin", p->dir);
	struct ptrace_error e = {0};
	size_t size, at = 0;
	const uint8_t *b = file_map(path, &size, &e);

	if (!b || !size)
		run_note(p->run,
			 "%s: no module is known, nothing of this process can be decoded: record again",
			 b ? path : e.text);
	while (b && size - at >= sizeof(struct run_module)) {
		const struct run_module *m = (const void *)(b + at);

		if (!modrec_ok(m, size - at, p->nmod)) {
			run_note(
				p->run,
				"%s: record %u at byte %zu is damaged or cut; modules from there on are lost",
				path, p->nmod, at);
			at = size;
			break;
		}
		add_module(p, m);
		at += m->size;
	}
	if (at < size)
		run_note(p->run, "%s: record %u at byte %zu is cut; modules from there on are lost", path,
			 p->nmod, at);
	file_unmap(b, size);
	free(path);
}

/* ---- processes and threads ------------------------------------------------------------------ */

static char *read_text(const char *path)
{
	size_t size;
	const uint8_t *b = file_map(path, &size, NULL);
	char *s;

	if (!b)
		return NULL;
	s = xcalloc(size + 1, 1);
	memcpy(s, b, size);
	file_unmap(b, size);
	return s;
}

static int cmp_thread(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;

	return x->pub.tid < y->pub.tid ? -1 : x->pub.tid > y->pub.tid;
}

static void open_threads(struct ptrace_run *r, struct proc *p)
{
	DIR *h = opendir(p->dir);
	uint32_t first = r->nthread;
	struct dirent *d;

	while (h && (d = readdir(h))) {
		uint32_t tid;
		int end = 0;
		struct thread *t;

		if (sscanf(d->d_name, "thread-%u.log%n", &tid, &end) != 1 || !end || d->d_name[end])
			continue;
		if (r->nthread == 65536) {
			run_note(r, "%s: more than 65536 threads; thread %u and others are left out", p->dir,
				 tid);
			continue;
		}
		t = xcalloc(1, sizeof(*t));
		t->proc = p;
		t->path = xprintf("%s/%s", p->dir, d->d_name);
		t->pub.pid = p->pid;
		t->pub.tid = tid;
		t->pub.image = p->image;
		r->thread = xrealloc(r->thread, r->nthread + 1, sizeof(*r->thread));
		r->thread[r->nthread++] = t;
	}
	if (h)
		closedir(h);
	if (r->nthread > first)
		qsort(r->thread + first, r->nthread - first, sizeof(*r->thread), cmp_thread);
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
	if (!strcmp(end, "exit") || !strcmp(end, "exec"))
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

void proc_end(struct proc *p)
{
	char *path = xprintf("%s/proc.json", p->dir), *text = read_text(path), end[40];

	free(p->stop);
	p->ended = text && json_get(text, "end", end, sizeof(end));
	p->stop = how_ended(text);
	free(text);
	free(path);
}

static void open_proc(struct ptrace_run *r, const char *name, uint32_t pid, uint32_t image)
{
	struct proc *p = xcalloc(1, sizeof(*p));
	struct ptrace_error e = {0};
	char *path;

	p->run = r;
	p->dir = xprintf("%s/%s", r->dir, name);
	p->pid = pid;
	p->image = image;
	r->proc = xrealloc(r->proc, r->nproc + 1, sizeof(*r->proc));
	r->proc[r->nproc++] = p;
	proc_end(p);
	open_stop(p);
	path = xprintf("%s/start.bin", p->dir);
	p->start = start_open(path, &e);
	if (!p->start)
		run_note(r, "%s; its first thread cannot be decoded", e.text);
	free(path);
}

static int cmp_proc(const void *a, const void *b)
{
	const struct proc *x = *(struct proc *const *)a, *y = *(struct proc *const *)b;
	uint64_t s = x->start ? x->start->s.tsc : ~0ull, t = y->start ? y->start->s.tsc : ~0ull;

	if (s != t)
		return s < t ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->image < y->image ? -1 : x->image > y->image;
}

static int check_version(const char *dir, struct ptrace_error *err)
{
	char *path = xprintf("%s/run.json", dir), *text = read_text(path), v[32];
	int rc = 0;

	if (text && json_get(text, "version", v, sizeof(v)) && strtoul(v, NULL, 10) != RUN_VERSION)
		rc = err_set(err, PTRACE_BAD,
			     "%s has run version %s, this decoder reads %d: use the "
			     "ptrace-decode of the version that made the run",
			     dir, v, RUN_VERSION);
	free(text);
	free(path);
	return rc;
}

ptrace_run *ptrace_run_open(const char *dir, void (*note)(void *, const char *), void *ctx,
			    struct ptrace_error *err)
{
	struct ptrace_run *r;
	struct dirent *d;
	DIR *h = opendir(dir);

	if (!h) {
		err_set(err, PTRACE_BAD, "cannot open the run directory %s: %s", dir, strerror(errno));
		return NULL;
	}
	if (check_version(dir, err)) {
		closedir(h);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r));
	r->dir = xprintf("%s", dir);
	r->note = note;
	r->note_ctx = ctx;
	while ((d = readdir(h))) {
		uint32_t pid, image;
		int end = 0;

		if (sscanf(d->d_name, "proc-%u.%u%n", &pid, &image, &end) == 2 && !d->d_name[end])
			open_proc(r, d->d_name, pid, image);
	}
	closedir(h);
	if (!r->nproc) {
		err_set(err, PTRACE_BAD,
			"%s holds no traced process (no proc-PID.N in it): is it a run directory, "
			"and did the program start with libptrace_rt.so?",
			dir);
		ptrace_run_close(r);
		return NULL;
	}
	qsort(r->proc, r->nproc, sizeof(*r->proc), cmp_proc);
	for (uint32_t i = 0; i < r->nproc; i++) {
		open_modules(r->proc[i]);
		open_threads(r, r->proc[i]);
	}
	r->sym = sym_new(r);
	return r;
}

static void close_proc(struct proc *p)
{
	for (uint32_t i = 0; i < p->nmod; i++) {
		free(p->mod[i].path);
		free(p->mod[i].lost);
	}
	free(p->mod);
	start_close(p->start);
	free(p->stop);
	free(p->dir);
	free(p);
}

void ptrace_run_close(ptrace_run *r)
{
	if (!r)
		return;
	sym_free(r->sym);
	for (uint32_t i = 0; i < r->nthread; i++) {
		free(r->thread[i]->path);
		free(r->thread[i]);
	}
	for (uint32_t i = 0; i < r->nproc; i++)
		close_proc(r->proc[i]);
	for (uint32_t i = 0; i < r->nmap; i++)
		map_close(r->map[i]);
	free(r->thread);
	free(r->proc);
	free(r->map);
	free(r->tlist);
	free(r->mlist);
	free(r->dir);
	free(r);
}

uint32_t ptrace_run_threads(const ptrace_run *run, const struct ptrace_thread **list)
{
	struct ptrace_run *r = (struct ptrace_run *)run;

	r->tlist = xrealloc(r->tlist, r->nthread, sizeof(*r->tlist));
	for (uint32_t i = 0; i < r->nthread; i++)
		r->tlist[i] = r->thread[i]->pub;
	*list = r->tlist;
	return r->nthread;
}

uint32_t ptrace_run_modules(const ptrace_run *run, const struct ptrace_module **list)
{
	struct ptrace_run *r = (struct ptrace_run *)run;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nproc; i++)
		n += r->proc[i]->nmod;
	r->mlist = xrealloc(r->mlist, n, sizeof(*r->mlist));
	n = 0;
	for (uint32_t i = 0; i < r->nproc; i++) {
		const struct proc *p = r->proc[i];

		for (uint32_t k = 0; k < p->nmod; k++) {
			const struct run_module *m = &p->mod[k].m;

			if (m->kind)
				r->mlist[n++] =
					(struct ptrace_module){m->bias, m->lo,	       m->hi,
							       p->pid,	p->image,      p->mod[k].map != NULL,
							       0,	p->mod[k].path};
		}
	}
	*list = r->mlist;
	return r->nmlist = n;
}
