/* SPDX-License-Identifier: MIT
 *
 * unit_merge.c - runs of several threads and processes, hand-made: the tables, selections, and one order by time
 *
 * The program: a loop that logs an address, reads and writes there; then a system call, or the loop again.
 * A record's address says which thread made it, between which two known times (its segment), and which one
 * it is there. So what comes out can be checked by itself: each thread's records are in order and complete, a
 * write follows its read, and no record comes after one that is known to be later.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../decoder/out.h"
#include "fuzz/fuzz.h"

#define BIAS 0x7f0000000000ull

static int passed, failed;
static char dir[64];

static void check(bool ok, const char *what)
{
	if (ok)
		passed++;
	else
		failed++, printf("FAIL: %s\n", what);
}

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* ---- files ------------------------------------------------------------------------------------ */

static void put_file(const char *name, const void *b, size_t n)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, b, n) != (ssize_t)n)
		exit(2);
	close(fd);
}

static void make_dir(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	mkdir(path, 0700);
}

static void remove_all(const char *path)
{
	DIR *h = opendir(path);
	struct dirent *d;

	while (h && (d = readdir(h))) {
		char *p = xprintf("%s/%s", path, d->d_name);

		if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") && unlink(p))
			remove_all(p);
		free(p);
	}
	if (h)
		closedir(h);
	rmdir(path);
}

static bool order; /* times are those of locked instructions (PTRACE_ORDER), and not in events */

static void put_map(void)
{
	enum { LOOP = 0, CALL = 5 };
	static const struct sem_op op[] = {
		{SEM_BLOCK, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0},
		{SEM_LOG, 8, SEM_RDI, SEM_NONE, SEM_NONE, 0},
		{SEM_REC, 0, SEM_RECDST(8, PTRACE_R), SEM_RDI, SEM_NONE, SEM_RECIMM(0, 0x1000)},
		{SEM_REC, 0, SEM_RECDST(8, PTRACE_W), SEM_RDI, SEM_NONE, SEM_RECIMM(0, 0x1000)},
		{SEM_JCC_LOG, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(LOOP, CALL)},
		{SEM_BLOCK, 0, SEM_NONE, SEM_NONE, SEM_NONE, 1},
		{SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, LOOP)},
	};
	struct sem_op timed[NELEM(op) + 1];
	static const struct map_block block[] = {{.vaddr = 0x1000, .ops = LOOP, .ninsn = 2},
						 {.vaddr = 0x1010, .ops = CALL, .insn = 2, .ninsn = 1}};
	static const struct map_leader leader[] = {{0x1000, LOOP, MAP_LEADER_RETURN}};
	static const struct map_group group[] = {{.vaddr = 0x1000, .nblocks = 2}};
	static const uint8_t len[] = {3, 2, 2}, nops[2][3] = {{2, 1, 1}, {2, 1, 2}};
	const struct {
		int sect;
		const void *p;
		size_t n;
	} s[] = {{MAP_OPS, order ? timed : op, order ? sizeof(timed) : sizeof(op)},
		 {MAP_BLOCKS, block, sizeof(block)},
		 {MAP_LEADERS, leader, sizeof(leader)},
		 {MAP_GROUPS, group, sizeof(group)},
		 {MAP_INSNLEN, len, sizeof(len)},
		 {MAP_INSNOPS, nops[order], sizeof(nops[0])},
		 {MAP_STRINGS, "", 1}};
	uint8_t b[4096] = {0};
	struct map_head *h = (void *)b;
	size_t at = (sizeof(*h) + 63) & ~63ul;

	memcpy(timed, op, sizeof(op));
	timed[CALL + 2] = op[CALL + 1];
	timed[CALL + 1] = (struct sem_op){SEM_TSC, 8, SEM_NONE, SEM_NONE, SEM_NONE, 0};
	h->flags = order ? MAP_F_ORDER : 0;
	h->key_len = 16;
	h->key[0] = 1;
	for (int i = 0; i < MAP_NSECTIONS; i++)
		h->sect[i].off = at;
	for (size_t i = 0; i < NELEM(s); i++) {
		h->sect[s[i].sect] = (struct map_sect){at, s[i].n, 0};
		memcpy(b + at, s[i].p, s[i].n);
		at = (at + s[i].n + 63) & ~63ul;
	}
	fuzz_fix_map(b, at);
	put_file("maps/m.ptmap", b, at);
}

