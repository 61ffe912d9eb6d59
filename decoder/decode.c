/* SPDX-License-Identifier: MIT
 *
 * decode.c - decode one, several or all threads of a run; the public functions over it
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "dec.h"
#include "flow.h"

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
		[RUN_STOP_GS] = "the program changes the gs base, or the fs base, by itself",
		[RUN_STOP_UNEXPECTED] = "code was entered where the map has no entry",
		[RUN_STOP_ROOM] = "more processes than can be traced at a time",
	};

	return stop < NELEM(name) ? name[stop] : "an unknown reason";
}

/* what was left out in the middle */
static int losses(struct ptrace_run *r, const struct thread *t, const struct walk_result *res)
{
	if (!res->losses)
		return PTRACE_OK;
	run_note(r,
		 "pid %u thread %u: control flow was lost %llu times; %llu bytes of the log, %llu TSC ticks "
		 "are "
		 "left out. First: %s",
		 t->pub.pid, t->pub.tid, (unsigned long long)res->losses, (unsigned long long)res->lost_bytes,
		 (unsigned long long)res->lost_tsc, res->loss);
	return PTRACE_PARTIAL;
}

static void blind(struct ptrace_run *r, const struct thread *t, const struct walk_result *res)
{
	if (res->blind)
		run_note(
			r,
			"pid %u thread %u: no unwind table tells the registers of the caller at %#llx, which "
			"was on the stack when the log began: they are taken as they were there",
			t->pub.pid, t->pub.tid, (unsigned long long)res->blind_at);
}

static int outcome(struct ptrace_run *r, const struct thread *t, const struct proc *p,
		   const struct walk_result *res)
{
	switch (res->end) {
	case WALK_EXIT:
	case WALK_WITH_PROCESS:
	case WALK_CANCELLED:
		return PTRACE_OK;
	case WALK_STOP:
		run_note(r, "pid %u thread %u: tracing stopped before the end: %s", t->pub.pid, t->pub.tid,
			 stop_name(res->arg));
		return PTRACE_PARTIAL;
	case WALK_LOG_ENDS:
		if (!p->untraced) /* said */
			run_note(r, "pid %u thread %u: %s%s%s", t->pub.pid, t->pub.tid, res->why,
				 p->stop ? "; the process: " : "", p->stop ? p->stop : "");
		return PTRACE_PARTIAL;
	default:
		run_note(r, "pid %u thread %u: %s; the rest of this thread is missing", t->pub.pid,
			 t->pub.tid, res->why);
		return PTRACE_PARTIAL;
	}
}

void stats_add(struct ptrace_stats *to, const struct ptrace_stats *st)
{
	to->instructions += st->instructions;
	to->accesses += st->accesses;
	to->reads += st->reads;
	to->writes += st->writes;
	to->prefetches += st->prefetches;
	to->log_bytes_raw += st->log_bytes_raw;
	to->log_bytes_disk += st->log_bytes_disk;
	to->log_bytes_used += st->log_bytes_used;
	to->opaque_entries += st->opaque_entries;
	to->callbacks += st->callbacks;
	to->checked += st->checked;
	to->wrong += st->wrong;
	to->unknown += st->unknown;
	to->missing += st->missing;
	to->losses += st->losses;
	to->lost_bytes += st->lost_bytes;
	to->lost_tsc += st->lost_tsc;
}

/* exit_group or exec of another thread, or a signal, ended it, wherever it was; what it had logged is all there */
static bool with_process(const struct proc *p, const struct log *log)
{
	if (p->recorded && (!p->stop || strncmp(p->stop, "killed", 6)))
		return false; /* it was alone, and is replayed to its very end */
	return p->ended && !p->stopped && log_clean(log) && !log_why(log);
}

/* NULL: the thread's control flow is in its log, or lost, which the walk says where it matters */
static struct flow *open_flow(struct ptrace_run *r, struct thread *t, const struct proc *p,
			      const struct walk_opts *o)
{
	struct ptrace_error e = {0};
	struct flow *f = NULL;
	bool asks = false;

	if (o->flow)
		return o->flow(t);
	for (uint32_t i = 0; i < p->nmod && !asks; i++)
		asks = p->mod[i].map && (p->mod[i].map->head->flags & MAP_F_PT);
	if (asks)
		f = flow_open_pt(t, &e);
	if (asks && !f)
		run_note(r, "pid %u thread %u: no control flow: %s", t->pub.pid, t->pub.tid, e.text);
	return f;
}

