/* SPDX-License-Identifier: MIT
 *
 * out_bin.c - writes the compressed trace format
 *
 *   head, then chunks: RECORDS …, TABLES (threads and modules), END (number of records)
 *
 * The tables come last because the counts in them are known then. A file without its END chunk
 * was cut.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>
#include "out.h"

struct bin {
	struct ptrace_rec *rec;
	size_t n;
	uint64_t total;
	uint8_t *raw, *disk;
	size_t disk_cap;
	ZSTD_CCtx *z;
};

static int bin_begin(struct sink *s)
{
	struct bin_head h = {BIN_MAGIC, BIN_VERSION, 0};
	struct bin *b = xcalloc(1, sizeof(*b));

	s->priv = b;
	b->rec = xcalloc(BIN_MAX_RECS, sizeof(*b->rec));
	b->raw = xrealloc(NULL, BIN_PACK_MAX(BIN_MAX_RECS), 1);
	b->z = ZSTD_createCCtx();
	return !b->z ? -1 : obuf_put(s->o, &h, sizeof(h));
}

static int chunk(struct sink *s, struct bin_chunk *c, const uint8_t *raw, size_t n)
{
	struct bin *b = s->priv;
	size_t k = 0;

	if (n) {
		if (ZSTD_compressBound(n) > b->disk_cap) {
			b->disk_cap = ZSTD_compressBound(n);
			b->disk = xrealloc(b->disk, b->disk_cap, 1);
		}
		k = ZSTD_compressCCtx(b->z, b->disk, b->disk_cap, raw, n, 1);
		if (ZSTD_isError(k))
			return -1;
	}
	c->magic = BIN_CHUNK_MAGIC;
	c->raw_size = n;
	c->disk_size = k;
	c->xxh3 = XXH3_64bits(b->disk, k);
	return obuf_put(s->o, c, sizeof(*c)) || obuf_put(s->o, b->disk, k) ? -1 : 0;
}

static int records(struct sink *s)
{
	struct bin *b = s->priv;
	struct bin_chunk c = {.type = BIN_RECORDS, .count = b->n, .first = b->total};
	size_t n = bin_pack(b->rec, b->n, b->raw, c.part);

	b->total += b->n;
	b->n = 0;
	return chunk(s, &c, b->raw, n);
}

static int bin_batch(struct sink *s, const struct ptrace_rec *rec, size_t n)
{
	struct bin *b = s->priv;

	while (n) {
		size_t k = BIN_MAX_RECS - b->n < n ? BIN_MAX_RECS - b->n : n;

		memcpy(b->rec + b->n, rec, k * sizeof(*rec));
		b->n += k;
		rec += k;
		n -= k;
		if (b->n == BIN_MAX_RECS && records(s))
			return -1;
	}
	return s->o->err ? -1 : 0;
}

/* u32 threads, u32 modules; struct ptrace_thread each; per module its struct ptrace_module with the
 * path's length in place of the pointer, and the path */
static int tables(struct sink *s)
{
	const struct ptrace_thread *t;
	const struct ptrace_module *m;
	uint32_t n[2] = {ptrace_run_threads(s->run, &t), ptrace_run_modules(s->run, &m)};
	struct bin_chunk c = {.type = BIN_TABLES};
	char *buf = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&buf, &size);
	int rc;

	if (!f)
		return -1;
	fwrite(n, sizeof(n), 1, f);
	fwrite(t, sizeof(*t), n[0], f);
	for (uint32_t i = 0; i < n[1]; i++) {
		struct ptrace_module k = m[i];
		uint64_t len = strlen(m[i].path);

		memcpy(&k.path, &len, sizeof(len));
		fwrite(&k, sizeof(k), 1, f);
		fwrite(m[i].path, len, 1, f);
	}
	rc = fclose(f) ? -1 : chunk(s, &c, (uint8_t *)buf, size);
	free(buf);
	return rc;
}

static int bin_end(struct sink *s)
{
	struct bin *b = s->priv;
	struct bin_chunk c = {.type = BIN_END};
	int rc = b->n ? records(s) : 0;

	c.first = b->total;
	if (!rc)
		rc = tables(s);
	if (!rc)
		rc = chunk(s, &c, NULL, 0);
	ZSTD_freeCCtx(b->z);
	free(b->rec);
	free(b->raw);
	free(b->disk);
	free(b);
	s->priv = NULL;
	return rc;
}

const struct sink sink_bin = {
	.name = "bin", .binary = true, .begin = bin_begin, .batch = bin_batch, .end = bin_end};