static void put_proc(uint32_t pid, uint32_t image, const char *parent)
{
	struct run_start s = {.pid = pid, .tid = pid, .rip = BIAS + 0x1000, .tsc = 10};
	struct {
		struct run_module m;
		char path[16];
	} mod = {{.size = sizeof(mod),
		  .kind = 1,
		  .bias = BIAS,
		  .lo = BIAS,
		  .hi = BIAS + 0x10000,
		  .site_base = 1},
		 "/bin/prog"};
	char name[100], json[300];

	mod.m.key_len = 16;
	mod.m.key[0] = 1;
	mod.m.path_len = 10;
	fuzz_fix_modules((uint8_t *)&mod, sizeof(mod));
	fuzz_fix_start((uint8_t *)&s, sizeof(s));
	snprintf(name, sizeof(name), "proc-%u.%u", pid, image);
	make_dir(name);
	snprintf(name, sizeof(name), "proc-%u.%u/modules.bin", pid, image);
	put_file(name, &mod, sizeof(mod));
	snprintf(name, sizeof(name), "proc-%u.%u/start.bin", pid, image);
	if (!parent)
		put_file(name, &s, sizeof(s));
	snprintf(json, sizeof(json),
		 "{\"pid\": %u, \"command\": [\"prog\", \"a b\"], %s%s%s \"end\": \"exit\", \"exit_status\": "
		 "3}",
		 pid, parent ? "\"parent\": \"" : "", parent ? parent : "", parent ? "\"," : "");
	snprintf(name, sizeof(name), "proc-%u.%u/proc.json", pid, image);
	put_file(name, json, strlen(json));
}

static void begin(void)
{
	remove_all(dir);
	mkdir(dir, 0700);
	make_dir("maps");
	put_map();
	put_file("run.json", "{}", 2);
}

/* ---- a stream ----------------------------------------------------------------------------------- */

struct stream {
	uint8_t *b;
	size_t n, cap, head; /* head: of the current chunk */
	uint64_t seq, first;
	uint32_t pid, tid, again, id, seg;
};

static void put(struct stream *s, const void *p, size_t n)
{
	if (s->n + n > s->cap)
		s->b = xrealloc(s->b, s->cap = (s->n + n) * 2, 1);
	memcpy(s->b + s->n, p, n);
	s->n += n;
}

static void put_mark(struct stream *s, uint32_t kind, uint32_t id, uint64_t arg)
{
	uint32_t m = kind | id << RUN_MARK_ID_SHIFT;

	put(s, &m, 4);
	put(s, &arg, 8);
}

static void chunk_open(struct stream *s, uint64_t tsc)
{
	struct run_chunk c = {.tsc_open = tsc};

	s->head = s->n;
	put(s, &c, sizeof(c));
}

static void chunk_close(struct stream *s, uint64_t tsc, bool last)
{
	struct run_chunk *c = (void *)(s->b + s->head), k;

	memcpy(&k, c, sizeof(k));
	k.tsc_close = tsc;
	k.kind = last;
	k.raw_size = k.disk_size = s->n - s->head - sizeof(k);
	memcpy(s->b + s->head, &k, sizeof(k));
}

static void put_start(struct stream *s, uint64_t tsc)
{
	struct run_thread_start t = {.rip = BIAS + 0x1000, .tsc = tsc, .modules = 1};

	put_mark(s, RUN_MARK_EVENT, RUN_EV_START, sizeof(t));
	put(s, &t, sizeof(t));
}

