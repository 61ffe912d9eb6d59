/* SPDX-License-Identifier: MIT
 *
 * unit_format.c - the decoder's file readers and writers: packed trace, log chunks, text, JSON
 *
 * Round trips on random input, then damage: every reader must refuse or report, never crash and
 * never give other bytes than were written.
 */
#include <fcntl.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "../decoder/out.h"

static int passed, failed;
static char dir[64];

static void check(bool ok, const char *what)
{
	if (ok)
		passed++;
	else
		failed++, printf("FAIL: %s\n", what);
}

static uint64_t seed = 1;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static char *path(const char *name)
{
	static char buf[200];

	snprintf(buf, sizeof(buf), "%s/%s", dir, name);
	return buf;
}

static void write_file(const char *p, const void *b, size_t n)
{
	int fd = open(p, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, b, n) != (ssize_t)n)
		exit(2);
	close(fd);
}

/* ---- columns ---------------------------------------------------------------------------------- */

static void random_records(struct ptrace_rec *r, size_t n)
{
	static const uint32_t size[] = {1, 2, 4, 8, 16, 32, 64, 128, 0, 3, 832, 0xffffffff};

	for (size_t i = 0; i < n; i++) {
		bool odd = rnd() % 8 == 0;

		r[i] = (struct ptrace_rec){.ip = odd ? rnd() : 0x401000 + rnd() % 64 * 4,
					   .addr = odd ? rnd() : 0x7ffe0000 + 8 * i,
					   .size = size[rnd() % NELEM(size)],
					   .tid = rnd() % 32 ? 3 : rnd() % PTRACE_MAX_THREADS,
					   .kind = rnd() % 3};
	}
}

static void test_columns(void)
{
	enum { N = 3000 };
	struct ptrace_rec *in = calloc(N, sizeof(*in)), *out = calloc(N, sizeof(*out));
	uint8_t *buf = malloc(BIN_PACK_MAX(N));
	uint32_t part[3];
	size_t n;
	bool ok = true;

	for (size_t count = 0; count <= N; count = count * 2 + 1) {
		random_records(in, count);
		n = bin_pack(in, count, buf, part);
		memset(out, 0xee, N * sizeof(*out));
		ok &= !bin_unpack(buf, part, count, out) && !memcmp(in, out, count * sizeof(*in));
		ok &= n == (size_t)part[0] + part[1] + part[2];
		if (count) {
			ok &= bin_unpack(buf, part, count - 1, out) < 0;
			ok &= bin_unpack(buf, part, count + 1 <= N ? count + 1 : count - 1, out) < 0;
		}
	}
	check(ok, "columns give back what went in, and only that many");
	for (int i = 0; i < 3000; i++) { /* must not read or write out of bounds (run under a sanitizer) */
		uint8_t *small = malloc(n ? n : 1);

		memcpy(small, buf, n);
		small[rnd() % n] ^= (uint8_t)(1 + rnd() % 255);
		bin_unpack(small, part, N / 2, out);
		free(small);
	}
	free(in);
	free(out);
	free(buf);
}

/* ---- trace file ------------------------------------------------------------------------------- */

static long read_all(const char *p, struct ptrace_rec *out, size_t max, struct ptrace_error *e)
{
	ptrace_trace *t = ptrace_trace_open(p, e);
	size_t n = 0;
	long k = -1;

	while (t && n < max && (k = ptrace_trace_read(t, out + n, max - n < 777 ? max - n : 777, e)) > 0)
		n += k;
	ptrace_trace_close(t);
	return t ? (long)n : -1;
}

