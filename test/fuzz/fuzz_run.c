/* SPDX-License-Identifier: MIT
 *
 * fuzz_run.c - a whole run directory, read from files: tables, logs, JSON, every output format
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../decoder/out.h"
#include "fuzz.h"

#define ENOUGH 100000
#define PID 7

static char dir[64];
static FILE *null;

static void put_file(const char *name, const uint8_t *b, struct fuzz_part p)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path); /* a map may still be mapped elsewhere */
	if (!p.p)
		return;
	f = fopen(path, "wb");
	if (!f || (p.n && fwrite(b, p.n, 1, f) != 1) || fclose(f))
		abort();
}

static void clean(void)
{
	static const char *const name[] = {"maps/m.ptmap",
					   "proc-7.0/start.bin",
					   "proc-7.0/modules.bin",
					   "proc-7.0/thread-7.log",
					   "proc-7.0/proc.json",
					   "proc-7.0/stop.bin",
					   "run.json",
					   "maps",
					   "proc-7.0",
					   ""};
	char path[128];

	for (size_t i = 0; i < NELEM(name); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
		remove(path);
	}
}

static void set_up(void)
{
	char path[128];

	if (null)
		return;
	null = fopen("/dev/null", "w");
	snprintf(dir, sizeof(dir), "%s/ptrace-fuzz-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
		 (int)getpid());
	mkdir(dir, 0700);
	snprintf(path, sizeof(path), "%s/maps", dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/proc-7.0", dir);
	mkdir(path, 0700);
	atexit(clean);
}

struct use {
	struct sink sink;
	struct filter filter;
	struct stats *stats;
	size_t seen;
};

static int batch(void *ctx, struct ptrace_rec *rec, size_t n)
{
	struct use *u = ctx;
	bool stop = false;

	u->seen += n;
	n = filter_batch(&u->filter, rec, NULL, n, &stop);
	stats_batch(u->stats, rec, n);
	if (n && u->sink.batch(&u->sink, rec, n))
		return 1;
	return stop || u->seen > ENOUGH;
}

static void decode(struct ptrace_run *r, unsigned pick)
{
	static const char *const format[] = {"text", "csv", "lackey", "raw", "bin", "null"};
	struct use u = {.sink = *sink_find(format[pick % 6]), .filter = {.to = UINT64_MAX, .run = r}};
	struct walk_opts o = {.blocks = u.sink.blocks, .verify = true, .memory = 16 << 20, .idle = 1 << 16};
	struct obuf out;

	obuf_init(&out, open("/dev/null", O_WRONLY | O_CLOEXEC));
	u.sink.o = &out;
	u.sink.run = r;
	u.sink.symbols = pick & 64;
	u.stats = stats_new(r);
	if (!u.sink.begin || !u.sink.begin(&u.sink)) {
		for (uint32_t i = 0; i < r->nthread; i++) {
			struct walk_result res;

			decode_thread(r, i, &o, batch, &u, &u.stats->st, &res);
			stats_thread(u.stats, r->thread[i]->proc, &res);
			report_diffs(null, r, r->thread[i]->proc, &res);
			walk_result_free(&res);
		}
		if (u.sink.end)
			u.sink.end(&u.sink);
	}
	report_text(null, u.stats);
	report_json(null, u.stats);
	stats_free(u.stats);
	close(out.fd);
	obuf_free(&out);
}

static int few(void *ctx, const struct ptrace_rec *rec, size_t n)
{
	size_t *seen = ctx;

	*seen += n;
	(void)rec;
	return *seen > ENOUGH;
}

/* as several threads are */
static void decode_by_clock(struct ptrace_run *r)
{
	struct ptrace_error e = {0};
	uint32_t first = 0;
	size_t seen = 0;

	if (r->nthread)
		ptrace_run_decode_threads(r, &first, 1, PTRACE_BY_TIME, few, &seen, NULL, &e);
}

static void on_note(void *ctx, const char *line)
{
	(void)ctx;
	if (!*line || strchr(line, '\n')) /* one line each */
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		int kind;
		const char *name;
	} file[] = {{FZ_MAP, "maps/m.ptmap"},
		    {FZ_START, "proc-7.0/start.bin"},
		    {FZ_MODULES, "proc-7.0/modules.bin"},
		    {FZ_LOG, "proc-7.0/thread-7.log"},
		    {FZ_PROC, "proc-7.0/proc.json"},
		    {FZ_STOP, "proc-7.0/stop.bin"},
		    {FZ_RUN, "run.json"}};
	struct fuzz_part part[FZ_KINDS];
	struct ptrace_error e = {0};
	struct ptrace_run *r;

	set_up();
	fuzz_split(data, size, part);
	for (size_t i = 0; i < NELEM(file); i++) {
		struct fuzz_part p = part[file[i].kind];
		uint8_t *b = fuzz_copy(p);

		if (file[i].kind == FZ_MAP)
			fuzz_fix_map(b, p.n);
		if (file[i].kind == FZ_START)
			fuzz_fix_start(b, p.n);
		if (file[i].kind == FZ_MODULES)
			fuzz_fix_modules(b, p.n);
		if (file[i].kind == FZ_LOG)
			fuzz_fix_log(b, p.n, PID, PID);
		put_file(file[i].name, b, p);
		free(b);
	}
	r = ptrace_run_open(dir, on_note, NULL, &e);
	if (!r && !e.text[0])
		abort(); /* a failure says why */
	if (!r)
		return 0;
	report_list(null, r);
	report_ranges(null, r);
	decode(r, (unsigned)size);
	if (size & 128)
		decode_by_clock(r);
	ptrace_run_close(r);
	return 0;
}
