// SPDX-License-Identifier: MIT
/* unit_pt_collect.c - ptrace-collect's part of Intel PT without any: the PMU's directory read, settings chosen, a ring
 * and an AUX area made up as the kernel would write them and read back into a file
 *
 * The model: packets are the bytes of a counter stream, so every byte says where it belongs. The "kernel" here writes
 * them into the area and announces them by records and heads, in the order that perf_aux_output_end has; what the file
 * holds must be that stream, but for the gaps that were announced. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "collect_pt.h"

static int passed, failed;
static uint64_t seed = 1;

static void check(bool ok, const char *what)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL: %s\n", what);
}

static uint64_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 33;
}

/* ---- the PMU ---- */

static char dir[] = "/tmp/unit_pt.XXXXXX";

static void put(const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		exit(1);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void remove_file(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

static void test_pmu(void)
{
	static const char *const file[][2] = {
		{"type", "10"},
		{"format/tsc", "config:10"},
		{"format/mtc", "config:9"},
		{"format/mtc_period", "config:14-17"},
		{"format/cyc", "config:1"},
		{"format/cyc_thresh", "config:19-22"},
		{"format/psb_period", "config:24-27"},
		{"format/ptw", "config:12"},
		{"format/fup_on_ptw", "config:5"},
		{"caps/psb_cyc", "1"},
		{"caps/psb_periods", "3f"},
		{"caps/mtc", "1"},
		{"caps/mtc_periods", "249"},
		{"caps/ptwrite", "1"},
		{"tsc_art_ratio", "168:2"},
		{"max_nonturbo_ratio", "33"},
	};
	struct run_pt_info i;
	struct pt_want w = {.psb = 2, .mtc = 3};
	struct pt_pmu p;
	char what[300];
	uint64_t config;

	check(pt_pmu_read(dir, &p, what, sizeof(what)) != 0, "no PMU: an error");
	put("type", "no number");
	check(pt_pmu_read(dir, &p, what, sizeof(what)) != 0, "a type that is none: an error");
	for (size_t k = 0; k < sizeof(file) / sizeof(file[0]); k++)
		put(file[k][0], file[k][1]);
	check(!pt_pmu_read(dir, &p, what, sizeof(what)) && p.type == 10 && p.nom_freq == 33 &&
		      p.tsc_ratio_ebx == 168 && p.tsc_ratio_eax == 2,
	      "type, ratios");
	memset(&i, 0, sizeof(i));
	config = pt_config(&p, &w, &i);
	check(config == (1u << 10 | 1u << 9 | 3u << 14 | 2u << 24 | 1u << 12 | 1u << 5),
	      "config of a full PMU");
	check(i.flags == (RUN_PT_TSC | RUN_PT_MTC | RUN_PT_PTW | RUN_PT_RETC) && i.mtc_freq == 3 &&
		      i.psb_freq == 2 && i.counter == RUN_PT_PTWRITE,
	      "what is in the stream");
	w = (struct pt_want){.cyc = true, .psb = 15, .mtc = -1};
	memset(&i, 0, sizeof(i));
	config = pt_config(&p, &w, &i);
	check(config == (1u << 10 | 1u << 1 | 5u << 24 | 1u << 12 | 1u << 5) && i.psb_freq == 5,
	      "CYC, no MTC, the longest PSB period that there is");
	/* bits are where the directory says, and nowhere if it does not */
	put("format/tsc", "config:33");
	put("caps/ptwrite", "0");
	put("format/mtc_period", "config1:14-17");
	remove_file("caps/psb_cyc");
	w = (struct pt_want){.cyc = true, .psb = 2, .mtc = 3};
	memset(&i, 0, sizeof(i));
	pt_pmu_read(dir, &p, what, sizeof(what));
	check(pt_config(&p, &w, &i) == 1ull << 33 && i.flags == (RUN_PT_TSC | RUN_PT_RETC) &&
		      i.counter == RUN_PT_BRANCHES,
	      "a PMU with little: TSC at another bit, nothing else");
	check(pt_nearest(0x249, 4) == 3 && pt_nearest(0x249, 5) == 6 && pt_nearest(0, 3) == -1 &&
		      pt_nearest(0x8000, 0) == 15,
	      "nearest exponent");
	check(pt_put((struct pt_field){4, 7}, 0x1f) == 0xf0 && !pt_put((struct pt_field){0, -1}, 1),
	      "fields");
}

/* ---- why not ---- */

static void test_why(void)
{
	static const struct {
		struct pt_fail f;
		const char *says;
	} t[] = {
		{{16, false}, "in use by another"}, /* EBUSY */
		{{38, false}, "does not exist here"}, /* ENOSYS */
		{{3, false}, "pid namespace"}, /* ESRCH */
		{{1, true}, "perf_event_mlock_kb"}, /* EPERM of a mapping */
		{{12, true}, "PTRACE_PT_AUX"}, /* ENOMEM */
		{{13, false}, "perf_event_paranoid"}, /* EACCES: a number, or that there is none */
	};
	char buf[512];

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		pt_why_open(buf, sizeof(buf), &t[i].f);
		check(strstr(buf, t[i].says) && !strchr(buf, '\n'), t[i].says);
	}
}

/* ---- the buffers ---- */

#define AUX 65536u
#define RING 4096u

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 0x9e3779b97f4a7c15ull >> 56);
}