static void test_trace(void)
{
	enum { N = 150000 };
	struct ptrace_rec *in = calloc(N, sizeof(*in)), *out = calloc(N + 1, sizeof(*out));
	struct modrec mod = {.m = {.kind = 1, .bias = 0x1000, .lo = 0x1000, .hi = 0x9000}};
	struct proc proc = {.pid = 5, .mod = &mod, .nmod = 1}, *pp = &proc;
	struct thread th = {.proc = &proc, .pub = {.pid = 5, .tid = 6, .records = N}}, *tp = &th;
	struct ptrace_run run = {.proc = &pp, .nproc = 1, .thread = &tp, .nthread = 1};
	struct sink s = *sink_find("bin");
	struct ptrace_error e = {0};
	const struct ptrace_thread *tl;
	const struct ptrace_module *ml;
	ptrace_trace *t;
	struct obuf o;
	uint8_t *file;
	size_t size;
	bool ok = true;
	char *p = strdup(path("t.bin")), *q = strdup(path("u.bin"));

	mod.path = (char *)"/lib/libx.so";
	random_records(in, N);
	obuf_init(&o, open(p, O_WRONLY | O_CREAT | O_TRUNC, 0600));
	s.o = &o;
	s.run = &run;
	ok &= !s.begin(&s) && !s.batch(&s, in, 1) && !s.batch(&s, in + 1, N - 1) && !s.end(&s) &&
	      !obuf_flush(&o);
	check(ok, "trace is written");
	close(o.fd);
	obuf_free(&o);
	check(read_all(p, out, N + 1, &e) == N && !memcmp(in, out, N * sizeof(*in)) && !e.text[0],
	      "trace is read");
	t = ptrace_trace_open(p, &e);
	check(t && ptrace_trace_threads(t, &tl) == 1 && tl->tid == 6 && tl->records == N &&
		      ptrace_trace_modules(t, &ml) == 1 && !strcmp(ml->path, "/lib/libx.so") &&
		      ml->hi == 0x9000,
	      "tables are read");
	ptrace_trace_close(t);
	file = malloc(1 << 24);
	{
		FILE *f = fopen(p, "rb");

		size = fread(file, 1, 1 << 24, f);
		fclose(f);
	}
	write_file(q, file, size / 2);
	memset(&e, 0, sizeof(e));
	{
		long n = read_all(q, out, N + 1, &e);

		check(n > 0 && n < N && !memcmp(in, out, n * sizeof(*in)) && e.status == PTRACE_PARTIAL,
		      "cut trace: what is whole is read, the cut is told");
	}
	ok = true;
	for (int i = 0; i < 60; i++) {
		size_t at = rnd() % size;
		long n;

		file[at] ^= 0x40;
		write_file(q, file, size);
		memset(&e, 0, sizeof(e));
		n = read_all(q, out, N + 1, &e);
		/* the unused field of the head and of chunk heads may change unseen; records may not */
		ok &= n <= N && (n <= 0 || !memcmp(in, out, n * sizeof(*in))) && (n == N || e.text[0]);
		file[at] ^= 0x40;
	}
	check(ok, "damaged trace: refused or reported, no wrong record");
	free(file);
	free(in);
	free(out);
	free(p);
	free(q);
	free(run.tlist);
	free(run.mlist);
}

/* ---- log chunks ------------------------------------------------------------------------------- */

static size_t put_chunk(uint8_t *to, const uint8_t *raw, uint32_t n, uint64_t seq, uint64_t first, int codec,
			int kind)
{
	struct run_chunk c = {.magic = RUN_CHUNK_MAGIC,
			      .version = RUN_VERSION,
			      .codec = (uint8_t)codec,
			      .kind = (uint8_t)kind,
			      .pid = 5,
			      .tid = 6,
			      .seq = seq,
			      .first = first,
			      .raw_size = n};
	uint8_t *d = to + sizeof(c);

	if (codec == 1)
		c.disk_size = LZ4_compress_default((const char *)raw, (char *)d, n, LZ4_compressBound(n));
	else if (codec == 2)
		c.disk_size = ZSTD_compress(d, ZSTD_compressBound(n), raw, n, 1);
	else
		memcpy(d, raw, c.disk_size = n);
	c.xxh3 = XXH3_64bits(d, c.disk_size);
	memcpy(to, &c, sizeof(c));
	return sizeof(c) + c.disk_size;
}

/* reads all, in pieces of 1 to 300 bytes; returns how many bytes were right before the end */
static size_t read_log(const char *p, const uint8_t *want, size_t n, bool *clean, bool *why)
{
	struct log *l = log_open(p, 0, 5, 6, false, NULL);
	const uint8_t *at = want, *end = want;
	size_t good = 0;

	for (;;) {
		size_t k = 1 + rnd() % 300;

		if (good + k > n)
			k = n - good ? n - good : 1;
		if (!log_need(l, &at, &end, k)) { /* what is left is less than k */
			good += !memcmp(at, want + good, end - at) ? end - at : 1ll << 40;
			break;
		}
		if (log_pos(l, at) != good || good + k > n || memcmp(at, want + good, k)) {
			good = ~0ull >> 1;
			break;
		}
		at += k;
		good += k;
	}
	*clean = log_clean(l);
	*why = log_why(l) != NULL;
	log_close(l);
	return good;
}

