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

char *put_hex(char *p, uint64_t v, int min)
{
	int n = v ? (67 - __builtin_clzll(v)) / 4 : 1;

	if (n < min)
		n = min;
	for (int i = n; i--; v >>= 4)
		p[i] = "0123456789abcdef"[v & 15];
	return p + n;
}

char *put_dec(char *p, uint64_t v)
{
	char t[20];
	int n = 0;

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
