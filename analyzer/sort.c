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

#define BITS 11
#define DIGITS (1u << BITS)

static uint32_t key(const uint8_t *p)
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

static void pass(uint8_t *to, const uint8_t *from, size_t n, size_t size, unsigned shift)
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

void sort_first(void *v, size_t n, size_t size)
{
	uint8_t *other;

	if (in_order(v, n, size))
		return;
	other = malloc(n * size);
	if (!other)
		abort(); /* out of memory: nothing was written yet */
	pass(other, v, n, size, 0);
	pass(v, other, n, size, BITS);
	pass(other, v, n, size, 2 * BITS);
	memcpy(v, other, n * size);
	free(other);
}
