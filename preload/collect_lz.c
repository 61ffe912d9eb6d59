/* SPDX-License-Identifier: MIT
 *
 * collect_lz.c - compresses a chunk to an LZ4 block, made for logs
 *
 * The format is LZ4's (lz4_Block_format.md in its sources): token, literals, offset, match length,
 * repeated; whatever reads LZ4 blocks reads these. What differs from liblz4 is how matches are found. A
 * log is words of 6 and 8 bytes that come again in the same order: nearly every byte belongs to a match,
 * and the time goes into the number of matches and into branches that nobody can predict. So
 *
 *  - a place is looked up by the 8 bytes that start there (liblz4: 5). That passes over short matches,
 *    which get in the way of long ones: half as many matches;
 *  - PROBES places in a row are looked up before the one branch on whether any of them matched;
 *  - what is usually short (literals, match) is written without asking how short it is;
 *  - a table entry is the low 16 bits of a place: the last one with this hash that an offset can
 *    still name, whatever was there before, at half the room, so that there are four times as many.
 *
 *   src ─── anchor ──literals── ip ──match── …
 *              what is written so far ends here
 */
#include <emmintrin.h>
#include <string.h>
#include "collect.h"

#define TAIL 64 /* bytes at the end that are literals: nothing here reads beyond them (LZ4 asks for 12) */
#define PROBES 3
#define WIDE 32 /* bytes compared at once */
#define MINMATCH 4
#define NIBBLE 15
#define PATIENCE 6 /* 2^6 times without a match: then a place is left out after each PROBES, then two … */

static uint64_t read64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* bit i: byte i of the WIDE bytes is the same */
static uint32_t same(const uint8_t *a, const uint8_t *b)
{
	__m128i x = _mm_loadu_si128((const void *)a), y = _mm_loadu_si128((const void *)b);
	__m128i z = _mm_loadu_si128((const void *)(a + 16)), w = _mm_loadu_si128((const void *)(b + 16));

	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) |
	       (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(z, w)) << 16;
}

static size_t match_length(const uint8_t *p, size_t off, const uint8_t *limit)
{
	const uint8_t *q = p;

	do {
		uint32_t differ = ~same(q, q - off);

		if (differ)
			return q - p + __builtin_ctz(differ);
		q += WIDE;
	} while (q < limit);
	return q - p;
}

/* how many bytes before the two places are the same, up to 7 */
static size_t match_back(const uint8_t *p, const uint8_t *q)
{
	return __builtin_clzll((read64(p - 8) ^ read64(q - 8)) | 1) >> 3;
}

static uint8_t *put_more(uint8_t *op, size_t n)
{
	for (; n >= 255; n -= 255)
		*op++ = 255;
	*op++ = (uint8_t)n;
	return op;
}

static uint8_t *put_literals(uint8_t *op, const uint8_t *from, size_t n)
{
	*op++ = (uint8_t)((n < NIBBLE ? n : NIBBLE) << 4);
	if (n >= NIBBLE)
		op = put_more(op, n - NIBBLE);
	memcpy(op, from, n);
	return op + n;
}

/* len bytes as off bytes before, after n literals. Up to 16 bytes behind the literals are read and up to 16
 * behind what is written are overwritten */
static uint8_t *put_sequence(uint8_t *op, const uint8_t *from, size_t n, size_t off, size_t len)
{
	uint8_t *token = op, literals = (uint8_t)(n << 4);

	if (__builtin_expect(n < NIBBLE, 1)) {
		memcpy(op + 1, from, 16);
		op += 1 + n;
	} else {
		op = put_literals(op, from, n);
		literals = NIBBLE << 4;
	}
	*op++ = (uint8_t)off;
	*op++ = (uint8_t)(off >> 8);
	len -= MINMATCH;
	*token = literals | (uint8_t)(len < NIBBLE ? len : NIBBLE);
	if (__builtin_expect(len >= NIBBLE + 255, 0))
		return put_more(op, len - NIBBLE);
	*op = (uint8_t)(len - NIBBLE);
	return op + (len >= NIBBLE);
}

/* bit i: off[i] bytes before p + i are the same 8 bytes */
static uint32_t probe(uint16_t *table, const uint8_t *src, const uint8_t *p, size_t *off)
{
	uint32_t hit = 0;

#pragma GCC unroll 3
	for (int i = 0; i < PROBES; i++, p++) {
		uint64_t v = read64(p);
		uint16_t *entry = &table[v * 0x9e3779b185ebca87ull >> (64 - LZ_BITS)];
		uint16_t at = (uint16_t)(p - src);

		off[i] = (uint16_t)(at - *entry); /* 0: itself, or 64 KiB before, which no offset can say */
		*entry = at;
		hit |= (uint32_t)(off[i] && read64(p - off[i]) == v) << i;
	}
	return hit;
}

size_t lz_bound(size_t n)
{
	return n + n / 255 + 16 + TAIL;
}

size_t lz_pack(uint16_t *table, const void *from, size_t n, void *to)
{
	const uint8_t *src = from, *ip = src, *anchor = src, *limit = src + n - TAIL;
	uint8_t *op = to;
	size_t misses = 1 << PATIENCE, off[PROBES];

	if (n <= TAIL)
		return put_literals(op, src, n) - op;
	/* no entry is a place after the present one, so what it names is never before src */
	memset(table, 0, LZ_TABLE * sizeof(*table));
	while (ip < limit) {
		uint32_t hit = probe(table, src, ip, off);
		size_t o, len, back = 0;

		if (!hit) {
			ip += PROBES - 1 + (misses++ >> PATIENCE);
			continue;
		}
		misses = 1 << PATIENCE;
		ip += __builtin_ctz(hit);
		o = off[__builtin_ctz(hit)];
		len = match_length(ip, o, limit);
		if (ip - src >= (ptrdiff_t)o + 8)
			back = match_back(ip, ip - o);
		if (back > (size_t)(ip - anchor))
			back = ip - anchor;
		op = put_sequence(op, anchor, ip - back - anchor, o, len + back);
		anchor = ip += len;
	}
	op = put_literals(op, anchor, src + n - anchor);
	return op - (uint8_t *)to;
}
