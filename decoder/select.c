/* SPDX-License-Identifier: MIT
 *
 * select.c - which threads of a run: --threads, --pid, --tid
 *
 *   --threads  3, 0-7 (numbers of the run's thread table), tid:1234
 *   --pid      1234 (all images of the process), 1234.1 (one)
 *   --tid      1234
 *
 * Lists with commas; a thread is chosen if every list that is given has it.
 */
#include <stdlib.h>
#include <string.h>
#include "out.h"

enum { NUMBERS, PID, TID };

struct range {
	uint32_t lo, hi;
	int what;
	bool image; /* PID: hi is the image */
};

/* one item of a list at s, its length; 0 if it is none */
static int item(const char *s, int list, struct range *r)
{
	int n = 0;

	*r = (struct range){.what = list};
	if (*s < '0' || *s > '9') {
		r->what = TID;
		if (list != NUMBERS || sscanf(s, "tid:%u%n", &r->lo, &n) != 1)
			return 0;
		r->hi = r->lo;
		return n;
	}
	if (list == NUMBERS && sscanf(s, "%u-%u%n", &r->lo, &r->hi, &n) == 2 && n)
		return n;
	n = 0;
	if (list == PID && sscanf(s, "%u.%u%n", &r->lo, &r->hi, &n) == 2 && n) {
		r->image = true;
		return n;
	}
	n = 0;
	if (sscanf(s, "%u%n", &r->lo, &n) != 1)
		return 0;
	r->hi = r->lo;
	return n;
}

/* image: as listed, or, as its directory says, the one that it goes on as */
static bool in(const struct range *r, uint32_t i, const struct thread *th)
{
	const struct ptrace_thread *t = &th->pub;

	switch (r->what) {
	case NUMBERS:
		return i >= r->lo && i <= r->hi;
	case PID:
		return t->pid == r->lo && (!r->image || t->image == r->hi || th->proc->image == r->hi);
	default:
		return t->tid == r->lo;
	}
}

/* drops the threads that are not in the list; false if it is no list */
static bool keep(const struct ptrace_run *r, const char *s, int list, uint32_t *thread, uint32_t *n)
{
	struct range *range = xcalloc(strlen(s) + 1, sizeof(*range));
	uint32_t nrange = 0, k = 0;
	bool ok = true;

	while (ok) {
		int len = item(s, list, &range[nrange]);

		ok = len && (!s[len] || s[len] == ',');
		nrange += ok;
		if (!ok || !s[len])
			break;
		s += len + 1;
	}
	for (uint32_t i = 0; i < *n && ok; i++)
		for (uint32_t j = 0; j < nrange; j++)
			if (in(&range[j], thread[i], r->thread[thread[i]])) {
				thread[k++] = thread[i];
				break;
			}
	*n = k;
	free(range);
	return ok;
}

uint32_t *select_threads(const struct ptrace_run *r, const struct selection *s, uint32_t *n, const char **bad)
{
	const char *const list[] = {[NUMBERS] = s->threads, [PID] = s->pid, [TID] = s->tid};
	uint32_t *thread = xcalloc(r->nthread, sizeof(*thread));

	*n = r->nthread;
	*bad = NULL;
	for (uint32_t i = 0; i < r->nthread; i++)
		thread[i] = i;
	for (int i = NUMBERS; i <= TID && !*bad; i++)
		if (list[i] && !keep(r, list[i], i, thread, n))
			*bad = list[i];
	if (!*bad)
		return thread;
	free(thread);
	return NULL;
}
