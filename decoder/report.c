/* SPDX-License-Identifier: MIT
 *
 * report.c - summaries for people (--summary, --list, --verify) and programs (--json, --ranges)
 */
#include <stdlib.h>
#include <string.h>
#include "out.h"

typedef unsigned long long ull;

#define TREE_LINES 40 /* of the summary: processes and threads */

static int by_count(const void *a, const void *b)
{
	const struct fcount *x = a, *y = b;

	return x->count < y->count ? 1 : x->count > y->count ? -1 : x->vaddr < y->vaddr ? -1 : 1;
}

static int by_opaque(const void *a, const void *b)
{
	const struct fcount *x = a, *y = b;

	return x->opaque < y->opaque ? 1 : x->opaque > y->opaque ? -1 : x->vaddr < y->vaddr ? -1 : 1;
}

static int by_log(const void *a, const void *b)
{
	const struct fcount *x = a, *y = b;

	return x->log < y->log ? 1 : x->log > y->log ? -1 : x->vaddr < y->vaddr ? -1 : 1;
}

static const char *const why_name[SEM_NWHY] = {
	[SEM_WHY_OTHER] = "other_value",
	[SEM_WHY_LOAD] = "loaded_value",
	[SEM_WHY_SLOT] = "stack_value",
	[SEM_WHY_ENTRY] = "entry_need",
	[SEM_WHY_RETURN] = "call_result",
	[SEM_WHY_JOIN] = "join",
	[SEM_WHY_ADDRESS] = "address",
	[SEM_WHY_TARGET] = "target",
	[SEM_WHY_BRANCH] = "branch",
	[SEM_WHY_VECTOR] = "vector",
	[SEM_WHY_VERIFY] = "verify",
	[SEM_WHY_TIME] = "time",
	[SEM_WHY_ENTRY_MARK] = "entry_mark",
	[SEM_WHY_RETURN_MARK] = "return_mark",
	[SEM_WHY_SYSCALL_MARK] = "syscall_mark",
};

static const char *base(const struct modrec *rec)
{
	const char *b = rec ? strrchr(rec->path, '/') : NULL;

	return !rec ? "?" : b ? b + 1 : rec->path;
}

