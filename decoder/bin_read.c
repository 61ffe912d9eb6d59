/* SPDX-License-Identifier: MIT
 *
 * bin_read.c - reads the compressed trace format
 *
 * Records stream: one chunk is in memory at a time. The tables are near the end of the file;
 * they are found at opening by walking the chunk heads, which also tells whether the file is
 * whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <xxhash.h>
#include <zstd.h>
#include "out.h"

#define MAX_TABLES (256u << 20)

struct ptrace_trace {
	char *path;
	FILE *f;
	struct ptrace_rec *rec;
	size_t n, at; /* records of the current chunk, next to give */
	uint64_t total; /* records read so far */
	uint8_t *raw, *disk;
	size_t raw_cap, disk_cap;
	struct ptrace_thread *thread;
	uint32_t nthread;
	struct ptrace_module *module;
	uint32_t nmodule;
	bool ended;
};

/* chunk head at the file's position: 1, 0 at the end of the file, -1 with e */
static int head(ptrace_trace *t, struct bin_chunk *c, struct ptrace_error *e)
{
	size_t k = fread(c, 1, sizeof(*c), t->f);

	if (!k && feof(t->f))
		return 0;
	if (k != sizeof(*c))
		return err_set(e, PTRACE_PARTIAL, "%s is cut inside a chunk, after %llu records", t->path,
			       (unsigned long long)t->total);
	if (c->magic != BIN_CHUNK_MAGIC || c->type < BIN_RECORDS || c->type > BIN_END ||
	    c->count > BIN_MAX_RECS || c->disk_size > MAX_TABLES || c->raw_size > MAX_TABLES)
		return err_set(e, PTRACE_BAD, "%s is damaged after %llu records", t->path,
			       (unsigned long long)t->total);
	return 1;
}

static int body(ptrace_trace *t, const struct bin_chunk *c, struct ptrace_error *e)
{
	if (!t->raw || t->raw_cap < c->raw_size)
		t->raw = xrealloc(t->raw, t->raw_cap = c->raw_size, 1);
	if (!t->disk || t->disk_cap < c->disk_size)
		t->disk = xrealloc(t->disk, t->disk_cap = c->disk_size, 1);
	if (fread(t->disk, 1, c->disk_size, t->f) != c->disk_size)
		return err_set(e, PTRACE_PARTIAL, "%s is cut inside a chunk, after %llu records", t->path,
			       (unsigned long long)t->total);
	if (XXH3_64bits(t->disk, c->disk_size) != c->xxh3 ||
	    (c->raw_size && ZSTD_decompress(t->raw, c->raw_size, t->disk, c->disk_size) != c->raw_size))
		return err_set(e, PTRACE_BAD, "%s is damaged after %llu records (checksum)", t->path,
			       (unsigned long long)t->total);
	return 0;
}

static int parse_tables(ptrace_trace *t, const uint8_t *b, size_t n, struct ptrace_error *e)
{
	uint32_t count[2];

	if (n < sizeof(count))
		goto bad;
	memcpy(count, b, sizeof(count));
	b += sizeof(count);
	n -= sizeof(count);
	if (count[0] > n / sizeof(*t->thread) || count[1] > n / sizeof(*t->module))
		goto bad;
	t->thread = xrealloc(t->thread, count[0], sizeof(*t->thread));
	t->module = xcalloc(count[1], sizeof(*t->module));
	t->nthread = count[0];
	memcpy(t->thread, b, count[0] * sizeof(*t->thread));
	b += count[0] * sizeof(*t->thread);
	n -= count[0] * sizeof(*t->thread);
	for (; t->nmodule < count[1]; t->nmodule++) {
		struct ptrace_module *m = &t->module[t->nmodule];
		uint64_t len;

		if (n < sizeof(*m))
			goto bad;
		memcpy(m, b, sizeof(*m));
		memcpy(&len, b + offsetof(struct ptrace_module, path), sizeof(len));
		b += sizeof(*m);
		n -= sizeof(*m);
		if (len > n)
			goto bad;
		m->path = strndup((const char *)b, len);
		b += len;
		n -= len;
	}
	return 0;
bad:
	return err_set(e, PTRACE_BAD, "%s: the tables are damaged", t->path);
}