static struct area {
	struct pt_area a;
	uint64_t made; /* bytes of the stream, announced or not */
	uint64_t lost_from; /* of what was made since the area was full */
} k;

static void area_init(void)
{
	static struct perf_event_mmap_page *page;
	static uint8_t *aux;

	page = page ? page : aligned_alloc(4096, 4096 + RING);
	aux = aux ? aux : aligned_alloc(4096, AUX);
	memset(page, 0, 4096 + RING);
	page->data_offset = 4096;
	page->data_size = RING;
	k.a = (struct pt_area){-1, page, RING, aux, AUX, AUX / 2};
	k.made = 0;
}

static uint64_t room(void)
{
	return AUX - (k.made - k.a.page->aux_tail);
}

/* n bytes into the area; the caller sees to it that there is room */
static void hardware(uint64_t n)
{
	while (n--) {
		k.a.aux[k.made % AUX] = byte_at(k.made);
		k.made++;
	}
}

static bool ring_put(uint32_t type, const void *body, uint16_t n)
{
	struct perf_event_header h = {type, 0, (uint16_t)(sizeof(h) + n)};
	uint8_t *ring = (uint8_t *)k.a.page + 4096, rec[64];
	uint64_t at = k.a.page->data_head;

	if (at + h.size - k.a.page->data_tail > RING)
		return false;
	memcpy(rec, &h, sizeof(h));
	memcpy(rec + sizeof(h), body, n);
	for (uint32_t i = 0; i < h.size; i++)
		ring[(at + i) % RING] = rec[i];
	k.a.page->data_head = at + h.size;
	return true;
}

static bool announce(uint64_t from, uint64_t flags, bool move)
{
	uint64_t body[3] = {from, k.made - from, flags};
	bool ok = ring_put(PERF_RECORD_AUX, body, sizeof(body));

	if (move)
		k.a.page->aux_head = k.made;
	return ok;
}

/* where in the stream bytes were lost, in order */
static uint64_t lost_at[4096];
static uint32_t nlost;

/* ---- the file, as a reader of the format sees it ---- */

struct seen {
	uint64_t bytes, data, packed, gaps, truncated, lost, starts, ends, ring_lost;
	uint64_t missing; /* of the places in lost_at[], how many have no gap */
	bool bad; /* checksums, places, contents */
	struct run_pt_info info;
};