static void save(struct stream *s)
{
	char name[100];

	fuzz_fix_log(s->b, s->n, s->pid, s->tid);
	if (s->again)
		snprintf(name, sizeof(name), "proc-%u.0/thread-%u.%u.log", s->pid, s->tid, s->again);
	else
		snprintf(name, sizeof(name), "proc-%u.0/thread-%u.log", s->pid, s->tid);
	put_file(name, s->b, s->n);
	free(s->b);
}

/* ---- what is known of the times, and what comes out ------------------------------------------------ */

#define NIDS 4096
#define NSEGS 64
static struct known {
	uint64_t low[NSEGS], high[NSEGS];
	uint32_t count[NSEGS]; /* records of the segment */
	uint32_t nseg;
	/* as they come */
	uint32_t seg, at;
	bool write;
} known[NIDS];

static void put_records(struct stream *s, uint32_t n, uint64_t low, uint64_t high)
{
	struct known *k = &known[s->id];

	k->low[s->seg] = low;
	k->high[s->seg] = high;
	k->count[s->seg] = n;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = (uint64_t)s->id << 32 | (uint64_t)s->seg << 24 | i;
		uint8_t more = i + 1 < n;

		put(s, &addr, 8);
		put(s, &more, 1);
	}
	k->nseg = ++s->seg;
}

struct seen {
	uint64_t latest; /* lower bound of the latest record so far */
	uint32_t n, switches, last, stop_after;
	bool order, complete, exact, pairs;
};

static int collect(void *ctx, const struct ptrace_rec *r, size_t n)
{
	struct seen *v = ctx;

	for (size_t i = 0; i < n; i++, r++) {
		struct known *k = &known[r->addr >> 32 & (NIDS - 1)];
		uint32_t seg = r->addr >> 24 & 0xff, at = r->addr & 0xffffff;

		while (k->seg < k->nseg && k->at == k->count[k->seg])
			k->seg++, k->at = 0;
		v->order &= seg == k->seg && at == k->at && k->write == (r->kind == PTRACE_W);
		v->pairs &= r->kind != PTRACE_W || v->last == r->tid;
		v->exact &= k->high[seg] >= v->latest;
		v->latest = k->low[seg] > v->latest ? k->low[seg] : v->latest;
		v->switches += v->last != r->tid;
		v->last = r->tid;
		k->at += k->write;
		k->write = !k->write;
		if (++v->n == v->stop_after)
			return 1;
	}
	return 0;
}

static void on_note(void *ctx, const char *line)
{
	snprintf(ctx, 600, "%s", line);
}

static int decode(struct seen *v, enum ptrace_merge merge, struct ptrace_stats *st, char note[600])
{
	struct ptrace_error e = {0};
	ptrace_run *r = ptrace_run_open(dir, on_note, note, &e);
	const struct ptrace_thread *t;
	uint32_t n = r ? ptrace_run_threads(r, &t) : 0, *list = calloc(n + 1, sizeof(*list));
	int rc;

	for (uint32_t i = 0; i < n; i++)
		list[i] = i;
	*v = (struct seen){
		.order = true, .exact = true, .pairs = true, .last = NONE32, .stop_after = v->stop_after};
	for (int i = 0; i < NIDS; i++)
		known[i].seg = known[i].at = known[i].write = 0;
	rc = r ? ptrace_run_decode_threads(r, list, n, merge, collect, v, st, &e) : 99;
	v->complete = true;
	for (int i = 0; i < NIDS; i++)
		for (uint32_t k = known[i].seg; k < known[i].nseg; k++)
			v->complete &= known[i].at == known[i].count[k] && !known[i].write;
	if (rc)
		snprintf(note, 600, "%s", e.text);
	free(list);
	ptrace_run_close(r);
	return rc;
}