static struct log *open_log(const struct thread *t, struct proc *p, const struct walk_opts *o,
			    struct ptrace_error *e)
{
	unsigned flags = (p->ended ? LOG_ENDED : 0) | (o->timed ? LOG_MANY : 0) | (t->shared ? LOG_ONE : 0);
	struct log *log;
	char *path;

	if (p->recorded)
		return replay_begin(p, o->verify, flags, e);
	path = thread_path(t, p);
	log = log_open(path, t->at, t->pub.pid, t->pub.tid, flags, e);
	free(path);
	return log;
}

/* of a thread's log, as it was recorded */
static uint64_t recorded_bytes(const struct thread *t, const struct proc *p)
{
	char *path = thread_path(t, p);
	struct stat st;
	bool is = !stat(path, &st);

	free(path);
	return is ? (uint64_t)st.st_size : 0;
}

int decode_part(struct ptrace_run *r, uint32_t i, struct proc *p, const struct walk_opts *o, walk_fn fn,
		void *ctx, struct ptrace_stats *st, struct walk_result *res)
{
	struct thread *t = r->thread[i];
	struct ptrace_error e = {0};
	struct ptrace_stats one = {0};
	struct log *log = open_log(t, p, o, &e);
	struct flow *flow;
	int rc = PTRACE_OK, k;

	memset(res, 0, sizeof(*res));
	if (!log) {
		run_note(r, "%s; this thread is missing", e.text);
		st->missing++;
		t->end = WALK_LOST;
		return PTRACE_PARTIAL;
	}
	if (!p->recorded && p->async && p->start && p->start->s.tid == t->pub.tid)
		log_limit(log, p->stop_at.lp_pos, p->stop_at.bytes);
	flow = open_flow(r, t, p, o);
	walk_thread(p, log, flow, t->pub.tid, i, o, fn, ctx, &one, res);
	if (flow)
		flow->ops->close(flow);
	hand_free(p->hand);
	p->hand = NULL;
	if (res->end == WALK_LOG_ENDS || !p->ended) /* known for good when all of the log is there */
		proc_settle(p);
	if (res->end == WALK_LOG_ENDS && with_process(p, log)) {
		res->end = WALK_WITH_PROCESS;
		one.missing--;
	}
	t->decoded = true;
	t->end = res->end;
	t->end_arg = res->arg;
	t->exec = res->exec;
	t->pub.records += one.accesses;
	t->losses += res->losses;
	t->lost_bytes += res->lost_bytes;
	t->lost_tsc += res->lost_tsc;
	if (p->recorded) /* what the replay logged was never on a disk */
		one.log_bytes_disk = recorded_bytes(t, p);
	stats_add(st, &one);
	if (p->recorded)
		rc = replay_end(p, log, res->end != WALK_CANCELLED && res->end != WALK_LOST);
	else
		log_close(log);
	blind(r, t, res);
	k = losses(r, t, res);
	rc = rc > k ? rc : k;
	k = outcome(r, t, p, res);
	return rc > k ? rc : k;
}

static void *append(void *a, uint32_t *n, const void *b, uint32_t k, size_t size)
{
	a = xrealloc(a, *n + k, size);
	if (k)
		memcpy((char *)a + *n * size, b, k * size);
	*n += k;
	return a;
}

/* what an earlier part has found, put to that of the last one */
static void add_result(struct walk_result *to, struct walk_result *res)
{
	to->place = append(to->place, &to->nplace, res->place, res->nplace, sizeof(*to->place));
	to->block = append(to->block, &to->nblock, res->block, res->nblock, sizeof(*to->block));
	to->why_at = append(to->why_at, &to->nwhy, res->why_at, res->nwhy, sizeof(*to->why_at));
	for (uint32_t i = 0; i < res->ndiff && to->ndiff < NELEM(to->diff); i++)
		to->diff[to->ndiff++] = res->diff[i];
	to->unexpected += res->unexpected;
	walk_result_free(res);
}

int decode_thread(struct ptrace_run *r, uint32_t i, const struct walk_opts *o, walk_fn fn, void *ctx,
		  struct ptrace_stats *st, struct walk_result *res)
{
	struct thread *t = r->thread[i];
	struct walk_result first;
	int rc, k;

	t->pub.records = 0;
	t->losses = t->lost_bytes = t->lost_tsc = 0;
	if (!t->rec)
		return decode_part(r, i, t->proc, o, fn, ctx, st, res);
	rc = decode_part(r, i, t->rec, o, fn, ctx, st, res);
	if (res->end == WALK_CANCELLED)
		return rc;
	first = *res;
	k = decode_part(r, i, t->proc, o, fn, ctx, st, res);
	if (rc && !k)
		memcpy(res->why, first.why, sizeof(res->why));
	add_result(res, &first);
	return rc > k ? rc : k;
}

