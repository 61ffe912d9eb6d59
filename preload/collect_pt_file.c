/* SPDX-License-Identifier: MIT
 *
 * collect_pt_file.c - pt-TID.bin: what the hardware wrote for a thread, appended (include/run_pt.h)
 *
 * Packets are compressed as logs are, in blocks of at most RUN_PT_BLOCK: a loop's are some hundred bytes over and over.
 * After a failed write the file is cut back to its last complete record.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "collect.h"
#include "collect_pt.h"

static uint64_t tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* one tid may name several threads of a process, one after the other */
int pt_file_open(struct pt_file *f, int dir, uint32_t tid, int codec)
{
	char name[64];

	memset(f, 0, sizeof(*f));
	f->codec = codec;
	for (uint32_t again = 0;; again++) {
		if (again)
			snprintf(name, sizeof(name), "pt-%u.%u.bin", tid, again);
		else
			snprintf(name, sizeof(name), "pt-%u.bin", tid);
		f->fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (f->fd >= 0 || errno != EEXIST)
			break;
	}
	return f->error = f->fd < 0 ? errno : 0;
}

/* all of it or nothing */
static int append(struct pt_file *f, struct iovec *v, int n)
{
	uint64_t end = f->at;

	if (f->error)
		return -1;
	for (int i = 0; i < n; i++)
		end += v[i].iov_len;
	f->error = writev_at(f->fd, v, n, f->at);
	if (!f->error)
		f->at = end;
	else if (ftruncate(f->fd, (off_t)f->at))
		f->error = errno;
	return f->error ? -1 : 0;
}

void pt_file_info(struct pt_file *f, struct run_pt_info *info)
{
	struct iovec v = {info, sizeof(*info)};

	info->magic = RUN_PT_MAGIC;
	info->version = RUN_PT_VERSION;
	info->size = sizeof(*info);
	info->xxh3 = XXH3_64bits(info, offsetof(struct run_pt_info, xxh3));
	append(f, &v, 1);
	f->start = f->at;
}

static uint64_t hash2(const void *p, size_t n, const void *p2, size_t n2)
{
	static XXH3_state_t *x; /* only under pt.lock */

	if (!n2)
		return n ? XXH3_64bits(p, n) : 0;
	if (!x)
		x = XXH3_createState();
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, p, n);
	XXH3_64bits_update(x, p2, n2);
	return XXH3_64bits_digest(x);
}

static int put(struct pt_file *f, struct run_pt_rec *r, const void *p, size_t n, const void *p2, size_t n2)
{
	struct iovec v[3] = {{r, sizeof(*r)}, {(void *)p, n}, {(void *)p2, n2}};

	r->magic = RUN_PT_REC_MAGIC;
	r->size = (uint32_t)(n + n2);
	r->tsc = tsc();
	r->xxh3 = XXH3_64bits(r, offsetof(struct run_pt_rec, xxh3)) ^ hash2(p, n, p2, n2);
	return append(f, v, n2 ? 3 : n ? 2 : 1);
}

/* What blocks are compressed from and to, of all files. */
static struct {
	uint8_t *from, *to;
	size_t cap;
	uint16_t table[LZ_TABLE];
} z;

static bool z_ready(void)
{
	size_t a = ZSTD_compressBound(RUN_PT_BLOCK), b = lz_bound(RUN_PT_BLOCK);

	z.cap = a > b ? a : b;
	if (!z.from)
		z.from = malloc(RUN_PT_BLOCK);
	if (!z.to)
		z.to = malloc(z.cap);
	return z.from && z.to;
}

/* bytes in z.to, 0: they do not get fewer */
static size_t pack(int codec, const uint8_t *p, size_t n)
{
	size_t r = codec == 1 ? lz_pack(z.table, p, n, z.to) : ZSTD_compress(z.to, z.cap, p, n, 1);

	return (codec == 2 && ZSTD_isError(r)) || r >= n ? 0 : r;
}

/* n bytes from the two pieces, from `at` on, in one */
static const uint8_t *block(const uint8_t *p, size_t n1, const uint8_t *p2, size_t at, size_t n)
{
	size_t k;

	if (at >= n1)
		return p2 + (at - n1);
	if (at + n <= n1)
		return p + at;
	k = n1 - at;
	memcpy(z.from, p + at, k);
	memcpy(z.from + k, p2, n - k);
	return z.from;
}

static int compressed(struct pt_file *f, uint64_t offset, const uint8_t *p, size_t n1, const uint8_t *p2,
		      size_t n, unsigned flags)
{
	int err = 0;

	for (size_t at = 0; at < n && !err;) {
		size_t k = n - at < RUN_PT_BLOCK ? n - at : RUN_PT_BLOCK, r;
		const uint8_t *b = block(p, n1, p2, at, k);
		struct run_pt_rec rec = {.kind = RUN_PT_DATA, .offset = offset + at};

		if (at) /* what is said of before them is said of the first, of behind them of the last */
			flags &= ~(unsigned)RUN_PT_GAP;
		rec.flags = (uint16_t)(at + k < n ? flags & ~(unsigned)RUN_PT_F_TRUNCATED : flags);
		r = pack(f->codec, b, k);
		if (r) {
			rec.flags |= f->codec == 1 ? RUN_PT_F_LZ4 : RUN_PT_F_ZSTD;
			rec.raw = (uint32_t)k;
		}
		err = put(f, &rec, r ? z.to : b, r ? r : k, NULL, 0);
		at += k;
	}
	return err;
}

int pt_file_data(struct pt_file *f, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
		 unsigned flags, bool fast)
{
	struct run_pt_rec r = {.kind = RUN_PT_DATA, .flags = (uint16_t)flags, .offset = offset};

	if (f->codec && !fast && n + n2 && z_ready())
		return compressed(f, offset, p, n, p2, n + n2, flags);
	return put(f, &r, p, n, p2, n2);
}

int pt_file_note(struct pt_file *f, uint32_t kind, uint64_t value)
{
	struct run_pt_rec r = {.kind = (uint16_t)kind, .value = value};

	return put(f, &r, NULL, 0, NULL, 0);
}

void pt_file_close(struct pt_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
