/* SPDX-License-Identifier: MIT
 *
 * bin.c - records packed into columns of small numbers (format: ptrace-trace(5))
 *
 *   control  kind, size, whether the thread and the next instruction are as expected
 *   ip       signed distance to the previous record's, where it was not expected
 *   addr     signed distance to the address the same instruction used last
 *
 * Predictions start empty in every chunk, so that a chunk can be read by itself.
 */
#include <stdlib.h>
#include <string.h>
#include "out.h"

enum { C_TID = 4, C_SIZE = 3, C_IP = 0x80, SIZE_MORE = 15 };

static unsigned slot(uint64_t ip)
{
	return (ip * 0x9e3779b97f4a7c15ull) >> 52;
}

static uint8_t *put_v(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_z(uint8_t *p, uint64_t d)
{
	return put_v(p, d << 1 ^ (uint64_t)((int64_t)d >> 63));
}

static unsigned size_code(uint32_t size)
{
	return size && size <= 128 && !(size & (size - 1)) ? (unsigned)__builtin_ctz(size) : SIZE_MORE;
}

size_t bin_pack(const struct ptrace_rec *rec, size_t n, uint8_t *buf, uint32_t part[3])
{
	struct bin_pred *pr = xcalloc(1, sizeof(*pr));
	uint8_t *ip = buf + n * 10, *addr = buf + n * 20, *c = buf, *ip0 = ip, *addr0 = addr;
	uint64_t last = 0;
	uint32_t tid = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		unsigned h = slot(last), sc = size_code(r->size);
		unsigned b = (r->kind & 3) | sc << C_SIZE;

		if (r->tid != tid)
			b |= C_TID;
		if (r->ip == pr->ip[h])
			b |= C_IP;
		*c++ = (uint8_t)b;
		if (b & C_TID)
			c = put_v(c, r->tid);
		if (sc == SIZE_MORE)
			c = put_v(c, r->size);
		if (!(b & C_IP))
			ip = put_z(ip, r->ip - last);
		pr->ip[h] = r->ip;
		h = slot(r->ip);
		addr = put_z(addr, r->addr - pr->addr[h]);
		pr->addr[h] = r->addr;
		last = r->ip;
		tid = r->tid;
	}
	free(pr);
	part[0] = c - buf;
	part[1] = ip - ip0;
	part[2] = addr - addr0;
	memmove(c, ip0, part[1]);
	memmove(c + part[1], addr0, part[2]);
	return part[0] + part[1] + part[2];
}

static bool get_v(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned s = 0; s < 70 && *p < end; s += 7) {
		uint8_t b = *(*p)++;

		if (s < 64)
			*v |= (uint64_t)(b & 0x7f) << s;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static bool get_z(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	if (!get_v(p, end, v))
		return false;
	*v = *v >> 1 ^ (0 - (*v & 1));
	return true;
}

int bin_unpack(const uint8_t *buf, const uint32_t part[3], size_t n, struct ptrace_rec *rec)
{
	const uint8_t *c = buf, *ce = c + part[0], *ip = ce, *ie = ip + part[1], *a = ie, *ae = a + part[2];
	struct bin_pred *pr = xcalloc(1, sizeof(*pr));
	uint64_t last = 0, v;
	uint32_t tid = 0;
	size_t i;

	for (i = 0; i < n && c < ce; i++) {
		struct ptrace_rec *r = &rec[i];
		unsigned b = *c++, h = slot(last);

		if (b & C_TID) {
			if (!get_v(&c, ce, &v) || v >= PTRACE_MAX_THREADS)
				break;
			tid = (uint32_t)v;
		}
		v = 1ull << (b >> C_SIZE & 15);
		if ((b >> C_SIZE & 15) == SIZE_MORE && !get_v(&c, ce, &v))
			break;
		*r = (struct ptrace_rec){.size = (uint32_t)v, .tid = tid, .kind = b & 3};
		r->ip = pr->ip[h];
		if (!(b & C_IP)) {
			if (!get_z(&ip, ie, &v))
				break;
			r->ip = last + v;
		}
		pr->ip[h] = r->ip;
		h = slot(r->ip);
		if (!get_z(&a, ae, &v))
			break;
		r->addr = pr->addr[h] += v;
		last = r->ip;
	}
	free(pr);
	return i == n && c == ce && ip == ie && a == ae ? 0 : -1;
}
