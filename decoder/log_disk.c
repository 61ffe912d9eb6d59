/* SPDX-License-Identifier: MIT
 *
 * log_disk.c - chunks of one thread's stream: file ─▶ head, checksum, decompress, cuts, keyframe ─▶ slot
 *
 * A gap, a bad checksum or a cut ends the stream there, with the reason: what comes after cannot be trusted to line up.
 */
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "log_in.h"

#define POLL_US 2000
#define MAX_CHUNK (64u << 20) /* no writer makes larger ones; bounds what a damaged head can ask for */

static int bad(struct log *l, const char *fmt, uint64_t a, uint64_t b)
{
	char what[200];

	snprintf(what, sizeof(what), fmt, (unsigned long long)a, (unsigned long long)b);
	l->why = xprintf("%s: chunk %llu at byte %llu %s", l->path, (unsigned long long)l->seq,
			 (unsigned long long)l->file_pos, what);
	return -1;
}

/* Has the program ended, and is ptrace-collect still at it? */
static bool more_to_come(struct log *l)
{
	char *slash = strrchr(l->path, '/'),
	     *dir = slash ? xprintf("%.*s", (int)(slash - l->path), l->path) : NULL;
	bool locked = dir_locked(dir ? dir : ".");

	free(dir);
	if (!locked)
		return false;
	return l->ended || (kill((pid_t)l->pid, 0) && errno == ESRCH);
}

/* reads n bytes at pos; 1 done, 0 the file ends before, -1 error */
static int read_at(struct log *l, uint64_t pos, void *buf, size_t n)
{
	bool more = !l->stream;
	size_t got = 0;

	while (got < n) {
		ssize_t k = l->stream ? read(l->fd, (char *)buf + got, n - got)
				      : pread(l->fd, (char *)buf + got, n - got, pos + got);

		if (k < 0 && errno == EINTR)
			continue;
		if (!k && more) { /* once more after it has gone: it may have written meanwhile */
			more = more_to_come(l);
			if (more)
				usleep(POLL_US);
			if (!__atomic_load_n(&l->quit, __ATOMIC_RELAXED))
				continue;
		}
		if (k < 0) {
			char what[100];

			snprintf(what, sizeof(what), "cannot be read: %s", strerror(errno));
			return bad(l, what, 0, 0);
		}
		if (!k)
			return 0;
		got += k;
	}
	return 1;
}

static int check_chunk(struct log *l, const struct run_chunk *c)
{
	if (c->magic != RUN_CHUNK_MAGIC)
		return bad(l, "is damaged (no chunk head there)", 0, 0);
	if (c->version != RUN_VERSION)
		return bad(l,
			   "has version %llu, this decoder reads %llu: use the ptrace-decode of the "
			   "version that made the run",
			   c->version, RUN_VERSION);
	if (c->raw_size > MAX_CHUNK || c->disk_size > MAX_CHUNK || c->codec > 2 ||
	    c->ncut > c->raw_size / sizeof(struct run_cut) ||
	    c->key > c->raw_size - c->ncut * sizeof(struct run_cut) ||
	    (c->key && c->key < sizeof(struct run_key)))
		return bad(l, "is damaged (impossible size or codec)", 0, 0);
	if (!l->stream && (c->pid != l->pid || c->tid != l->tid))
		return bad(l, "belongs to another thread (pid %llu, tid %llu)", c->pid, c->tid);
	if (c->seq != l->seq || c->first != l->next)
		return bad(l, "is not the next one (number %llu, stream position %llu)", c->seq, c->first);
	return 0;
}

static int unpack(struct log *l, const struct run_chunk *c, uint8_t *to)
{
	size_t n = c->disk_size;

	if (c->codec == 0 && n == c->raw_size)
		memcpy(to, l->disk, n);
	else if (c->codec == 1)
		n = LZ4_decompress_safe((char *)l->disk, (char *)to, n, c->raw_size);
	else if (c->codec == 2)
		n = ZSTD_decompress(to, c->raw_size, l->disk, n);
	if (n != c->raw_size)
		return bad(l, "does not decompress to its size", 0, 0);
	return 0;
}

