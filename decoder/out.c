/* SPDX-License-Identifier: MIT
 *
 * out.c - buffered output and number formatting
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "out.h"

void obuf_init(struct obuf *o, int fd)
{
	*o = (struct obuf){.fd = fd, .b = xrealloc(NULL, OBUF_SIZE, 1)};
}

static int write_all(struct obuf *o, const char *p, size_t n)
{
	while (n && !o->err) {
		ssize_t k = write(o->fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0) {
			o->err = errno;
			break;
		}
		p += k;
		n -= k;
		o->bytes += k;
	}
	return o->err ? -1 : 0;
}

int obuf_flush(struct obuf *o)
{
	size_t n = o->n;

	o->n = 0;
	return write_all(o, o->b, n);
}

int obuf_put(struct obuf *o, const void *p, size_t n)
{
	if (n > OBUF_SIZE - o->n && obuf_flush(o))
		return -1;
	if (n > OBUF_SIZE)
		return write_all(o, p, n);
	memcpy(o->b + o->n, p, n);
	o->n += n;
	return o->err ? -1 : 0;
}

char *obuf_line(struct obuf *o)
{
	if (OBUF_SIZE - o->n < OBUF_LINE)
		obuf_flush(o);
	return o->b + o->n;
}

void obuf_done(struct obuf *o, char *end)
{
	o->n = end - o->b;
}

void obuf_free(struct obuf *o)
{
	free(o->b);
	o->b = NULL;
}

/* The eight digits of v as text in memory order: nibbles to bytes, then all eight to ASCII at once. */
static uint64_t hex8(uint32_t v)
{
	uint64_t x = v, letter;

	x = (x << 16 | x) & 0x0000ffff0000ffffull;
	x = (x << 8 | x) & 0x00ff00ff00ff00ffull;
	x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0full;
	letter = (x + 0x0606060606060606ull) >> 4 & 0x0101010101010101ull; /* 1 where the digit is over 9 */
	return __builtin_bswap64(x + 0x3030303030303030ull + letter * ('a' - '0' - 10));
}

/* writes up to 16 bytes whatever the length */
char *put_hex(char *p, uint64_t v, int min)
{
	int n = v ? (67 - __builtin_clzll(v)) / 4 : 1;
	uint64_t hi, lo = hex8((uint32_t)v);

	n = n < min ? min : n;
	if (n <= 8) {
		lo >>= 8 * (8 - n);
		memcpy(p, &lo, 8);
	} else {
		hi = hex8((uint32_t)(v >> 32)) >> 8 * (16 - n);
		memcpy(p, &hi, 8);
		memcpy(p + n - 8, &lo, 8);
	}
	return p + n;
}

char *put_dec(char *p, uint64_t v)
{
	char t[20];
	int n = 0;

	if (v < 10) { /* most sizes and threads */
		*p = (char)('0' + v);
		return p + 1;
	}
	do
		t[n++] = '0' + v % 10;
	while (v /= 10);
	while (n)
		*p++ = t[--n];
	return p;
}

char *put_str(char *p, const char *s, size_t max)
{
	size_t n = strlen(s);

	n = n < max ? n : max;
	memcpy(p, s, n);
	return p + n;
}
