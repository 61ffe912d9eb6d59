/* SPDX-License-Identifier: MIT
 *
 * collect_chunk.c - compresses a chunk and appends it to the thread's log (run.h, struct run_chunk)
 *
 * After a failed write the file is cut back to its last complete record and nothing more is
 * written: what is there stays readable.
 */
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "collect.h"

#define RAW_MAX (RUN_CHUNK_SIZE + 2 * RUN_CHUNK_SLACK)

int chunk_init(struct collect *c)
{
	char name[64];
	size_t z = ZSTD_compressBound(RAW_MAX), l = LZ4_compressBound(RAW_MAX);

	c->buf_size = z > l ? z : l;
	c->buf = malloc(c->buf_size);
	if (!c->buf)
		return ENOMEM;
	snprintf(name, sizeof(name), "thread-%u.log", c->ring->tid);
	c->log_fd = openat(c->proc_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return c->log_fd < 0 ? errno : 0;
}

static int write_all(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return errno;
		if (r == 0)
			return EIO;
		p = (const char *)p + r;
		n -= r;
	}
	return 0;
}

static size_t compress(struct collect *c, const void *p, size_t n)
{
	size_t r = 0;

	if (c->codec == 1)
		r = LZ4_compress_default(p, c->buf, (int)n, (int)c->buf_size);
	else if (c->codec == 2)
		r = ZSTD_compress(c->buf, c->buf_size, p, n, 1);
	return (c->codec == 2 && ZSTD_isError(r)) || r >= n ? 0 : r;
}

int chunk_write(struct collect *c, const void *p, uint64_t n, const struct ring_desc *d, int kind)
{
	struct run_chunk h = {.magic = RUN_CHUNK_MAGIC, .version = RUN_VERSION};
	off_t start;
	size_t z;

	if (c->error)
		return c->error;
	z = n ? compress(c, p, n) : 0;
	h.codec = z ? c->codec : 0;
	h.kind = kind;
	h.pid = c->ring->pid;
	h.tid = c->ring->tid;
	h.seq = c->seq;
	h.first = d->first;
	h.raw_size = n;
	h.disk_size = z ? z : n;
	h.tsc_open = d->tsc_open;
	h.tsc_close = d->tsc_close;
	h.xxh3 = XXH3_64bits(z ? c->buf : p, h.disk_size);
	start = lseek(c->log_fd, 0, SEEK_CUR);
	c->error = write_all(c->log_fd, &h, sizeof(h));
	if (!c->error)
		c->error = write_all(c->log_fd, z ? c->buf : p, h.disk_size);
	if (c->error) {
		if (ftruncate(c->log_fd, start) && !c->error)
			c->error = errno;
		return c->error;
	}
	c->seq++;
	c->raw_bytes += n;
	c->disk_bytes += sizeof(h) + h.disk_size;
	return 0;
}
