/* SPDX-License-Identifier: MIT
 *
 * collect_chunk.c - compresses a chunk and appends it to the thread's log (run.h, struct run_chunk)
 *
 * Compressing (chunk_pack) may run in several threads, one struct pack each; appending is in stream
 * order, one at a time. The file is open for as long as that takes: there may be more threads than descriptors. After a
 * failed write it is cut back to its last complete record and nothing more is written: what is there stays
 * readable.
 *
 * Of a thread that ends before its first chunk is full that chunk goes to threads.log: to make a file takes longer than
 * such a thread does, and some programs make hundreds of thousands of them.
 *
 * A replay whose trace is wanted at once has a FIFO instead of a log: nothing of it goes to disk, and the replay waits
 * for who reads.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The thread's log. One tid may name several threads of a process, one after the other. */
static int log_open(const struct collect *c, struct cthread *t)
{
	char name[64];
	int fd;

	for (;;) {
		if (t->again)
			snprintf(name, sizeof(name), "thread-%u.%u.log", t->tid, t->again);
		else
			snprintf(name, sizeof(name), "thread-%u.log", t->tid);
		fd = proc_open(c, t->p, name, O_WRONLY | (t->made ? 0 : O_CREAT | O_EXCL));
		if (fd >= 0 || errno != EEXIST)
			break;
		t->again++;
	}
	t->made |= fd >= 0;
	return fd;
}

static int write_stream(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return errno;
		p = (const char *)p + r;
		n -= (size_t)r;
	}
	return 0;
}

int chunk_begin(struct collect *c, struct cthread *t)
{
	int fd;

	if (c->stream) {
		c->stream_fd = open(c->stream, O_WRONLY | O_CLOEXEC);
		return c->stream_fd < 0 ? -1 : 0;
	}
	fd = log_open(c, t);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int put_stream(const struct collect *c, const struct run_chunk *h, const struct pack *k)
{
	int err = write_stream(c->stream_fd, h, sizeof(*h));

	return err ? err : write_stream(c->stream_fd, k->data, k->size);
}

/* the record at *at of fd */
static int put_record(int fd, const struct run_chunk *h, const struct pack *k, uint64_t *at)
{
	struct iovec v[2] = {{(void *)h, sizeof(*h)}, {(void *)k->data, k->size}};
	int err;

	if (fd < 0)
		return errno;
	err = writev_at(fd, v, 2, *at);
	if (err)
		(void)!ftruncate(fd, (off_t)*at); /* err says what went wrong first */
	if (!err)
		*at += sizeof(*h) + k->size;
	return err;
}

/* Is it all of the stream of a thread that needs no file of its own? The first thread has one: readers know the process
 * by it. So has one whose packets have a file. */
static bool shares(const struct cthread *t, const struct run_chunk *h)
{
	return h->kind && !h->seq && !t->made && t->tid != t->p->pid && !t->p->pt.threads && !t->p->pt.failed;
}

/* The process's threads.log. The last one stays open: short threads come in numbers. */
static int shared_log(const struct collect *c, struct cproc *p)
{
	static const struct cproc *of;
	static int fd = -1;

	if (of == p && fd >= 0)
		return fd;
	if (fd >= 0)
		close(fd);
	of = p;
	fd = proc_open(c, p, "threads.log", O_WRONLY | O_CREAT);
	return fd;
}

static int put_log(const struct collect *c, struct cthread *t, const struct run_chunk *h,
		   const struct pack *k)
{
	int fd, err;

	if (shares(t, h))
		return put_record(shared_log(c, t->p), h, k, &t->p->shared);
	fd = log_open(c, t);
	err = put_record(fd, h, k, &t->disk);
	if (fd >= 0)
		close(fd);
	return err;
}

int chunk_append(struct collect *c, struct cthread *t, const struct pack *k, const struct ring_desc *d,
		 int kind)
{
	struct run_chunk h = {.magic = RUN_CHUNK_MAGIC, .version = RUN_VERSION};

	if (c->error)
		return c->error;
	h.codec = k->codec;
	h.kind = kind;
	h.pid = t->p->pid;
	h.tid = t->tid;
	h.seq = t->seq;
	h.first = d->first;
	h.raw_size = k->raw;
	h.disk_size = k->size;
	h.tsc_open = d->tsc_open;
	h.tsc_close = d->tsc_close;
	h.xxh3 = k->xxh3;
	h.ncut = d->ncut;
	h.key = ring_keyed(d);
	c->error = c->stream ? put_stream(c, &h, k) : put_log(c, t, &h, k);
	if (c->error)
		return c->error;
	t->seq++;
	t->p->raw_bytes += k->raw;
	t->p->disk_bytes += sizeof(h) + k->size;
	return 0;
}