/* the packets of the record whose payload is at p, *n bytes: in a buffer until the next call; NULL if there are none */
static const uint8_t *packets(const struct run_pt_rec *r, const uint8_t *p, uint64_t *n)
{
	static uint8_t buf[RUN_PT_BLOCK];
	size_t got;

	*n = r->raw ? r->raw : r->size;
	if (!r->raw)
		return p;
	if (r->raw > sizeof(buf))
		return NULL;
	if (r->flags & RUN_PT_F_LZ4)
		got = (size_t)LZ4_decompress_safe((const char *)p, (char *)buf, (int)r->size, sizeof(buf));
	else
		got = ZSTD_decompress(buf, sizeof(buf), p, r->size);
	return got == r->raw && r->size < r->raw ? buf : NULL;
}

static struct seen look(const char *name)
{
	struct seen s = {0};
	uint64_t at = sizeof(struct run_pt_info), next = 0;
	uint32_t losses = 0;
	char path[200];
	uint8_t *b;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st)) {
		s.bad = true;
		return s;
	}
	b = malloc((size_t)st.st_size + 1);
	s.bad = read(fd, b, (size_t)st.st_size) != st.st_size || st.st_size < (off_t)at;
	close(fd);
	if (!s.bad) {
		memcpy(&s.info, b, sizeof(s.info));
		s.bad = s.info.magic != RUN_PT_MAGIC || s.info.size != at ||
			s.info.xxh3 != XXH3_64bits(b, offsetof(struct run_pt_info, xxh3));
	}
	while (!s.bad && at < (uint64_t)st.st_size) {
		struct run_pt_rec r;
		const uint8_t *p;
		uint64_t n;

		memcpy(&r, b + at, sizeof(r));
		at += sizeof(r);
		s.bad = r.magic != RUN_PT_REC_MAGIC || r.size > (uint64_t)st.st_size - at ||
			r.xxh3 != (XXH3_64bits(&r, offsetof(struct run_pt_rec, xxh3)) ^
				   (r.size ? XXH3_64bits(b + at, r.size) : 0));
		if (s.bad)
			break;
		s.lost += r.kind == RUN_PT_LOST ? r.value : 0;
		s.starts += r.kind == RUN_PT_ITRACE_START && r.value == (7ull << 32 | 8);
		s.ends += r.kind == RUN_PT_END;
		s.ring_lost += r.kind == RUN_PT_RING_LOST;
		if (r.kind == RUN_PT_DATA) {
			p = packets(&r, b + at, &n);
			for (; losses < nlost && lost_at[losses] < r.offset + n; losses++)
				s.missing += lost_at[losses] != r.offset || !(r.flags & RUN_PT_GAP);
			s.bad |= r.offset < next || (r.offset != next && !(r.flags & RUN_PT_GAP));
			for (uint32_t i = 0; p && i < n; i++)
				s.bad |= p[i] != byte_at(r.offset + i);
			s.bad |= !p;
			next = r.offset + n;
			s.data++;
			s.packed += !!r.raw;
			s.bytes += n;
			s.gaps += !!(r.flags & RUN_PT_GAP);
			s.truncated += !!(r.flags & RUN_PT_F_TRUNCATED);
		}
		at += r.size;
	}
	free(b);
	return s;
}

static int on_data(void *arg, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
		   unsigned flags)
{
	return pt_file_data(arg, offset, p, n, p2, n2, flags, false);
}

static int on_note(void *arg, uint32_t kind, uint64_t value)
{
	return pt_file_note(arg, kind, value);
}

static struct pt_file file;
static int codec;
static const struct pt_sink sink = {&file, on_data, on_note};

static void begin(uint32_t tid)
{
	struct run_pt_info i = {.pid = 1, .tid = tid};
	int d = open(dir, O_RDONLY | O_DIRECTORY);

	area_init();
	if (d < 0 || pt_file_open(&file, d, tid, codec))
		exit(1);
	close(d);
	pt_file_info(&file, &i);
}