/* Keyframes: not of the stream, cuts behind them, found by their counter. Chunk 0 has none. */
static void test_keys(void)
{
	enum { N = 1000, NCHUNK = 4, STACK = 40 };
	static uint8_t raw[NCHUNK][N], with[sizeof(struct run_key) + STACK + N + sizeof(struct run_cut)];
	static uint8_t file[NCHUNK * (N + 600)];
	char *p = strdup(path("thread-6.log"));
	const uint8_t *at = NULL, *end = NULL;
	const struct run_key *k;
	struct log_pause pause;
	size_t size = 0;
	uint64_t pos;
	struct log *l;
	bool ok = true;

	for (uint32_t i = 0; i < NCHUNK; i++) {
		struct run_key key = {.counter = i, .stack_size = STACK};
		struct run_cut cut = {sizeof(key) + STACK + 10, 4};
		struct run_chunk c;
		size_t n = i ? sizeof(key) + STACK : 0;

		for (int b = 0; b < N; b++)
			raw[i][b] = (uint8_t)rnd();
		memcpy(with, &key, sizeof(key));
		memset(with + sizeof(key), (int)i, STACK);
		memcpy(with + n, raw[i], N);
		if (i == 2)
			memcpy(with + n + N, &cut, sizeof(cut));
		put_chunk(file + size, with, (uint32_t)(n + N + (i == 2 ? sizeof(cut) : 0)), i,
			  (uint64_t)i * N, 0, i == NCHUNK - 1);
		memcpy(&c, file + size, sizeof(c));
		c.key = (uint32_t)n;
		c.ncut = i == 2;
		memcpy(file + size, &c, sizeof(c));
		size += sizeof(c) + c.disk_size;
	}
	write_file(p, file, size);
	l = log_open(p, 0, 5, 6, 0, NULL);
	for (size_t got = 0; got < NCHUNK * N; got++) {
		if (log_need(l, &at, &end, 1)) {
			ok &= *at++ == raw[got / N][got % N];
		} else {
			ok &= got == 2 * N + 14 && log_pause(l, &pause) && pause.pos == got &&
			      pause.bytes == 4;
			log_pass(l, &end);
			got--;
			if (!ok)
				break;
			continue;
		}
		k = log_key(l, &pos);
		ok &= got < N ? !k
			      : k && k->counter == got / N && pos == got / N * N &&
					((const uint8_t *)(k + 1))[5] == got / N;
	}
	check(ok && !log_need(l, &at, &end, 1) && log_clean(l), "keyframes are not in the stream");
	log_close(l);
	for (uint32_t want = 0; want <= NCHUNK; want++) {
		l = log_open(p, 0, 5, 6, want & 1 ? LOG_MANY : 0, NULL);
		ok = log_need(l, &at, &end, 10);
		at += 7;
		k = log_resync(l, want, &at, &end);
		if (want == NCHUNK)
			ok &= !k;
		else
			ok &= k && k->counter == (want ? want : 1) && log_pos(l, at) == k->counter * N &&
			      log_need(l, &at, &end, 5) && !memcmp(at, raw[k->counter], 5);
		check(ok, "to the keyframe with a counter");
		for (uint32_t back = 1; ok && back < NCHUNK && want < NCHUNK;
		     back++) { /* read already, or not */
			uint64_t raw0, raw1, disk;

			log_need(l, &at, &end, 5);
			log_sizes(l, &raw0, &disk);
			k = log_resync(l, back, &at, &end);
			ok = k && k->counter == back && log_pos(l, at) == k->counter * N &&
			     log_need(l, &at, &end, 5) && !memcmp(at, raw[k->counter], 5);
			for (pos = log_pos(l, at); ok && pos < NCHUNK * N; pos++) {
				if (pos == 2 * N + 14)
					log_pass(l, &end);
				ok &= log_need(l, &at, &end, 1) && *at == raw[pos / N][pos % N];
				at++;
			}
			ok &= !log_need(l, &at, &end, 1) && log_clean(l);
			log_sizes(l, &raw1, &disk);
			ok &= raw0 <= raw1 && raw1 <= NCHUNK * N;
		}
		check(ok, "back to one that was passed");
		log_close(l);
	}
	for (int bad = 0; bad < 2; bad++) { /* more than there is; not what the keyframe says */
		struct run_chunk c;

		memcpy(&c, file, sizeof(c));
		c.key = bad ? sizeof(struct run_key) : N + 1;
		memcpy(file, &c, sizeof(c));
		memset(file + sizeof(c), 0xff, 250);
		c.xxh3 = XXH3_64bits(file + sizeof(c), N);
		memcpy(file, &c, sizeof(c));
		write_file(p, file, size);
		l = log_open(p, 0, 5, 6, 0, NULL);
		check(!log_need(l, &at, &end, 1) && log_why(l), "an impossible keyframe is damage");
		log_close(l);
	}
	free(p);
}

