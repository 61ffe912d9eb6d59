/* SPDX-License-Identifier: MIT
 *
 * collect_chunk.c - compresses a chunk and appends it to the thread's log (run.h, struct run_chunk)
 *
 * Compressing (chunk_pack) may run in several threads, one struct pack each; appending is in stream
 * order, one at a time. After a failed write the file is cut back to its last complete record and
 * nothing more is written: what is there stays readable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "collect.h"

int pack_init(struct pack *k)
{
	size_t z = ZSTD_compressBound(CHUNK_MAX), l = lz_bound(CHUNK_MAX);

	k->cap = z > l ? z : l;
	k->buf = malloc(k->cap); /* used from the front: what is never written takes no memory */
	return k->buf ? 0 : ENOMEM;
}

int chunk_init(struct collect *c)
{
	char name[64];

	snprintf(name, sizeof(name), "thread-%u.log", c->ring->tid);
	c->log_fd = openat(c->proc_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (c->log_fd < 0)
		return errno;
	flock(c->log_fd, LOCK_EX | LOCK_NB); /* where there are no locks, readers take the log as it is */
	return 0;
}

int write_at(int fd, const void *p, size_t n, uint64_t at)
{
	while (n) {
		ssize_t r = pwrite(fd, p, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return errno;
		if (r == 0)
			return EIO;
		p = (const char *)p + r;
		n -= r;
		at += r;
	}
	return 0;
}

void chunk_pack(const struct collect *c, struct pack *k, uint16_t *table, const void *p, uint64_t n)
{
	size_t r = 0;

	if (n && c->codec == 1)
		r = lz_pack(table, p, n, k->buf);
	else if (n && c->codec == 2)
		r = ZSTD_compress(k->buf, k->cap, p, n, 1);
	if ((c->codec == 2 && ZSTD_isError(r)) || r >= n)
		r = 0;
	k->codec = r ? c->codec : 0;
	k->data = r ? k->buf : p;
	k->size = r ? r : n;
	k->raw = n;
	k->xxh3 = XXH3_64bits(k->data, k->size);
}

int chunk_append(struct collect *c, const struct pack *k, const struct ring_desc *d, int kind)
{
	struct run_chunk h = {.magic = RUN_CHUNK_MAGIC, .version = RUN_VERSION};
	uint64_t start = c->disk_bytes;

	if (c->error)
		return c->error;
	h.codec = k->codec;
	h.kind = kind;
	h.pid = c->ring->pid;
	h.tid = c->ring->tid;
	h.seq = c->seq;
	h.first = d->first;
	h.raw_size = k->raw;
	h.disk_size = k->size;
	h.tsc_open = d->tsc_open;
	h.tsc_close = d->tsc_close;
	h.xxh3 = k->xxh3;
	c->error = write_at(c->log_fd, &h, sizeof(h), start);
	if (!c->error)
		c->error = write_at(c->log_fd, k->data, k->size, start + sizeof(h));
	if (c->error) {
		if (ftruncate(c->log_fd, (off_t)start) && !c->error)
			c->error = errno;
		return c->error;
	}
	c->seq++;
	c->raw_bytes += k->raw;
	c->disk_bytes += sizeof(h) + k->size;
	return 0;
}