static void test_steps(void)
{
	uint64_t lost[2] = {1, 5};
	uint32_t id[2] = {7, 8};
	struct pt_read r = {0};
	struct seen s;

	begin(20);
	ring_put(PERF_RECORD_ITRACE_START, id, sizeof(id));
	check(pt_read(&r, &k.a, &sink), "a record only");
	check(!pt_read(&r, &k.a, &sink), "nothing new");
	hardware(100);
	announce(0, 0, true);
	check(pt_read(&r, &k.a, &sink) && r.offset == 100 && k.a.page->aux_tail == 100, "100 bytes");
	hardware(50);
	announce(100, 0, false); /* the record is there, aux_head not yet */
	check(pt_read(&r, &k.a, &sink) && r.offset == 150, "a record is enough");
	k.a.page->aux_head = 150;
	hardware(10); /* not announced by a record: the ring had no room */
	k.a.page->aux_head = 160;
	ring_put(PERF_RECORD_LOST, lost, sizeof(lost));
	check(pt_read(&r, &k.a, &sink) && r.offset == 150 && r.lost == 5, "its record may be on its way");
	check(pt_read(&r, &k.a, &sink) && r.offset == 160 && !r.again && !r.gap,
	      "it is not: it did not say that the area was full");
	check(!pt_read(&r, &k.a, &sink), "no more");
	hardware(room()); /* full, across the end of the area */
	announce(160, RUN_PT_F_TRUNCATED, true);
	check(pt_read(&r, &k.a, &sink) && r.truncated == 1 && r.again && r.gap,
	      "truncated: to be enabled again");
	r.again = false;
	hardware(30);
	announce(160 + AUX, RUN_PT_F_PARTIAL, true);
	check(pt_read(&r, &k.a, &sink) && r.partial == 1 && !r.gap && !r.again,
	      "what comes then has a gap before");
	announce(k.made, RUN_PT_F_TRUNCATED, true); /* of no byte */
	pt_read(&r, &k.a, &sink);
	check(r.truncated == 2 && r.again, "truncated, nothing new");
	pt_file_note(&file, RUN_PT_END, RUN_PT_END_THREAD);
	pt_file_close(&file);
	s = look("pt-20.bin");
	check(!s.bad && s.bytes == 160 + AUX + 30 && s.gaps == 1 && s.truncated == 2 && s.lost == 5 &&
		      s.ring_lost == 1 && s.starts == 1 && s.ends == 1 && s.info.tid == 20,
	      "the file");
}

/* a full area without a record that says so; a ring that makes no sense */
static void test_odd(void)
{
	uint64_t far[3] = {1ull << 40, 64, 0};
	struct pt_read r = {0};
	struct seen s;

	begin(21);
	hardware(AUX);
	k.a.page->aux_head = AUX;
	check(pt_read(&r, &k.a, &sink) && !r.again && !r.offset, "full, no record");
	check(pt_read(&r, &k.a, &sink) && r.again && r.gap && r.offset == AUX,
	      "full, no record: enabled again");
	r.again = false;
	ring_put(PERF_RECORD_AUX, far, sizeof(far));
	hardware(8);
	announce(AUX, 0, true);
	pt_read(&r, &k.a, &sink);
	check(r.offset == AUX + 8 && !r.gap, "a record of somewhere else is none");
	hardware(8); /* its record got lost, that of what follows did not */
	hardware(8);
	far[0] = AUX + 16;
	far[1] = 8;
	ring_put(PERF_RECORD_AUX, far, sizeof(far));
	k.a.page->aux_head = k.made;
	pt_read(&r, &k.a, &sink);
	check(r.offset == AUX + 24 && r.again, "one between two records, so soon behind a full area");
	r.again = false;
	((struct perf_event_header *)((uint8_t *)k.a.page + 4096 + k.a.page->data_tail % RING))->size = 3;
	k.a.page->data_head += 8;
	hardware(8);
	k.a.page->aux_head = k.made;
	pt_read(&r, &k.a, &sink);
	pt_read(&r, &k.a, &sink);
	check(k.a.page->data_tail == k.a.page->data_head, "an impossible record ends the ring's contents");
	hardware(8);
	k.a.page->aux_head = k.made;
	while (pt_read(&r, &k.a, &sink))
		;
	pt_file_close(&file);
	s = look("pt-21.bin");
	check(!s.bad && s.bytes == AUX + 40 && s.gaps == 3 && s.ring_lost == 5, "the file of odd things");
	begin(21);
	pt_file_close(&file);
	check(!look("pt-21.1.bin").bad, "a tid that comes again gets a file of its own");
}