struct run_cut log_cut(const struct slot *s, uint32_t i)
{
	struct run_cut c;

	memcpy(&c, s->buf + LOG_MIN + s->all + i * sizeof(c), sizeof(c));
	return c;
}

/* Ascending, within the chunk; pauses (at + bytes) ascending, too. */
int log_check_cuts(struct log *l, const struct slot *s)
{
	struct run_cut last = {0, 0};

	for (uint32_t i = 0; i < s->ncut; i++) {
		struct run_cut c = log_cut(s, i);

		if (c.at > s->all || c.bytes > s->all - c.at || c.at < last.at ||
		    (i && c.at + c.bytes <= last.at + last.bytes))
			return bad(l, "is damaged (an impossible cut)", 0, 0);
		last = c;
	}
	return 0;
}

/* The keyframe at the front of what was unpacked goes aside; cuts count from what is left. */
static int take_key(struct log *l, struct slot *s, const struct run_chunk *c)
{
	uint8_t *b = s->buf + LOG_MIN;
	struct run_key k;

	s->key_n = c->key;
	if (!c->key)
		return 0;
	memcpy(&k, b, sizeof(k));
	if (k.stack_size != c->key - sizeof(k))
		return bad(l, "is damaged (an impossible keyframe)", 0, 0);
	if (s->key_cap < c->key) {
		s->key = xrealloc(s->key, c->key, 1);
		s->key_cap = c->key;
	}
	memcpy(s->key, b, c->key);
	memmove(b, b + c->key, c->raw_size - c->key);
	for (uint32_t i = 0; i < c->ncut; i++) {
		struct run_cut cut = log_cut(s, i);

		cut.at -= c->key; /* one that stood in the keyframe is an impossible one now */
		memcpy(b + s->all + i * sizeof(cut), &cut, sizeof(cut));
	}
	return 0;
}

static int next_chunk(struct log *l, struct slot *s, bool *last)
{
	struct run_chunk c;
	int k = read_at(l, l->file_pos, &c, sizeof(c));

	if (k <= 0)
		return k;
	if (check_chunk(l, &c))
		return -1;
	if (!l->disk || l->disk_cap < c.disk_size) {
		l->disk = xrealloc(l->disk, c.disk_size, 1);
		l->disk_cap = c.disk_size;
	}
	k = read_at(l, l->file_pos + sizeof(c), l->disk, c.disk_size);
	if (k <= 0)
		return k;
	if (XXH3_64bits(l->disk, c.disk_size) != c.xxh3)
		return bad(l, "is damaged (checksum)", 0, 0);
	if (!s->buf || s->cap < c.raw_size) {
		s->buf = xrealloc(s->buf, LOG_MIN + (size_t)c.raw_size, 1);
		s->cap = c.raw_size;
	}
	if (unpack(l, &c, s->buf + LOG_MIN))
		return -1;
	s->ncut = c.ncut;
	s->n = s->all = c.raw_size - c.key - (size_t)c.ncut * sizeof(struct run_cut);
	s->pos = l->next;
	s->file_pos = l->file_pos;
	s->seq = l->seq;
	if (take_key(l, s, &c) || log_check_cuts(l, s))
		return -1;
	s->tsc_open = c.tsc_open;
	s->tsc_close = c.tsc_close;
	*last = c.kind == 1;
	l->file_pos += sizeof(c) + c.disk_size;
	l->seq++;
	l->next += s->all;
	return 1;
}

/* the same, with the file open for no longer than that, and no memory kept but the chunk's */
static int next_chunk_many(struct log *l, struct slot *s, bool *last)
{
	int k;

	if (!l->stream)
		l->fd = open(l->path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0) {
		char what[100];

		snprintf(what, sizeof(what), "cannot be read: %s", strerror(errno));
		return bad(l, what, 0, 0);
	}
	k = next_chunk(l, s, last);
	if (!l->stream) {
		close(l->fd);
		l->fd = -1;
	}
	free(l->disk);
	l->disk = NULL;
	return k;
}

int log_chunk(struct log *l, struct slot *s, bool *last)
{
	return l->many ? next_chunk_many(l, s, last) : next_chunk(l, s, last);
}