const char *thread_end(const struct thread *t, char *buf, size_t n)
{
	if (!t->decoded)
		return "";
	switch (t->end) {
	case WALK_EXIT:
		snprintf(buf, n, t->exec ? "exec" : "exit %llu", (unsigned long long)t->end_arg);
		return buf;
	case WALK_STOP:
		return stop_name(t->end_arg);
	case WALK_LOG_ENDS:
		return "its log ends early";
	case WALK_WITH_PROCESS:
		return "ended with its process";
	case WALK_CANCELLED:
		return "not decoded to its end";
	default:
		return "lost";
	}
}

static int by_thread(const struct decode *d, const uint32_t *list, uint32_t n)
{
	int rc = PTRACE_OK;

	for (uint32_t i = 0; i < n; i++) {
		struct walk_result res;
		enum walk_end end;
		int k;

		if (d->time) { /* merge.c knows how */
			k = decode_by_time(d, &list[i], 1);
			rc = k > rc ? k : rc;
			continue;
		}
		k = decode_thread(d->run, list[i], d->o, d->fn, d->ctx, d->st, &res);
		rc = k > rc ? k : rc;
		if (d->ended)
			d->ended(d->ctx, list[i], k, &res);
		end = res.end;
		walk_result_free(&res);
		if (end == WALK_CANCELLED)
			break;
	}
	return rc;
}

int decode_threads(const struct decode *d, const uint32_t *list, uint32_t n, enum ptrace_merge merge)
{
	struct walk_opts o = *d->o;
	struct decode timed = *d;
	double start = now();
	int rc;

	o.timed = true;
	timed.o = &o;
	rc = merge == PTRACE_BY_TIME ? decode_by_time(&timed, list, n)
				     : by_thread(d->time ? &timed : d, list, n);
	d->st->seconds += now() - start;
	for (uint32_t i = 0; i < d->run->nmap; i++)
		pool_free(d->run->map[i]);
	return rc;
}

struct user {
	struct ptrace_run *run;
	ptrace_batch_fn fn;
	void *ctx;
	struct ptrace_error *err;
};

static int user_batch(void *ctx, struct ptrace_rec *rec, size_t n)
{
	const struct user *u = ctx;

	return u->fn ? u->fn(u->ctx, rec, n) : 0;
}

static void user_ended(void *ctx, uint32_t i, int status, const struct walk_result *res)
{
	const struct user *u = ctx;
	const struct ptrace_thread *t = &u->run->thread[i]->pub;

	if (status)
		err_set(u->err, status, "pid %u thread %u: %s", t->pid, t->tid,
			res->end == WALK_STOP ? stop_name(res->arg) : res->why);
}

int ptrace_run_decode_threads(ptrace_run *run, const uint32_t *list, uint32_t n, enum ptrace_merge merge,
			      ptrace_batch_fn fn, void *ctx, struct ptrace_stats *stats,
			      struct ptrace_error *err)
{
	struct walk_opts o = {.memory = 512ull << 20};
	struct user u = {run, fn, ctx, err};
	struct ptrace_stats st = {0};
	struct decode d = {.run = run, .o = &o, .fn = user_batch, .ended = user_ended, .ctx = &u, .st = &st};
	int rc;

	for (uint32_t i = 0; i < n; i++)
		if (list[i] >= run->nthread || (i && list[i] <= list[i - 1])) {
			err_set(err, PTRACE_USAGE,
				"thread %u: the run has %u, and a list of them is in ascending order",
				list[i], run->nthread);
			return PTRACE_USAGE;
		}
	rc = decode_threads(&d, list, n, merge);
	if (!rc && run->damage) {
		err_set(err, PTRACE_PARTIAL, "parts of %s are damaged or missing", run->dir);
		rc = PTRACE_PARTIAL;
	}
	if (stats)
		*stats = st;
	return rc;
}

int ptrace_run_decode(ptrace_run *run, int thread, ptrace_batch_fn fn, void *ctx, struct ptrace_stats *stats,
		      struct ptrace_error *err)
{
	uint32_t n = thread >= 0 ? 1 : run->nthread, *list = xcalloc(n, sizeof(*list));
	int rc;

	for (uint32_t i = 0; i < n; i++)
		list[i] = thread >= 0 ? (uint32_t)thread : i;
	rc = ptrace_run_decode_threads(run, list, n, PTRACE_BY_THREAD, fn, ctx, stats, err);
	free(list);
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