/* Cuts: at a chunk's first byte, within, at its end. Reading pauses behind each one's bytes, what follows can be
 * looked at, and bytes that were read can be put back. */
static void test_cuts(void)
{
	enum { N = 3000, NCHUNK = 4 };
	static const struct run_cut cut[NCHUNK][3] = {{{0, 0}, {100, 8}, {2990, 10}},
						      {{0, 1}, {0, 3}, {1500, 0}},
						      {{3000, 0}},
						      {{7, 512}, {600, 100}}};
	static const uint32_t ncut[NCHUNK] = {3, 3, 1, 2};
	uint8_t raw[NCHUNK][N + sizeof(cut[0])], file[NCHUNK * (N + 200)], buf[100];
	const uint8_t *flat[NCHUNK];
	char *p = strdup(path("thread-6.log"));
	size_t size = 0;

	for (int i = 0; i < NCHUNK; i++) {
		struct run_chunk c;
		size_t n = N + ncut[i] * sizeof(struct run_cut), at = size;

		for (int k = 0; k < N; k++)
			raw[i][k] = (uint8_t)rnd();
		memcpy(raw[i] + N, cut[i], n - N);
		flat[i] = raw[i];
		size += put_chunk(file + size, raw[i], (uint32_t)n, i, (uint64_t)i * N, 0, i == NCHUNK - 1);
		memcpy(&c, file + at, sizeof(c));
		c.ncut = ncut[i];
		memcpy(file + at, &c, sizeof(c));
	}
	write_file(p, file, size);
	for (int round = 0; round < 200; round++) {
		struct log *l = log_open(p, 0, 5, 6, round & 1 ? LOG_MANY : 0, NULL);
		const uint8_t *at = NULL, *end = NULL;
		size_t got = 0, pauses = 0;
		bool ok = true;

		for (;;) {
			size_t k = 1 + rnd() % 300, left;
			struct log_pause q;

			if (log_need(l, &at, &end, k)) {
				for (size_t b = 0; b < k; b++)
					ok &= at[b] == flat[(got + b) / N][(got + b) % N];
				at += k;
				got += k;
				continue;
			}
			left = end - at;
			for (size_t b = 0; b < left; b++)
				ok &= at[b] == flat[(got + b) / N][(got + b) % N];
			at += left;
			got += left;
			if (!log_pause(l, &q))
				break;
			ok &= q.pos == got && !q.stop && log_pos(l, at) == got;
			if (got < NCHUNK * N && N - got % N >= sizeof(buf))
				ok &= log_peek(l, got, buf, sizeof(buf)) &&
				      !memcmp(buf, flat[got / N] + got % N, sizeof(buf));
			log_pass(l, &end);
			pauses++;
			if (q.bytes && log_need(l, &at, &end, 1)) {
				uint32_t n = q.bytes < 12 ? q.bytes : 12;

				at++; /* one byte of an event */
				got++;
				memcpy(buf, at - n, n);
				log_unread(l, &at, buf, n);
				ok &= !memcmp(at, buf, n);
				at += n;
			}
		}
		ok &= got == NCHUNK * N && pauses == 9 && log_clean(l) && !log_why(l);
		log_close(l);
		if (!ok) {
			check(false, "pauses of a log");
			break;
		}
	}
	check(true, "pauses of a log");
	for (int k = 0; k < 4; k++) {
		static const struct run_cut bad[4][2] = {
			{{10, 5}, {9, 40}}, {{10, 5}, {11, 4}}, {{N, 1}}, {{N + 1, 0}}};
		struct run_chunk c;
		bool clean, why;

		memcpy(raw[0] + N, bad[k], sizeof(bad[k]));
		size = put_chunk(file, raw[0], N + (k < 2 ? 2 : 1) * sizeof(struct run_cut), 0, 0, 0, 1);
		memcpy(&c, file, sizeof(c));
		c.ncut = k < 2 ? 2 : 1;
		memcpy(file, &c, sizeof(c));
		write_file(p, file, size);
		read_log(p, raw[0], N, &clean, &why);
		check(!clean && why, "impossible cuts are told");
		c.ncut = 1000000;
		memcpy(file, &c, sizeof(c));
		write_file(p, file, size);
		read_log(p, raw[0], N, &clean, &why);
		check(!clean && why, "more cuts than bytes");
	}
	free(p);
}

