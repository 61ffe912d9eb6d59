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
#include <unistd.h>
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

/* a map in the run's directory, by the key in its head; not opened before it is needed */
struct mapfile {
	char *path;
	uint8_t key[32];
	uint32_t key_len;
};

static void forget_mapfiles(struct ptrace_run *r)
{
	for (uint32_t i = 0; i < r->nmapfile; i++)
		free(r->mapfile[i].path);
	r->nmapfile = 0;
}

/* Reads the directory, if it is not as it was when it was read last: a program that runs may add to it. */
static bool read_mapfiles(struct ptrace_run *r, const char *dir)
{
	struct dirent *d;
	struct stat st;
	DIR *h;

	if (stat(dir, &st) ||
	    (r->maps_time.tv_sec == st.st_mtim.tv_sec && r->maps_time.tv_nsec == st.st_mtim.tv_nsec))
		return false;
	r->maps_time = st.st_mtim;
	forget_mapfiles(r);
	h = opendir(dir);
	while (h && (d = readdir(h))) {
		struct map_head head;
		struct mapfile *m;
		char *path;
		FILE *f;

		if (!strstr(d->d_name, ".ptmap"))
			continue;
		path = xprintf("%s/%s", dir, d->d_name);
		f = fopen(path, "rb");
		if (f && fread(&head, sizeof(head), 1, f) == 1) {
			r->mapfile = xrealloc(r->mapfile, r->nmapfile + 1, sizeof(*r->mapfile));
			m = &r->mapfile[r->nmapfile++];
			m->path = path;
			m->key_len = head.key_len;
			memcpy(m->key, head.key, sizeof(m->key));
		} else {
			free(path);
		}
		if (f)
			fclose(f);
	}
	if (h)
		closedir(h);
	return true;
}

static struct map *map_in_dir(struct ptrace_run *r, const struct run_module *m, struct ptrace_error *e)
{
	struct map *found = NULL;

	for (uint32_t i = 0; i < r->nmapfile && !found; i++)
		if (r->mapfile[i].key_len == m->key_len && !memcmp(r->mapfile[i].key, m->key, 32))
			found = map_open(r->mapfile[i].path, e);
	return found;
}

static struct map *map_for(struct ptrace_run *r, const struct run_module *m, char **lost)
{
	struct ptrace_error e = {0};
	struct map *found;
	char *dir;

	for (uint32_t i = 0; i < r->nmap; i++)
		if (r->map[i]->head->key_len == m->key_len && !memcmp(r->map[i]->head->key, m->key, 32))
			return r->map[i];
	dir = xprintf("%s/maps", r->dir);
	found = map_in_dir(r, m, &e);
	if (!found && read_mapfiles(r, dir))
		found = map_in_dir(r, m, &e);
	if (found) {
		r->map = xrealloc(r->map, r->nmap + 1, sizeof(*r->map));
		r->map[r->nmap++] = found;
	} else {
		*lost = e.text[0] ? xprintf("%s", e.text) : xprintf("no map with its key in %s", dir);
	}
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

/* the first thread, then the others by id: mostly the order they were made in */
static int cmp_thread(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;
	bool p = x->pub.tid == x->pub.pid, q = y->pub.tid == y->pub.pid;

	if (p != q)
		return p ? -1 : 1;
	if (x->pub.tid != y->pub.tid)
		return x->pub.tid < y->pub.tid ? -1 : 1;
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

static void add_thread(struct ptrace_run *r, struct proc *p, const char *name)
{
	uint32_t tid, again;
	struct thread *t;

	if (!log_name(name, &tid, &again))
		return;
	if (r->nthread == PTRACE_MAX_THREADS) {
		run_note(r, "%s: more than %u threads; %s and others are left out", p->dir,
			 PTRACE_MAX_THREADS, name);
		return;
	}
	if (r->nthread == r->capthread) {
		r->capthread = r->capthread ? r->capthread * 2 : 64;
		r->thread = xrealloc(r->thread, r->capthread, sizeof(*r->thread));
	}
	t = xcalloc(1, sizeof(*t));
	t->proc = p;
	t->pub = (struct ptrace_thread){.pid = p->pid, .tid = tid, .image = p->image, .again = again};
	r->thread[r->nthread++] = t;
}

static void open_threads(struct ptrace_run *r, struct proc *p)
{
	DIR *h = opendir(p->dir);
	struct dirent *d;

	p->first = r->nthread;
	while (h && (d = readdir(h)))
		add_thread(r, p, d->d_name);
	if (h)
		closedir(h);
	p->nlog = r->nthread - p->first;
	if (p->nlog)
		qsort(r->thread + p->first, p->nlog, sizeof(*r->thread), cmp_thread);
}

char *thread_path(const struct thread *t)
{
	if (!t->pub.again)
		return xprintf("%s/thread-%u.log", t->proc->dir, t->pub.tid);
	return xprintf("%s/thread-%u.%u.log", t->proc->dir, t->pub.tid, t->pub.again);
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
	return xprintf("%s", end);
}

void proc_end(struct proc *p)
{
	char *path = xprintf("%s/proc.json", p->dir), *text = read_text(path), end[40];

	free(p->stop);
	free(p->end);
	p->ended = text && json_get(text, "end", end, sizeof(end));
	p->stop = how_ended(text);
	p->end = any_end(text, p->stop);
	free(text);
	free(path);
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
	char *path = xprintf("%s/proc.json", p->dir), *text = read_text(path), name[64];
	char cmd[400];
	int end = 0;

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
		if (p->start)
			p->tsc = p->start->s.tsc;
		else
			run_note(p->run, "%s; its first thread cannot be decoded", e.text);
	} else {
		log = xprintf("%s/thread-%u.log", p->dir, p->pid);
		p->tsc = log_start(log);
		free(log);
	}
	free(path);
}

static void open_proc(struct ptrace_run *r, const char *name, uint32_t pid, uint32_t image)
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
	proc_end(p);
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

/* Who was forked from whom; an image that is not the first of its process follows the one before. Damage may make
 * a ring of it, which is cut open. */
static void find_parents(struct ptrace_run *r)
{
	qsort(r->proc, r->nproc, sizeof(*r->proc), by_id);
	for (uint32_t i = 0; i < r->nproc; i++) {
		struct proc *p = r->proc[i], *up;
		uint32_t n = r->nproc;

		if (p->forked)
			p->parent = find_proc(r, p->parent_pid, p->parent_image);
		else if (p->image)
			p->parent = find_proc(r, p->pid, p->image - 1);
		for (up = p->parent; up && up != p && n--; up = up->parent)
			;
		if (up)
			p->parent = NULL;
		if (p->forked && !p->parent)
			run_note(r, "%s: the process it was forked from, %u.%u, is not in the run", p->dir,
				 p->parent_pid, p->parent_image);
	}
	qsort(r->proc, r->nproc, sizeof(*r->proc), by_time);
	for (uint32_t i = 0; i < r->nproc; i++)
		r->proc[i]->index = i;
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
	find_parents(r);
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
	free(p->end);
	free(p->command);
	free(p->dir);
	free(p);
}

void ptrace_run_close(ptrace_run *r)
{
	if (!r)
		return;
	sym_free(r->sym);
	for (uint32_t i = 0; i < r->nthread; i++)
		free(r->thread[i]);
	for (uint32_t i = 0; i < r->nproc; i++)
		close_proc(r->proc[i]);
	for (uint32_t i = 0; i < r->nmap; i++)
		map_close(r->map[i]);
	forget_mapfiles(r);
	free(r->mapfile);
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
