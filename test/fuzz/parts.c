/* SPDX-License-Identifier: MIT
 *
 * parts.c - inputs made of parts: taking them apart, repairing their checksums, mutating one part
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "fuzz.h"

static size_t length(const uint8_t *d)
{
	return d[1] | (size_t)d[2] << 8 | (size_t)d[3] << 16;
}

void fuzz_split(const uint8_t *data, size_t size, struct fuzz_part part[FZ_KINDS])
{
	memset(part, 0, FZ_KINDS * sizeof(*part));
	while (size >= 4) {
		size_t n = length(data) < size - 4 ? length(data) : size - 4;

		part[data[0] % FZ_KINDS] = (struct fuzz_part){data + 4, n};
		data += 4 + n;
		size -= 4 + n;
	}
}

uint8_t *fuzz_copy(struct fuzz_part p)
{
	uint8_t *b = malloc(p.n ? p.n : 1);

	if (!b)
		abort();
	if (p.n)
		memcpy(b, p.p, p.n);
	return b;
}

void fuzz_fix_map(uint8_t *b, size_t n)
{
	struct map_head *h = (void *)b;

	if (n < sizeof(*h))
		return;
	h->magic = MAP_MAGIC;
	h->version = MAP_VERSION;
	for (int i = 0; i < MAP_NSECTIONS; i++)
		if (h->sect[i].off <= n && h->sect[i].size <= n - h->sect[i].off)
			h->sect[i].xxh3 = XXH3_64bits(b + h->sect[i].off, h->sect[i].size);
	h->head_xxh3 = XXH3_64bits(h, offsetof(struct map_head, head_xxh3));
}

void fuzz_fix_start(uint8_t *b, size_t n)
{
	struct run_start *s = (void *)b;
	XXH3_state_t *x;
	size_t k;

	if (n < sizeof(*s))
		return;
	s->magic = RUN_START_MAGIC;
	s->version = RUN_VERSION;
	if (s->nregions > (n - sizeof(*s)) / sizeof(struct run_region))
		return;
	x = XXH3_createState();
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, s, offsetof(struct run_start, xxh3));
	k = s->nregions * sizeof(struct run_region);
	XXH3_64bits_update(x, s + 1, k + (s->names > n - sizeof(*s) - k ? 0 : s->names));
	s->xxh3 = XXH3_64bits_digest(x);
	XXH3_freeState(x);
}

void fuzz_fix_modules(uint8_t *b, size_t n)
{
	uint32_t index = 0;

	while (n >= sizeof(struct run_module)) {
		struct run_module *m = (void *)b;

		if (m->size < sizeof(*m) || m->size > n || m->size % 8)
			return;
		m->magic = RUN_MODULE_MAGIC;
		m->index = index++;
		m->xxh3 = 0;
		m->xxh3 = XXH3_64bits(m, m->size);
		b += m->size;
		n -= m->size;
	}
}

void fuzz_fix_log(uint8_t *b, size_t n, uint32_t pid, uint32_t tid)
{
	uint64_t seq = 0, at = 0;

	while (n >= sizeof(struct run_chunk)) {
		struct run_chunk c;

		memcpy(&c, b, sizeof(c));
		c.magic = RUN_CHUNK_MAGIC;
		c.version = RUN_VERSION;
		c.pid = pid;
		c.tid = tid;
		c.seq = seq++;
		c.first = at;
		if (c.disk_size <= n - sizeof(c))
			c.xxh3 = XXH3_64bits(b + sizeof(c), c.disk_size);
		memcpy(b, &c, sizeof(c));
		if (c.disk_size > n - sizeof(c))
			return;
		at += c.raw_size - (uint64_t)c.ncut * sizeof(struct run_cut);
		b += sizeof(c) + c.disk_size;
		n -= sizeof(c) + c.disk_size;
	}
}

#ifdef FUZZ_MUTATE_PARTS
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* One part is mutated, the others and the frame stay: most byte mutations of the whole would only
 * move the borders. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t at = 0, n, rest, count = 0;
	unsigned pick;
	uint8_t *tail;

	for (at = 0; at + 4 <= size; at += 4 + length(data + at))
		count++;
	if (!count || seed % 32 == 0)
		return LLVMFuzzerMutate(data, size, max);
	pick = seed / 32 % count;
	for (at = 0; pick--;)
		at += 4 + length(data + at);
	n = length(data + at) < size - at - 4 ? length(data + at) : size - at - 4;
	rest = size - at - 4 - n;
	tail = malloc(rest + 1);
	memcpy(tail, data + at + 4 + n, rest);
	n = LLVMFuzzerMutate(data + at + 4, n, max - at - 4 - rest);
	data[at + 1] = (uint8_t)n;
	data[at + 2] = (uint8_t)(n >> 8);
	data[at + 3] = (uint8_t)(n >> 16);
	memcpy(data + at + 4 + n, tail, rest);
	free(tail);
	return at + 4 + n + rest;
}
#endif