/* Tables, by walking the chunk heads. A file that cannot seek, or that is cut, has none. */
static int find_tables(ptrace_trace *t, struct ptrace_error *e)
{
	struct bin_chunk c;

	while (head(t, &c, NULL) > 0) {
		if (c.type == BIN_TABLES && !t->thread) {
			if (body(t, &c, e) || parse_tables(t, t->raw, c.raw_size, e))
				return -1;
		} else if (fseeko(t->f, c.disk_size, SEEK_CUR)) {
			break;
		}
	}
	clearerr(t->f);
	if (fseeko(t->f, sizeof(struct bin_head), SEEK_SET))
		return err_set(e, PTRACE_BAD, "%s: %s (a trace is read from a file)", t->path,
			       strerror(errno));
	return 0;
}

ptrace_trace *ptrace_trace_open(const char *path, struct ptrace_error *err)
{
	ptrace_trace *t = xcalloc(1, sizeof(*t));
	struct bin_head h;

	t->path = xprintf("%s", path);
	t->f = fopen(path, "rb");
	if (!t->f)
		err_set(err, PTRACE_BAD, "cannot open %s: %s", path, strerror(errno));
	else if (fread(&h, sizeof(h), 1, t->f) != 1 || h.magic != BIN_MAGIC)
		err_set(err, PTRACE_BAD, "%s is not a trace written by ptrace-decode --format=bin", path);
	else if (h.version != BIN_VERSION)
		err_set(err, PTRACE_BAD,
			"%s has trace version %u, this library reads %d: use the version that "
			"wrote it",
			path, h.version, BIN_VERSION);
	else if (!find_tables(t, err)) {
		t->rec = xcalloc(BIN_MAX_RECS, sizeof(*t->rec));
		return t;
	}
	ptrace_trace_close(t);
	return NULL;
}

void ptrace_trace_close(ptrace_trace *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nmodule; i++)
		free((char *)t->module[i].path);
	if (t->f)
		fclose(t->f);
	free(t->module);
	free(t->thread);
	free(t->rec);
	free(t->raw);
	free(t->disk);
	free(t->path);
	free(t);
}

/* next chunk of records: 1, 0 at the end, -1 */
static int advance(ptrace_trace *t, struct ptrace_error *e)
{
	struct bin_chunk c;
	int k = head(t, &c, e);

	if (!k)
		return err_set(e, PTRACE_PARTIAL, "%s is cut after %llu records (no end chunk)", t->path,
			       (unsigned long long)t->total);
	if (k < 0 || body(t, &c, e))
		return -1;
	if (c.type == BIN_END) {
		t->ended = true;
		if (c.first == t->total)
			return 0;
	}
	if (c.type != BIN_RECORDS)
		return c.type == BIN_TABLES ? 1 : err_set(e, PTRACE_BAD, "%s: records are missing", t->path);
	if (c.first != t->total || (uint64_t)c.part[0] + c.part[1] + c.part[2] != c.raw_size ||
	    bin_unpack(t->raw, c.part, c.count, t->rec))
		return err_set(e, PTRACE_BAD, "%s is damaged after %llu records", t->path,
			       (unsigned long long)t->total);
	t->n = c.count;
	t->at = 0;
	t->total += c.count;
	return 1;
}

long ptrace_trace_read(ptrace_trace *t, struct ptrace_rec *rec, size_t n, struct ptrace_error *err)
{
	size_t got = 0;

	while (got < n) {
		size_t k = t->n - t->at;

		if (!k) {
			int a = t->ended ? 0 : got ? 0 : advance(t, err);

			if (a < 0)
				return -1;
			if (!a)
				break;
			continue;
		}
		k = k < n - got ? k : n - got;
		memcpy(rec + got, t->rec + t->at, k * sizeof(*rec));
		t->at += k;
		got += k;
	}
	return (long)got;
}

uint32_t ptrace_trace_threads(const ptrace_trace *t, const struct ptrace_thread **list)
{
	*list = t->thread;
	return t->nthread;
}

uint32_t ptrace_trace_modules(const ptrace_trace *t, const struct ptrace_module **list)
{
	*list = t->module;
	return t->nmodule;
}