/* random steps of kernel and reader: every byte once, in order, gaps only where announced */
static void test_random(void)
{
	struct pt_read r = {0};
	uint64_t truncated = 0, dropped = 0, near = 0, from = 0;
	struct seen s;
	bool off = false;

	begin(22);
	for (int i = 0; i < 20000; i++) {
		if (rnd() % 20 == 0) {
			near += !off && room() <= 4096; /* the kernel might have stopped there */
			pt_read(&r, &k.a, &sink);
			if (r.again) {
				off = false;
				r.again = false;
			}
			continue;
		}
		if (off)
			continue;
		uint64_t n = rnd() % 3000, flags = 0;

		if (n >= room()) {
			n = room();
			flags = RUN_PT_F_TRUNCATED;
			off = true;
		}
		hardware(n);
		if (n || flags) {
			if (!announce(from, flags, true))
				dropped++;
			else
				truncated += !!flags;
		}
		from = k.made;
	}
	while (pt_read(&r, &k.a, &sink))
		;
	pt_file_close(&file);
	s = look("pt-22.bin");
	check(!s.bad && s.bytes == k.made && s.truncated == truncated, "random: every byte once");
	check(truncated > 20 && s.bytes > 1000000, "random: it was full often enough to tell");
	check(s.gaps <= truncated + dropped + near && s.gaps >= truncated - 1,
	      "random: gaps only behind a full area");
}

/* --- a ring that is full, too: the thread runs while the area is read, its sessions begin with the tail as it is then --- */

static struct session {
	uint64_t tail, begin,
		limit; /* aux_tail when it began; of the stream, where it did, where the unit stops */
	bool in, off;
	uint32_t dropped, kept;
	unsigned most, burst; /* bytes at a time, as a rule and sometimes */
} run;

static void session_ends(uint64_t flags)
{
	uint64_t body[3] = {run.begin, k.made - run.begin, flags};
	uint64_t tail = k.a.page->data_tail;

	run.in = false;
	if (k.a.page->data_head + sizeof(body) + 8 - tail < RING &&
	    ring_put(PERF_RECORD_AUX, body, sizeof(body)))
		run.kept++;
	else
		run.dropped++;
	k.a.page->aux_head = k.made;
	run.off = flags & RUN_PT_F_TRUNCATED;
	if (run.off)
		lost_at[nlost++] = k.made;
}

static void kernel_step(void)
{
	if (run.off)
		return;
	if (!run.in) {
		run.in = true;
		run.tail = k.a.page->aux_tail;
		run.begin = k.made;
		run.limit = run.tail + AUX - rnd() % k.a.piece;
		if (run.limit <= k.made)
			session_ends(RUN_PT_F_TRUNCATED);
		return;
	}
	for (uint64_t n = rnd() % (rnd() % 50 ? run.most : run.burst); n && k.made < run.limit; n--)
		hardware(1);
	if (k.made >= run.limit)
		session_ends(RUN_PT_F_TRUNCATED);
	else if (rnd() % 2)
		session_ends(0);
}

static int on_busy_data(void *arg, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
			unsigned flags)
{
	for (int i = rnd() % 4 ? 0 : (int)(rnd() % 60); i > 0; i--)
		kernel_step();
	return on_data(arg, offset, p, n, p2, n2, flags);
}

/* the reader comes every `slow` steps */
static struct seen busy(uint32_t tid, unsigned slow, unsigned most, unsigned burst)
{
	static const struct pt_sink s = {&file, on_busy_data, on_note};
	struct pt_read r = {0};
	char name[20];
	struct seen seen;