static const char *fname(const struct fcount *f, char *buf, size_t n)
{
	if (f->name)
		return f->name;
	snprintf(buf, n, "+%#llx", (ull)f->vaddr);
	return buf;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void functions(FILE *f, struct stats *s)
{
	char buf[40];

	qsort(s->fn, s->nfn, sizeof(*s->fn), by_count);
	if (s->st.accesses)
		fprintf(f, "\nfunctions by accesses\n");
	for (uint32_t i = 0; i < s->nfn && i < 15 && s->fn[i].count; i++)
		fprintf(f, "  %15llu %5.1f %%  %s (%s)\n", (ull)s->fn[i].count,
			percent(s->fn[i].count, s->st.accesses), fname(&s->fn[i], buf, sizeof(buf)),
			base(s->fn[i].rec));
	qsort(s->fn, s->nfn, sizeof(*s->fn), by_opaque);
	if (s->st.opaque_entries)
		fprintf(f, "\nuntraced code ran %llu times (%.3f per 1,000 instructions), left to from\n",
			(ull)s->st.opaque_entries,
			s->st.instructions ? 1e3 * (double)s->st.opaque_entries / (double)s->st.instructions
					   : 0);
	for (uint32_t i = 0; i < s->nfn && i < 10 && s->fn[i].opaque; i++)
		fprintf(f, "  %15llu          %s (%s)\n", (ull)s->fn[i].opaque,
			fname(&s->fn[i], buf, sizeof(buf)), base(s->fn[i].rec));
}

static void causes(FILE *f, struct stats *s)
{
	const struct ptrace_stats *t = &s->st;
	double ki = t->instructions ? (double)t->instructions / 1e3 : 1;
	char buf[40];

	fprintf(f, "\nlog by cause, bytes per 1,000 instructions\n");
	for (int k = 0; k < SEM_NWHY; k++)
		if (s->why_bytes[k])
			fprintf(f, "  %15.2f %5.1f %%  %s\n", (double)s->why_bytes[k] / ki,
				percent(s->why_bytes[k], t->log_bytes_used), why_name[k]);
	qsort(s->fn, s->nfn, sizeof(*s->fn), by_log);
	fprintf(f, "\nfunctions by log bytes per 1,000 instructions of the run\n");
	for (uint32_t i = 0; i < s->nfn && i < 15 && s->fn[i].log; i++)
		fprintf(f, "  %15.2f %5.1f %%  %s (%s)\n", (double)s->fn[i].log / ki,
			percent(s->fn[i].log, t->log_bytes_used), fname(&s->fn[i], buf, sizeof(buf)),
			base(s->fn[i].rec));
}

void report_text(FILE *f, struct stats *s)
{
	const struct ptrace_stats *t = &s->st;
	double ki = t->instructions ? (double)t->instructions / 1e3 : 1;
	uint64_t lines, pages;
	bool all;

	foot_count(s->foot, &lines, &pages, &all);
	fprintf(f, "run           %s: %u process%s, %u thread%s, %s\n", s->run->dir, s->run->nproc,
		s->run->nproc == 1 ? "" : "es", s->run->nthread, s->run->nthread == 1 ? "" : "s",
		s->complete ? "complete" : "NOT complete");
	if (!s->complete)
		fprintf(f, "              %s\n", s->reason);
	fprintf(f, "instructions  %llu\n", (ull)t->instructions);
	fprintf(f,
		"accesses      %llu (%.0f per 1,000 instructions): %llu reads, %llu writes, %llu "
		"prefetches\n",
		(ull)t->accesses, (double)t->accesses / ki, (ull)t->reads, (ull)t->writes,
		(ull)t->prefetches);
	fprintf(f, "footprint     %s%llu lines of 64 bytes, %llu pages of 4 KiB (%.1f MiB)\n",
		all ? "" : "at least ", (ull)lines, (ull)pages, (double)pages / 256);
	fprintf(f, "log           %llu bytes (%.1f per 1,000 instructions), %llu on disk\n",
		(ull)t->log_bytes_raw, (double)t->log_bytes_raw / ki, (ull)t->log_bytes_disk);
	if (t->losses || t->lost_bytes)
		fprintf(f,
			"lost          control flow %llu times: %llu bytes of the log and %llu TSC ticks are "
			"left out\n",
			(ull)t->losses, (ull)t->lost_bytes, (ull)t->lost_tsc);
	fprintf(f, "decode        %.2f s, %.1f million accesses/s\n", t->seconds,
		t->seconds > 0 ? (double)t->accesses / t->seconds / 1e6 : 0);
	if (s->run->nreplay)
		fprintf(f, "replay        %u process image%s run again meanwhile\n", s->run->nreplay,
			s->run->nreplay == 1 ? "" : "s");
	if (s->unexpected)
		fprintf(f, "unexpected    %llu entries at places the analysis did not foresee\n",
			(ull)s->unexpected);
	if (s->run->nproc > 1 || s->run->nthread > 1) {
		fprintf(f, "\nprocesses and threads\n");
		report_tree(f, s->run, TREE_LINES, NULL);
	}
	functions(f, s);
	if (s->why)
		causes(f, s);
}

static void json_functions(FILE *f, struct stats *s, bool opaque)
{
	char buf[40];

	qsort(s->fn, s->nfn, sizeof(*s->fn), opaque ? by_opaque : by_count);
	for (uint32_t i = 0; i < s->nfn && (opaque ? s->fn[i].opaque : s->fn[i].count); i++) {
		fprintf(f, "%s{\"function\": ", i ? ", " : "");
		json_puts(f, fname(&s->fn[i], buf, sizeof(buf)));
		fprintf(f, ", \"module\": ");
		json_puts(f, base(s->fn[i].rec));
		fprintf(f, ", \"count\": %llu}", (ull)(opaque ? s->fn[i].opaque : s->fn[i].count));
	}
}

static void json_causes(FILE *f, struct stats *s)
{
	char buf[40];

	fprintf(f, ",\n \"log_by_cause\": {");
	for (int k = 0; k < SEM_NWHY; k++)
		fprintf(f, "%s\"%s\": %llu", k ? ", " : "", why_name[k], (ull)s->why_bytes[k]);
	fprintf(f, "},\n \"log_by_function\": [");
	qsort(s->fn, s->nfn, sizeof(*s->fn), by_log);
	for (uint32_t i = 0; i < s->nfn && i < 50 && s->fn[i].log; i++) {
		fprintf(f, "%s{\"function\": ", i ? ", " : "");
		json_puts(f, fname(&s->fn[i], buf, sizeof(buf)));
		fprintf(f, ", \"module\": ");
		json_puts(f, base(s->fn[i].rec));
		fprintf(f, ", \"bytes\": %llu}", (ull)s->fn[i].log);
	}
	fprintf(f, "],\n \"log_by_block\": [");
	stats_merge_blocks(s);
	for (uint32_t i = 0; i < s->nwblock && i < 100; i++) {
		const struct wblock *b = &s->wblock[i];

		fprintf(f, "%s{\"module\": ", i ? ",\n  " : "");
		json_puts(f, base(b->rec));
		fprintf(f, ", \"vaddr\": \"%#llx\", \"bytes\": %llu", (ull)b->vaddr, (ull)b->total);
		for (int k = 0; k < SEM_NWHY; k++)
			if (b->bytes[k])
				fprintf(f, ", \"%s\": %llu", why_name[k], (ull)b->bytes[k]);
		fprintf(f, "}");
	}
	fprintf(f, "]");
}

static void json_tree(FILE *f, struct ptrace_run *r)
{
	char buf[40];

	fprintf(f, ",\n \"process_list\": [");
	for (uint32_t i = 0; i < r->nproc; i++) {
		const struct proc *p = r->proc[i];

		fprintf(f, "%s{\"pid\": %u, \"image\": %u, ", i ? ",\n  " : "", p->pid, proc_image(p));
		if (p->rec)
			fprintf(f, "\"in_full_from\": %u, ", p->image);
		fprintf(f, "\"parent\": ");
		if (p->parent)
			fprintf(f, "%u", p->parent->index);
		else
			fprintf(f, "null");
		fprintf(f, ", \"forked\": %s, \"command\": ", p->forked ? "true" : "false");
		json_puts(f, p->command ? p->command : "");
		fprintf(f, ", \"end\": ");
		json_puts(f, p->end ? p->end : "");
		fprintf(f, "}");
	}
	fprintf(f, "],\n \"thread_list\": [");
	for (uint32_t i = 0; i < r->nthread; i++) {
		const struct thread *t = r->thread[i];

		fprintf(f, "%s{\"process\": %u, \"tid\": %u, \"records\": ", i ? ",\n  " : "", t->proc->index,
			t->pub.tid);
		if (t->decoded)
			fprintf(f, "%llu", (ull)t->pub.records);
		else
			fprintf(f, "null");
		fprintf(f, ", \"end\": ");
		json_puts(f, thread_end(t, buf, sizeof(buf)));
		fprintf(f, ", \"losses\": %llu, \"lost_log_bytes\": %llu, \"lost_ticks\": %llu}",
			(ull)t->losses, (ull)t->lost_bytes, (ull)t->lost_tsc);
	}
	fprintf(f, "]");
}

void report_json(FILE *f, struct stats *s)
{
	const struct ptrace_stats *t = &s->st;
	uint64_t lines, pages;
	bool all;

	foot_count(s->foot, &lines, &pages, &all);
	fprintf(f, "{\"run\": ");
	json_puts(f, s->run->dir);
	fprintf(f,
		", \"processes\": %u, \"threads\": %u,\n \"instructions\": %llu, \"accesses\": %llu, "
		"\"reads\": %llu, \"writes\": %llu, \"prefetches\": %llu,\n",
		s->run->nproc, s->run->nthread, (ull)t->instructions, (ull)t->accesses, (ull)t->reads,
		(ull)t->writes, (ull)t->prefetches);
	fprintf(f, " \"lines\": %llu, \"pages\": %llu, \"footprint_exact\": %s,\n", (ull)lines, (ull)pages,
		all ? "true" : "false");
	fprintf(f, " \"log_bytes_raw\": %llu, \"log_bytes_disk\": %llu, \"log_bytes_used\": %llu,\n",
		(ull)t->log_bytes_raw, (ull)t->log_bytes_disk, (ull)t->log_bytes_used);
	fprintf(f, " \"opaque_entries\": %llu, \"callbacks\": %llu, \"unexpected_entries\": %llu,\n",
		(ull)t->opaque_entries, (ull)t->callbacks, (ull)s->unexpected);
	fprintf(f, " \"checked\": %llu, \"wrong\": %llu, \"unknown\": %llu, \"missing\": %llu,\n",
		(ull)t->checked, (ull)t->wrong, (ull)t->unknown, (ull)t->missing);
	fprintf(f, " \"losses\": %llu, \"lost_log_bytes\": %llu, \"lost_ticks\": %llu,\n", (ull)t->losses,
		(ull)t->lost_bytes, (ull)t->lost_tsc);
	if (s->run->nreplay)
		fprintf(f, " \"replayed_images\": %u,\n", s->run->nreplay);
	fprintf(f, " \"decode_seconds\": %.6f, \"complete\": %s, \"stop_reason\": ", t->seconds,
		s->complete ? "true" : "false");
	json_puts(f, s->reason);
	json_tree(f, s->run);
	fprintf(f, ",\n \"functions\": [");
	json_functions(f, s, false);
	fprintf(f, "],\n \"opaque_from\": [");
	json_functions(f, s, true);
	fprintf(f, "]");
	if (s->why)
		json_causes(f, s);
	fprintf(f, "}\n");
}

static const char *reason_name(uint32_t r)
{
	static const char *const name[] = {"",
					   "part of the tracer",
					   "no map",
					   "no room near it for its copy, or no mark ids left",
					   "text relocations",
					   "its map is for another file",
					   "refused",
					   "no system calls in it"};

	return r < NELEM(name) ? name[r] : "unknown reason";
}

static void list_modules(FILE *f, const struct proc *p, int in)
{
	for (uint32_t k = 0; p->rec && k < p->rec->nmod; k++) {
		const struct modrec *m = &p->rec->mod[k];

		if (m->m.kind && !run_module_known(p, m))
			fprintf(f, "%*smodule at first: %llx-%llx %s\n", in, "", (ull)m->m.lo, (ull)m->m.hi,
				m->path);
	}
	for (uint32_t k = 0; k < p->nmod; k++) {
		const struct modrec *m = &p->mod[k];

		fprintf(f, "%*smodule %u: %llx-%llx ", in, "", k, (ull)m->m.lo, (ull)m->m.hi);
		if (!m->m.kind)
			fprintf(f, "unloaded\n");
		else if (m->map)
			fprintf(f, "%s\n", m->path);
		else
			fprintf(f, "%s (opaque: %s)\n", m->path,
				m->lost ? m->lost : reason_name(m->m.reason));
	}
}

void report_list(FILE *f, struct ptrace_run *r)
{
	report_tree(f, r, UINT32_MAX, list_modules);
}

static void range(FILE *f, const struct modrec *m, uint32_t start, uint32_t end)
{
	if (start < end)
		fprintf(f, "%llx %llx %s\n", (ull)(m->m.bias + start), (ull)(m->m.bias + end), base(m));
}

/* By blocks: bytes of a function that nothing was found to reach run untraced, should they run. */
static void ranges(FILE *f, const struct modrec *m)
{
	uint32_t start = 0, end = 0;

	for (uint32_t n = 0; m->map && n < m->map->nblock; n++) {
		const struct map_block *b = &m->map->block[n];

		if (b->vaddr != end) {
			range(f, m, start, end);
			start = end = b->vaddr;
		}
		for (uint32_t i = 0; i < b->ninsn; i++)
			end += m->map->insnlen[b->insn + i];
	}
	range(f, m, start, end);
}

void report_ranges(FILE *f, struct ptrace_run *r)
{
	for (uint32_t i = 0; i < r->nproc; i++) {
		const struct proc *p = r->proc[i];

		for (uint32_t k = 0; k < p->nmod; k++)
			ranges(f, &p->mod[k]);
		for (uint32_t k = 0; p->rec && k < p->rec->nmod; k++)
			if (!run_module_known(p, &p->rec->mod[k]))
				ranges(f, &p->rec->mod[k]);
	}
}

void report_diffs(FILE *f, struct ptrace_run *r, struct proc *p, const struct walk_result *res)
{
	static const char *const kind[] = {"read", "write", "prefetch", "access"};
	char buf[400];

	for (uint32_t i = 0; i < res->ndiff; i++) {
		const struct walk_diff *d = &res->diff[i];

		fprintf(f,
			"wrong: %s: %s of %u bytes at %#llx, the program used %#llx (ip %#llx, log position "
			"%llu)\n",
			sym_text(r->sym, p, d->ip, true, buf, sizeof(buf)), kind[d->kind & 3], d->size,
			(ull)d->got, (ull)d->want, (ull)d->ip, (ull)d->pos);
	}
}
