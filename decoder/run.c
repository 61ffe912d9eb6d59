/* SPDX-License-Identifier: MIT
 *
 * run.c - a run directory: opening, its tables, closing
 *
 * Opened for reading while it may still be written. A part that is damaged costs that part: the
 * rest stays usable and one note says what was lost.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "dec.h"
#include "pt.h"

#define LOOKS 4 /* at the list of processes */

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

static int check_version(const char *dir, struct ptrace_error *err)
{
	char *path = xprintf("%s/run.json", dir), *text = text_read(path), v[32];
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

static bool is_open(const struct ptrace_run *r, uint32_t pid, uint32_t image)
{
	for (uint32_t i = 0; i < r->nproc; i++)
		if (r->proc[i]->pid == pid && r->proc[i]->image == image)
			return true;
	return false;
}

/* true: there were some that are new */
static bool open_procs(struct ptrace_run *r, DIR *h)
{
	uint32_t before = r->nproc, pid, image;
	struct dirent *d;

	while ((d = readdir(h))) {
		int end = 0;

		if (sscanf(d->d_name, "proc-%u.%u%n", &pid, &image, &end) == 2 && !d->d_name[end] &&
		    !is_open(r, pid, image))
			run_open_proc(r, d->d_name, pid, image);
	}
	return r->nproc > before;
}

ptrace_run *ptrace_run_open(const char *dir, void (*note)(void *, const char *), void *ctx,
			    struct ptrace_error *err)
{
	struct ptrace_run *r;
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
	/* ptrace-collect may have been about to make some; a run that goes on may never have all */
	for (int i = 0; i < LOOKS && open_procs(r, h); i++)
		rewinddir(h);
	closedir(h);
	if (!r->nproc) {
		err_set(err, PTRACE_BAD,
			"%s holds no traced process (no proc-PID.N in it): is it a run directory, "
			"and did the program start with libptrace_rt.so?",
			dir);
		ptrace_run_close(r);
		return NULL;
	}
	run_find_parents(r);
	for (uint32_t i = 0; i < r->nproc; i++) {
		run_open_modules(r->proc[i]);
		if (r->proc[i]->rec)
			run_open_modules(r->proc[i]->rec);
		run_open_threads(r, r->proc[i]);
	}
	r->sym = sym_new(r);
	return r;
}

static void close_proc(struct proc *p)
{
	if (p->rec)
		close_proc(p->rec);
	hand_free(p->hand);
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
	ptcode_free(r->code);
	for (uint32_t i = 0; i < r->nthread; i++)
		free(r->thread[i]);
	for (uint32_t i = 0; i < r->nproc; i++)
		close_proc(r->proc[i]);
	for (uint32_t i = 0; i < r->nmap; i++) {
		pool_free(r->map[i]);
		map_close(r->map[i]);
	}
	run_forget_maps(r);
	free(r->mapfile);
	free(r->thread);
	free(r->proc);
	free(r->map);
	free(r->plist);
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

uint32_t ptrace_run_processes(const ptrace_run *run, const struct ptrace_process **list)
{
	struct ptrace_run *r = (struct ptrace_run *)run;

	r->plist = xrealloc(r->plist, r->nproc, sizeof(*r->plist));
	for (uint32_t i = 0; i < r->nproc; i++) {
		const struct proc *p = r->proc[i];

		r->plist[i] = (struct ptrace_process){p->pid,
						      proc_image(p),
						      p->parent ? p->parent->index : UINT32_MAX,
						      p->forked,
						      p->first,
						      p->nlog,
						      p->command ? p->command : "",
						      p->end ? p->end : ""};
	}
	*list = r->plist;
	return r->nproc;
}

/* from's modules, as p's */
static uint32_t add_modules(struct ptrace_module *list, const struct proc *p, const struct proc *from)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < from->nmod; k++) {
		const struct run_module *m = &from->mod[k].m;

		if (m->kind && (from == p || !run_module_known(p, &from->mod[k])))
			list[n++] = (struct ptrace_module){m->bias,
							   m->lo,
							   m->hi,
							   p->pid,
							   proc_image(p),
							   from->mod[k].map != NULL,
							   0,
							   from->mod[k].path};
	}
	return n;
}

uint32_t ptrace_run_modules(const ptrace_run *run, const struct ptrace_module **list)
{
	struct ptrace_run *r = (struct ptrace_run *)run;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nproc; i++)
		n += r->proc[i]->nmod + (r->proc[i]->rec ? r->proc[i]->rec->nmod : 0);
	r->mlist = xrealloc(r->mlist, n, sizeof(*r->mlist));
	n = 0;
	for (uint32_t i = 0; i < r->nproc; i++) {
		const struct proc *p = r->proc[i];

		n += add_modules(r->mlist + n, p, p);
		if (p->rec)
			n += add_modules(r->mlist + n, p, p->rec);
	}
	*list = r->mlist;
	return r->nmlist = n;
}