/* n threads, each with system calls at random times, of random length, in chunks of some of them */
static void random_threads(uint32_t n, uint32_t segs, uint64_t spread, uint32_t records)
{
	memset(known, 0, sizeof(known));
	begin();
	put_proc(7, 0, NULL);
	for (uint32_t id = 0; id < n; id++) {
		struct stream s = {.pid = 7, .tid = 7 + id, .id = id};
		uint64_t t = 10 + (id ? rnd() % spread : 0), low = t; /* low: as the stream tells */

		chunk_open(&s, t);
		if (id)
			put_start(&s, t);
		for (uint32_t k = 0; k < segs; k++) {
			uint64_t call = t + rnd() % 1000,
				 back = call + (rnd() % 4 ? rnd() % 100 : rnd() % 20000);

			put_records(&s, 1 + rnd() % records, low, call);
			if (order) {
				back = call;
				put(&s, &call, 8);
			} else {
				put_mark(&s, RUN_MARK_EVENT, RUN_EV_TIME, call);
				put_mark(&s, RUN_MARK_EVENT, RUN_EV_TIME, back);
			}
			t = low = back;
			if (k + 1 == segs)
				put_mark(&s, RUN_MARK_EVENT, RUN_EV_EXIT, 0);
			else
				put_mark(&s, RUN_MARK_SYSCALL, 1, 0);
			if (rnd() % 3 == 0 && k + 1 < segs) {
				t += order ? 1000000 : 0; /* it waits */
				chunk_close(&s, t, false);
				chunk_open(&s, t);
			}
		}
		chunk_close(&s, t + (order ? 1000000 : 0), true);
		save(&s);
	}
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void test_exact(void)
{
	struct seen v = {0};
	struct ptrace_stats st;
	char note[600] = "";

	for (int i = 0; i < 8; i++) {
		random_threads(2 + rnd() % 8, 1 + rnd() % 40, 2000, i % 2 ? 3000 : 20);
		check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.order && v.complete && v.pairs,
		      "merged: each thread");
		check(v.exact, "merged: no record after one that is known to be later");
		check(v.switches > 2 && st.accesses == v.n, "merged: threads take turns");
		check(!decode(&v, PTRACE_BY_THREAD, &st, note) && v.order && v.complete && !v.exact,
		      "one thread after the other");
		order = i >= 2;
	}
	order = false;
}

/* no time is known but that of the chunks: two threads at work at the same time take turns all along */
static void test_estimate(void)
{
	struct seen v = {0};
	struct ptrace_stats st;
	char note[600] = "";

	memset(known, 0, sizeof(known));
	begin();
	put_proc(7, 0, NULL);
	for (uint32_t id = 0; id < 2; id++) {
		struct stream s = {.pid = 7, .tid = 7 + id, .id = id};

		chunk_open(&s, 1000 + 50000 * id);
		if (id)
			put_start(&s, 51000);
		put_records(&s, 10000, 1000 + 50000 * id, 101000 + 50000 * id);
		put_mark(&s, RUN_MARK_EVENT, RUN_EV_EXIT, 0);
		chunk_close(&s, 101000 + 50000 * id, true);
		save(&s);
	}
	v.stop_after = 9000; /* of 10000 in the first half of the first thread's time */
	check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.switches == 1,
	      "estimated: the first thread is alone first");
	v.stop_after = 0;
	check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.order && v.complete && v.switches > 5000,
	      "estimated: then they take turns");
}

static void test_many(void)
{
	struct rlimit old, few = {32, 32};
	struct seen v = {0};
	struct ptrace_stats st;
	char note[600] = "";
	double t = now();

	random_threads(300, 5, 100, 200);
	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.order && v.complete && v.exact,
	      "300 threads at a time, 32 descriptors");
	setrlimit(RLIMIT_NOFILE, &old);
	random_threads(3000, 1, 300000000, 20); /* hardly ever two at a time */
	check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.order && v.complete && v.exact,
	      "3000 threads in turn");
	check(now() - t < 60, "in reasonable time");
}