static void test_log(void)
{
	enum { N = 400000, NCHUNK = 11 };
	uint8_t *raw = malloc(N), *file = malloc(2 * N);
	size_t at = 0, size = 0, start[NCHUNK + 1], last = 0;
	bool clean, why, ok = true;
	char *p = strdup(path("thread-6.log"));

	for (int i = 0; i < N; i++)
		raw[i] = (uint8_t)(rnd() % 16 ? (uint64_t)i : rnd());
	for (int i = 0; i < NCHUNK; i++) {
		uint32_t n = i == NCHUNK - 1 ? N - at : i == 4 ? 0 : rnd() % 70000;

		n = n > N - at ? N - at : n;
		start[i] = at;
		last = size;
		size += put_chunk(file + size, raw + at, n, i, at, i % 3, i == NCHUNK - 1);
		at += n;
	}
	write_file(p, file, size);
	check(read_log(p, raw, N, &clean, &why) == N && clean && !why, "log is read whole");
	write_file(p, file, size - 5);
	check(read_log(p, raw, N, &clean, &why) == start[NCHUNK - 1] && !clean && !why,
	      "cut payload ends the log");
	write_file(p, file, last + 10);
	check(read_log(p, raw, N, &clean, &why) == start[NCHUNK - 1] && !clean && !why,
	      "cut head ends the log");
	file[last + offsetof(struct run_chunk, seq)] ^= 1;
	write_file(p, file, size);
	check(read_log(p, raw, N, &clean, &why) == start[NCHUNK - 1] && why, "gap is told");
	file[last + offsetof(struct run_chunk, seq)] ^= 1;
	for (int i = 0; i < 150; i++) {
		size_t k = rnd() % size;
		uint8_t bit = (uint8_t)(1 << rnd() % 8);

		file[k] ^= bit;
		write_file(p, file, size);
		ok &= read_log(p, raw, N, &clean, &why) <= N;
		file[k] ^= bit;
	}
	check(ok, "damaged log: never a wrong byte");
	free(raw);
	free(file);
	free(p);
}

/* ---- text ------------------------------------------------------------------------------------- */

static void emit(const char *format, const struct ptrace_rec *rec, size_t n, const char *want)
{
	struct sink s = *sink_find(format);
	struct obuf o;
	char got[2000], what[200];
	char *p = path("out");
	ssize_t k;
	int fd;

	obuf_init(&o, open(p, O_WRONLY | O_CREAT | O_TRUNC, 0600));
	s.o = &o;
	if (s.begin)
		s.begin(&s);
	s.batch(&s, rec, n);
	if (s.end)
		s.end(&s);
	obuf_flush(&o);
	close(o.fd);
	obuf_free(&o);
	fd = open(p, O_RDONLY);
	k = read(fd, got, sizeof(got) - 1);
	close(fd);
	got[k > 0 ? k : 0] = 0;
	snprintf(what, sizeof(what), "format %s gives\n%.100s", format, got);
	check(!strcmp(got, want), what);
}