	begin(tid);
	run = (struct session){.most = most, .burst = burst};
	nlost = 0;
	for (int i = 0; i < 200000 && nlost < 4000; i++) {
		if (rnd() % slow) {
			kernel_step();
			continue;
		}
		pt_read(&r, &k.a, &s);
		if (!r.again)
			continue;
		if (run.in)
			session_ends(0); /* it is disabled */
		run.off = true;
		pt_read_rest(&r, &k.a, &s);
		run.off = false;
	}
	if (run.in)
		session_ends(0);
	while (pt_read(&r, &k.a, &sink))
		;
	if (nlost && lost_at[nlost - 1] == k.made)
		nlost--; /* nothing came behind it */
	pt_file_close(&file);
	snprintf(name, sizeof(name), "pt-%u.bin", tid);
	seen = look(name);
	check(!seen.bad && seen.bytes == k.made, "busy: every byte once");
	check(!seen.missing, "busy: where something was lost the file says so");
	return seen;
}

static void test_busy(void)
{
	struct seen s;

	s = busy(40, 500, 8, 8);
	check(!nlost && run.dropped > 1000 && !s.gaps, "busy: lost records alone are no loss");
	s = busy(41, 400, 60, 9000);
	check(nlost > 100 && run.dropped > 1000, "busy: it was full, and records were lost");
	s = busy(42, 10, 2000, 2000);
	check(nlost > 100 && !run.dropped, "busy: it was full all the time");
	nlost = 0;
}

/* more than fits a block, from two pieces: every byte once, what is said of their ends where they are */
static void test_blocks(void)
{
	const size_t n = 5 * RUN_PT_BLOCK / 2, cut = 3 * RUN_PT_BLOCK / 4;
	uint8_t *p = malloc(n), *q = malloc(n - cut); /* elsewhere, so that it tells which is used */
	char name[20];
	struct seen s;

	for (size_t i = 0; i < n; i++)
		p[i] = byte_at(i);
	memcpy(q, p + cut, n - cut);
	for (codec = 0; codec < 3; codec++) {
		begin(30 + (uint32_t)codec);
		pt_file_data(&file, 0, p, cut, q, n - cut, RUN_PT_GAP | RUN_PT_F_TRUNCATED, false);
		pt_file_close(&file);
		snprintf(name, sizeof(name), "pt-%d.bin", 30 + codec);
		s = look(name);
		check(!s.bad && s.bytes == n && s.gaps == 1 && s.truncated == 1, "blocks: the file");
		check(s.data == (codec ? 3 : 1) && s.packed == (codec ? 3 : 0), "blocks: compressed");
	}
	codec = 1;
	begin(33);
	pt_file_data(&file, 0, p, n, NULL, 0, 0, true);
	pt_file_close(&file);
	check(look("pt-33.bin").packed == 0, "not compressed where that takes too long");
	free(p);
	free(q);
}

/* a full disk: what is there stays whole */
static void test_full(void)
{
	struct pt_read r = {0};
	int d = open("/dev", O_RDONLY | O_DIRECTORY);

	area_init();
	memset(&file, 0, sizeof(file));
	file.fd = openat(d, "full", O_WRONLY);
	close(d);
	hardware(100);
	announce(0, 0, true);
	pt_read(&r, &k.a, &sink);
	check(file.error && !file.at, "a full disk is noticed, nothing counts as written");
	pt_file_close(&file);
}

int main(void)
{
	char cmd[100];

	if (!mkdtemp(dir))
		return 1;
	snprintf(cmd, sizeof(cmd), "%s/format", dir);
	mkdir(cmd, 0700);
	snprintf(cmd, sizeof(cmd), "%s/caps", dir);
	mkdir(cmd, 0700);
	test_pmu();
	test_why();
	test_steps();
	codec = 1;
	test_odd();
	codec = 2;
	test_random();
	test_busy();
	test_blocks();
	test_full();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		failed++;
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
