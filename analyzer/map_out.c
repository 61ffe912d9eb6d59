/* SPDX-License-Identifier: MIT
 *
 * map_out.c - see map_out.h
 */
#include "map_out.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#if __has_include(<xxh_x86dispatch.h>) /* where the library chooses by what the processor can */
#include <xxh_x86dispatch.h>
#endif

#define BUF (256u << 10)

struct out {
	FILE *f;
	struct map_head *h;
	XXH3_state_t *hash; /* of the section */
	int s; /* the section, -1 before the first */
	uint64_t done; /* its bytes that are hashed and written */
	size_t n; /* and those in buf */
	int error;
	_Alignas(64) uint8_t buf[BUF];
};

static uint64_t up(uint64_t off)
{
	return (off + 63) & ~63ull;
}

static void fail(struct out *o, int error)
{
	if (!o->error)
		o->error = error ? error : EIO;
}

static void put(struct out *o, const void *p, size_t n)
{
	errno = 0;
	if (n && !o->error && fwrite(p, 1, n, o->f) != n)
		fail(o, errno);
}

struct out *out_open(const char *path, struct map_head *h)
{
	struct out *o = aligned_alloc(_Alignof(struct out), sizeof(*o));

	if (!o)
		return NULL;
	o->h = h;
	o->s = -1;
	o->done = o->n = 0;
	o->error = 0;
	o->hash = XXH3_createState();
	o->f = o->hash ? fopen(path, "wb") : NULL;
	if (!o->f || fseek(o->f, (long)up(sizeof(*h)), SEEK_SET)) {
		int e = errno;

		if (o->f)
			fclose(o->f);
		XXH3_freeState(o->hash);
		free(o);
		errno = e;
		return NULL;
	}
	return o;
}

static void flush(struct out *o)
{
	XXH3_64bits_update(o->hash, o->buf, o->n);
	put(o, o->buf, o->n);
	o->done += o->n;
	o->n = 0;
}

uint64_t out_size(const struct out *o)
{
	return o->done + o->n;
}

static void end_section(struct out *o)
{
	static const char zero[64];
	struct map_sect *s = &o->h->sect[o->s];

	flush(o);
	s->size = o->done;
	s->xxh3 = XXH3_64bits_digest(o->hash);
	put(o, zero, up(s->size) - s->size);
}

void out_section(struct out *o)
{
	uint64_t off = up(sizeof(*o->h));

	if (o->s >= 0) {
		end_section(o);
		off = o->h->sect[o->s].off + up(o->h->sect[o->s].size);
	}
	o->h->sect[++o->s].off = off;
	o->done = 0;
	XXH3_64bits_reset(o->hash);
}

void out_add(struct out *o, const void *p, size_t n)
{
	if (n > sizeof(o->buf) - o->n) {
		flush(o);
		if (n > sizeof(o->buf)) {
			XXH3_64bits_update(o->hash, p, n);
			put(o, p, n);
			o->done += n;
			return;
		}
	}
	if (n)
		memcpy(o->buf + o->n, p, n);
	o->n += n;
}

void *out_room(struct out *o, size_t n)
{
	_Static_assert(OUT_ROOM <= BUF, "an empty buffer has it");
	if (n > sizeof(o->buf) - o->n)
		flush(o);
	o->n += n;
	return o->buf + o->n - n;
}

void out_fill(struct out *o, uint8_t byte, size_t n)
{
	memset(out_room(o, n), byte, n);
}

int out_close(struct out *o, bool all)
{
	struct map_head *h = o->h;
	int e;

	end_section(o);
	h->head_xxh3 = XXH3_64bits(h, offsetof(struct map_head, head_xxh3));
	errno = 0;
	if (all && !o->error && (fseek(o->f, 0, SEEK_SET) || fwrite(h, sizeof(*h), 1, o->f) != 1))
		fail(o, errno);
	errno = 0;
	if (fclose(o->f))
		fail(o, errno);
	e = o->error;
	XXH3_freeState(o->hash);
	free(o);
	errno = e;
	return e ? -1 : 0;
}