/* the thread id 8 is used three times */
static void test_again(void)
{
	struct seen v = {0};
	struct ptrace_error e = {0};
	struct ptrace_stats st;
	const struct ptrace_thread *t;
	char note[600] = "";
	ptrace_run *r;

	memset(known, 0, sizeof(known));
	begin();
	put_proc(7, 0, NULL);
	for (uint32_t id = 0; id < 3; id++) {
		struct stream s = {.pid = 7, .tid = 8, .again = id, .id = id};

		chunk_open(&s, 100 + id * 1000);
		put_start(&s, 100 + id * 1000);
		put_records(&s, 100, 100 + id * 1000, 900 + id * 1000);
		put_mark(&s, RUN_MARK_EVENT, RUN_EV_EXIT, id);
		chunk_close(&s, 900 + id * 1000, true);
		save(&s);
	}
	check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.order && v.complete && v.exact && v.switches == 3,
	      "a thread id used again");
	r = ptrace_run_open(dir, NULL, NULL, &e);
	check(r && ptrace_run_threads(r, &t) == 3 && t[0].again == 0 && t[2].again == 2 && t[2].tid == 8,
	      "told apart in the table");
	ptrace_run_close(r);
}

static void test_damage(void)
{
	struct seen v = {0};
	struct ptrace_stats st;
	char note[600] = "", path[200];
	uint8_t byte = 0xee;
	int fd;

	random_threads(4, 20, 2000, 50);
	snprintf(path, sizeof(path), "%s/proc-7.0/thread-9.log", dir);
	fd = open(path, O_WRONLY);
	if (pwrite(fd, &byte, 1, sizeof(struct run_chunk) + 40) != 1)
		exit(2);
	close(fd);
	known[2].nseg = 0;
	check(decode(&v, PTRACE_BY_TIME, &st, note) == PTRACE_PARTIAL && v.order && v.complete &&
		      st.missing == 1,
	      "one thread's log is damaged: the others are whole");
	random_threads(4, 20, 2000, 50);
	v.stop_after = 333;
	check(!decode(&v, PTRACE_BY_TIME, &st, note) && v.n == 333 && v.order, "stopped by the caller");
}

static void expect_threads(struct ptrace_run *r, struct selection s, uint32_t want, uint32_t first)
{
	const char *bad;
	uint32_t n = NONE32, *list = select_threads(r, &s, &n, &bad);
	char line[200];

	snprintf(line, sizeof(line), "--threads=%s --pid=%s --tid=%s: %d threads", s.threads ? s.threads : "",
		 s.pid ? s.pid : "", s.tid ? s.tid : "", list ? (int)n : -1);
	check(want == NONE32 ? !list : list && n == want && (!n || list[0] == first), line);
	free(list);
}

