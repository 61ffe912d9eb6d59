/* SPDX-License-Identifier: MIT
 *
 * report_tree.c - the processes and threads of a run, as a tree: --list, and short in --summary
 *
 * A forked process stands below the image it was forked from, an image that was exec'd below the one before,
 * not further in.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"

typedef unsigned long long ull;

#define SHORT 100 /* of a command, in the summary */

struct tree {
	FILE *f;
	struct ptrace_run *run;
	uint32_t *child, *sibling; /* by process: first child, next of the same parent; NONE32 */
	uint32_t left; /* lines that may still be printed */
	uint32_t more; /* that were not */
	void (*modules)(FILE *f, const struct proc *p, int in); /* or NULL */
};

static int indent(int depth)
{
	return 2 * (depth < 20 ? depth : 20);
}

static bool room(struct tree *t)
{
	t->more += !t->left;
	t->left -= t->left > 0;
	return !t->more;
}

static void threads(struct tree *t, const struct proc *p, int in)
{
	for (uint32_t i = p->first; i < p->first + p->nlog; i++) {
		const struct thread *th = t->run->thread[i];
		char buf[40];

		if (!room(t))
			continue;
		fprintf(t->f, "%*sthread %u: tid %u", in + 2, "", i, th->pub.tid);
		if (th->pub.again)
			fprintf(t->f, " (used again, %u)", th->pub.again);
		if (th->pub.tid == p->pid)
			fprintf(t->f, " (first)");
		if (th->decoded)
			fprintf(t->f, ", %llu accesses, %s", (ull)th->pub.records,
				thread_end(th, buf, sizeof(buf)));
		putc('\n', t->f);
	}
}

static void command(const struct tree *t, const char *s)
{
	bool cut = !t->modules && strlen(s) > SHORT;

	fprintf(t->f, ": %.*s%s", cut ? SHORT : INT_MAX, s, cut ? "…" : "");
}

static void process(struct tree *t, uint32_t at, int depth)
{
	/* an image's successors are gone through here, children by recursion; find_parents leaves no ring */
	for (uint32_t next; at != NONE32; at = next) {
		const struct proc *p = t->run->proc[at];
		int in = indent(depth);

		next = NONE32;
		if (room(t)) {
			fprintf(t->f, "%*sprocess %u image %u", in, "", p->pid, proc_image(p));
			if (p->rec)
				fprintf(t->f, ", from %u on in full", p->image);
			if (p->forked)
				fprintf(t->f, ", forked from %u.%u", p->parent_pid, p->parent_image);
			command(t, p->command ? p->command : "(command not known)");
			fprintf(t->f, ": %s\n", p->end ? p->end : "its end is not known");
		}
		threads(t, p, in);
		if (t->modules)
			t->modules(t->f, p, in + 2);
		for (uint32_t k = t->child[at]; k != NONE32; k = t->sibling[k])
			if (t->run->proc[k]->forked)
				process(t, k, depth + 1);
			else
				next = k;
	}
}

void report_tree(FILE *f, struct ptrace_run *r, uint32_t lines,
		 void (*modules)(FILE *, const struct proc *, int))
{
	struct tree t = {.f = f, .run = r, .left = lines, .modules = modules};

	t.child = xcalloc(r->nproc, sizeof(*t.child));
	t.sibling = xcalloc(r->nproc, sizeof(*t.sibling));
	memset(t.child, 0xff, r->nproc * sizeof(*t.child));
	for (uint32_t i = r->nproc; i--;) {
		const struct proc *up = r->proc[i]->parent;

		if (!up)
			continue;
		t.sibling[i] = t.child[up->index];
		t.child[up->index] = i;
	}
	for (uint32_t i = 0; i < r->nproc; i++)
		if (!r->proc[i]->parent)
			process(&t, i, 0);
	if (t.more)
		fprintf(f, "… and %u more lines: see --list\n", t.more);
	free(t.child);
	free(t.sibling);
}
