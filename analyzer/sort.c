/* SPDX-License-Identifier: MIT
 *
 * sort.c - see sort.h
 *
 * What is sorted here was made by group, and groups are in order: it is sorted already, or nearly. If it is not,
 * digit by digit, which asks nothing of a comparison function.
 */
#include "sort.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BITS 12
#define DIGITS (1u << BITS)

static inline uint32_t key(const uint8_t *p)
{
	uint32_t k;

	memcpy(&k, p, sizeof(k));
	return k;
}

static bool in_order(const uint8_t *v, size_t n, size_t size)
{
	for (size_t i = 1; i < n; i++)
		if (key(v + (i - 1) * size) > key(v + i * size))
			return false;
	return true;
}

static inline __attribute__((always_inline)) void pass(uint8_t *to, const uint8_t *from, size_t n,
						       size_t size, unsigned shift)
{
	size_t at[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[key(from + i * size) >> shift & (DIGITS - 1)]++;
	for (unsigned d = 0; d < DIGITS; d++) {
		size_t k = at[d];

		at[d] = sum;
		sum += k;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(to + at[key(from + i * size) >> shift & (DIGITS - 1)]++ * size, from + i * size, size);
}

/* so that the usual sizes are copied without a call */
static void pass_of(uint8_t *to, const uint8_t *from, size_t n, size_t size, unsigned shift)
{
	switch (size) {
	case 8:
		pass(to, from, n, 8, shift);
		break;
	case 12:
		pass(to, from, n, 12, shift);
		break;
	case 16:
		pass(to, from, n, 16, shift);
		break;
	default:
		pass(to, from, n, size, shift);
	}
}

void sort_first(void *v, size_t n, size_t size)
{
	uint8_t *from = v, *to, *other;
	uint32_t differ = 0;

	if (in_order(v, n, size))
		return;
	other = to = malloc(n * size);
	if (!other)
		abort(); /* out of memory: nothing was written yet */
	for (size_t i = 1; i < n; i++)
		differ |= key(from) ^ key(from + i * size);
	for (unsigned shift = 0; shift < 32; shift += BITS) {
		uint8_t *was = from;

		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		pass_of(to, from, n, size, shift);
		from = to;
		to = was;
	}
	if (from != v)
		memcpy(v, from, n * size);
	free(other);
}