/* 7 execs; 8 and 9 are forked from its images, 10 from 9, 11 from one that is not there */
static void test_tree(void)
{
	struct ptrace_error e = {0};
	const struct ptrace_process *p;
	const struct ptrace_thread *t;
	static const char exec[] = "{\"command\": [\"prog\", \"a b\"], \"end\": \"exec\"}";
	char note[600] = "", *text = NULL;
	struct ptrace_run *r;
	size_t size;
	uint32_t n;
	FILE *f;

	begin();
	put_proc(7, 0, NULL);
	put_proc(7, 1, NULL);
	put_file("proc-7.0/proc.json", exec, strlen(exec));
	put_proc(8, 0, "proc-7.0");
	put_proc(9, 0, "proc-7.1");
	put_proc(10, 0, "proc-9.0");
	put_proc(11, 0, "proc-99.0");
	for (uint32_t pid = 7; pid <= 11; pid++)
		for (uint32_t tid = pid; tid < 100; tid += 60) {
			struct stream s = {.pid = pid, .tid = tid};

			chunk_open(&s, 100 + pid);
			put_start(&s, 100 + pid);
			put_mark(&s, RUN_MARK_EVENT, RUN_EV_EXIT, 0);
			chunk_close(&s, 100 + pid, true);
			save(&s);
		}
	r = ptrace_run_open(dir, on_note, note, &e);
	check(r && strstr(note, "99.0"), "a parent that is not there is told");
	if (!r)
		return;
	n = ptrace_run_processes(r, &p);
	check(n == 6 && ptrace_run_threads(r, &t) == 10, "processes and threads");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = p[i].parent;
		bool ok = up == UINT32_MAX || up < n;

		if (ok && p[i].pid == 7)
			ok = p[i].image ? up < n && p[up].pid == 7 && !p[i].forked : up == UINT32_MAX;
		if (ok && (p[i].pid == 8 || p[i].pid == 9))
			ok = up < n && p[up].pid == 7 && p[up].image == p[i].pid - 8 && p[i].forked;
		if (ok && p[i].pid == 10)
			ok = up < n && p[up].pid == 9;
		check(ok && !strcmp(p[i].command, "prog a b") &&
			      !strcmp(p[i].end, p[i].pid == 7 && !p[i].image ? "exec" : "exit 3"),
		      "a process");
		check(p[i].threads == (p[i].image ? 0 : 2) &&
			      (!p[i].threads ||
			       (t[p[i].first].tid == p[i].pid && t[p[i].first].pid == p[i].pid)),
		      "its threads, the first one first");
	}
	check(proc_cpu(r->proc[r->thread[9]->proc->index]) == NULL, "no ancestor, no state layout");
	expect_threads(r, (struct selection){0}, 10, 0);
	expect_threads(r, (struct selection){.pid = "7"}, 2, 0);
	expect_threads(r, (struct selection){.pid = "7.1"}, 0, 0);
	expect_threads(r, (struct selection){.pid = "7.0,8,9"}, 6, 0);
	expect_threads(r, (struct selection){.tid = "67"}, 1, 1);
	expect_threads(r, (struct selection){.pid = "8", .tid = "67,68"}, 1, 3);
	expect_threads(r, (struct selection){.threads = "1-3,tid:67"}, 3, 1);
	expect_threads(r, (struct selection){.threads = "1-3", .pid = "8"}, 2, 2);
	expect_threads(r, (struct selection){.pid = "x"}, NONE32, 0);
	expect_threads(r, (struct selection){.tid = "7,"}, NONE32, 0);
	expect_threads(r, (struct selection){.threads = "1 2"}, NONE32, 0);
	f = open_memstream(&text, &size);
	report_list(f, r);
	fclose(f);
	check(strstr(text, "\nprocess 7 image 1: prog a b: exit 3\n") &&
		      strstr(text, "\n  process 8 image 0, forked from 7.0: prog a b: exit 3\n    thread 2: "
				   "tid 8 (first)\n") &&
		      strstr(text, "\n    process 10 image 0, forked from 9.0"),
	      "--list shows the tree");
	free(text);
	ptrace_run_close(r);
}

static void test_times(void)
{
	struct log_times t = {0};
	uint8_t b[64] = {0};
	uint32_t mark = RUN_MARK_EVENT | RUN_EV_TIME << RUN_MARK_ID_SHIFT;
	uint64_t tsc = 1500, wild = 99999;

	memcpy(b + 20, &mark, 4);
	memcpy(b + 24, &tsc, 8);
	memcpy(b + 40, &mark, 4);
	memcpy(b + 44, &wild, 8); /* not between the last one and the chunk's end */
	times_scan(&t, b, sizeof(b), 1000, 1000, 2000);
	check(times_at(&t, 990) == 1000 && times_at(&t, 1000) == 1000 && times_at(&t, 1010) == 1250 &&
		      times_at(&t, 1020) == 1500 && times_at(&t, 1032) == 1500 &&
		      times_at(&t, 1048) == 1750 && times_at(&t, 1064) == 2000 &&
		      times_at(&t, 9999) == 2000 && times_at(&t, 1010) == 1250,
	      "times between known ones");
	times_scan(&t, b, 0, 5, 70, 60);
	check(times_at(&t, 5) == 70 && times_at(&t, 6) == 70, "an empty chunk, a clock that runs back");
	free(t.at);
}

int main(void)
{
	const char *t = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/ptrace-XXXXXX", t ? t : "/tmp");
	if (!mkdtemp(dir))
		return 2;
	test_times();
	test_exact();
	test_estimate();
	test_many();
	test_again();
	test_damage();
	test_tree();
	remove_all(dir);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
