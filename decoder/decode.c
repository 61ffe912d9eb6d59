/* SPDX-License-Identifier: MIT
 *
 * decode.c - decode one or all threads of a run; the public functions over it
 */
#include <stdlib.h>
#include <string.h>
#include "dec.h"

const char *stop_name(uint64_t stop)
{
	static const char *const name[] = {
		[RUN_STOP_NONE] = "no reason given",
		[RUN_STOP_THREAD] = "the program started a thread",
		[RUN_STOP_FORK_CHILD] = "it is a forked child",
		[RUN_STOP_SIGNAL] = "a signal arrived",
		[RUN_STOP_SPACE] = "no space was left for the log",
		[RUN_STOP_COLLECTOR] = "ptrace-collect died",
		[RUN_STOP_UNSUPPORTED] = "the program did something tracing does not support",
		[RUN_STOP_GS] = "the program uses the gs base itself",
		[RUN_STOP_UNEXPECTED] = "code was entered where the map has no entry",
	};

	return stop < NELEM(name) ? name[stop] : "an unknown reason";
}

static int outcome(struct ptrace_run *r, const struct thread *t, const struct walk_result *res)
{
	switch (res->end) {
	case WALK_EXIT:
	case WALK_CANCELLED:
		return PTRACE_OK;
	case WALK_STOP:
		run_note(r, "pid %u thread %u: tracing stopped before the end: %s", t->pub.pid, t->pub.tid,
			 stop_name(res->arg));
		return PTRACE_PARTIAL;
	case WALK_LOG_ENDS:
		run_note(r, "pid %u thread %u: %s%s%s", t->pub.pid, t->pub.tid, res->why,
			 t->proc->stop ? "; the process: " : "", t->proc->stop ? t->proc->stop : "");
		return PTRACE_PARTIAL;
	default:
		run_note(r, "pid %u thread %u: %s; the rest of this thread is missing", t->pub.pid,
			 t->pub.tid, res->why);
		return PTRACE_PARTIAL;
	}
}

int decode_thread(struct ptrace_run *r, uint32_t i, const struct walk_opts *o, walk_fn fn, void *ctx,
		  struct ptrace_stats *st, struct walk_result *res)
{
	struct thread *t = r->thread[i];
	struct ptrace_error e = {0};
	uint64_t before = st->accesses;
	double start = now();
	char *path = thread_path(t);
	struct log *log = log_open(path, t->pub.pid, t->pub.tid, t->proc->ended, &e);
	int rc;

	free(path);
	memset(res, 0, sizeof(*res));
	if (!log) {
		run_note(r, "%s; this thread is missing", e.text);
		st->missing++;
		return PTRACE_PARTIAL;
	}
	if (t->proc->async && t->proc->start && t->proc->start->s.tid == t->pub.tid)
		log_limit(log, t->proc->stop_at.lp_pos);
	walk_thread(t->proc, log, t->pub.tid, i, o, fn, ctx, st, res);
	if (res->end == WALK_LOG_ENDS) /* known for good when all of the log is there */
		proc_end(t->proc);
	rc = outcome(r, t, res);
	t->pub.records = st->accesses - before;
	st->seconds += now() - start;
	log_close(log);
	return rc;
}

struct user {
	ptrace_batch_fn fn;
	void *ctx;
};

static int pass(void *ctx, struct ptrace_rec *rec, size_t n)
{
	const struct user *u = ctx;

	return u->fn ? u->fn(u->ctx, rec, n) : 0;
}

int ptrace_run_decode(ptrace_run *run, int thread, ptrace_batch_fn fn, void *ctx, struct ptrace_stats *stats,
		      struct ptrace_error *err)
{
	struct walk_opts o = {.memory = 512ull << 20};
	struct user u = {fn, ctx};
	struct ptrace_stats st = {0};
	int rc = PTRACE_OK;

	if (thread >= 0 && (uint32_t)thread >= run->nthread) {
		err_set(err, PTRACE_USAGE, "the run has %u threads, there is no number %d", run->nthread,
			thread);
		return PTRACE_USAGE;
	}
	for (uint32_t i = 0; i < run->nthread; i++) {
		struct walk_result res;
		int k;

		if (thread >= 0 && i != (uint32_t)thread)
			continue;
		k = decode_thread(run, i, &o, pass, &u, &st, &res);
		if (k) {
			err_set(err, k, "pid %u thread %u: %s", run->thread[i]->pub.pid,
				run->thread[i]->pub.tid, res.end == WALK_STOP ? stop_name(res.arg) : res.why);
			rc = k;
		}
		k = res.end;
		walk_result_free(&res);
		if (k == WALK_CANCELLED)
			break;
	}
	if (!rc && run->damage) {
		err_set(err, PTRACE_PARTIAL, "parts of %s are damaged or missing", run->dir);
		rc = PTRACE_PARTIAL;
	}
	if (stats)
		*stats = st;
	return rc;
}

const char *ptrace_run_symbol(ptrace_run *run, uint32_t thread, uint64_t ip, char *buf, size_t size)
{
	if (thread >= run->nthread) {
		snprintf(buf, size, "%#llx", (unsigned long long)ip);
		return buf;
	}
	return sym_text(run->sym, run->thread[thread]->proc, ip, true, buf, size);
}