static void test_text(void)
{
	static const uint8_t len[] = {3, 5, 2, 1};
	struct ptrace_rec r[] = {
		{.ip = 0x401000, .kind = WALK_BLOCK, .size = 4, .addr = (uintptr_t)len},
		{.ip = 0x401003, .addr = 0x1ffe, .size = 8, .kind = PTRACE_R},
		{.ip = 0x401003, .addr = 0x1ffe, .size = 8, .kind = PTRACE_W},
		{.ip = 0x401008, .addr = 0xffffffffff600000, .size = 4, .kind = PTRACE_R},
		{.ip = 0x401008, .addr = 0x10, .size = 4, .kind = PTRACE_W},
		{.ip = 0x401008, .addr = 0x10, .size = 64, .kind = PTRACE_P},
	};

	emit("lackey", r, 6,
	     "I  00401000,3\nI  00401003,5\n M 00001ffe,8\nI  00401008,2\n L ffffffffff600000,4\n"
	     " S 00000010,4\nI  0040100a,1\n");
	emit("text", r + 1, 1, "0 401003 R 1ffe 8\n");
	emit("csv", r + 4, 2, "thread,ip,kind,address,size\n0,0x401008,W,0x10,4\n0,0x401008,P,0x10,64\n");
	emit("null", r, 6, "");
}

static void test_filter(void)
{
	struct ptrace_rec r[] = {{.addr = 0x10, .size = 4},
				 {.addr = 0x20, .size = 8},
				 {.addr = 0x30, .size = 1},
				 {.addr = 0x40, .size = 4}},
			  c[4];
	struct filter f = {.from = 1, .to = 3};
	bool stop = false;

	memcpy(c, r, sizeof(r));
	check(filter_batch(&f, c, NULL, 4, &stop) == 2 && c[0].addr == 0x20 && c[1].addr == 0x30 && stop,
	      "--from, --to");
	f = (struct filter){.to = UINT64_MAX, .by_addr = true, .lo = 0x27, .hi = 0x30};
	memcpy(c, r, sizeof(r));
	stop = false;
	check(filter_batch(&f, c, NULL, 4, &stop) == 1 && c[0].addr == 0x20 && !stop,
	      "--addr: touches, not begins in");
}

static void test_json(void)
{
	char buf[20];

	check(json_get("{\"a\": \"version\", \"version\": 12}", "version", buf, sizeof(buf)) &&
		      !strcmp(buf, "12"),
	      "a value that looks like the key");
	check(json_get("{\"r\": \"a\\\"b\\n\"}", "r", buf, sizeof(buf)) && !strcmp(buf, "a\"b\n"), "escapes");
	check(!json_get("{\"x\": {\"r\": 1}, \"y\": [\"r\", {\"r\": 2}]}", "r", buf, sizeof(buf)) &&
		      json_get("{\"x\": {\"r\": 1, \"q\": \"}\"}, \"r\": 3}", "r", buf, sizeof(buf)) &&
		      !strcmp(buf, "3"),
	      "another object's key of that name");
	check(!json_get("{\"a\": \"cut", "b", buf, sizeof(buf)), "cut text");
	check(json_get("{\"a\": 123456789012345678901234567890", "a", buf, sizeof(buf)) && strlen(buf) == 19,
	      "long value is cut to the buffer");
}

/* hand-written number formatting against the C library's */
static void test_numbers(void)
{
	uint64_t v = 1;
	bool ok = true;

	for (int i = 0; i < 20000; i++) {
		uint64_t x = i < 64 ? 1ull << i : i < 128 ? (1ull << (i - 64)) - 1 : v >> v % 64;
		char want[100], got[100];
		int min = i % 16 + 1;
		char *p = got;

		v = v * 6364136223846793005ull + 1442695040888963407ull;
		p = put_hex(p, x, 1);
		*p++ = ' ';
		p = put_hex(p, x, min);
		*p++ = ' ';
		p = put_dec(p, x);
		*p = 0;
		snprintf(want, sizeof(want), "%llx %0*llx %llu", (unsigned long long)x, min,
			 (unsigned long long)x, (unsigned long long)x);
		if (strcmp(got, want)) {
			printf("%s instead of %s\n", got, want);
			ok = false;
			break;
		}
	}
	check(ok, "numbers as text");
}

int main(void)
{
	const char *t = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/ptrace-XXXXXX", t ? t : "/tmp");
	if (!mkdtemp(dir))
		return 2;
	test_numbers();
	test_columns();
	test_trace();
	test_log();
	test_cuts();
	test_keys();
	test_text();
	test_filter();
	test_json();
	unlink(path("t.bin"));
	unlink(path("u.bin"));
	unlink(path("out"));
	unlink(path("thread-6.log"));
	rmdir(dir);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
