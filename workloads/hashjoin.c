// SPDX-License-Identifier: MIT
/*
 * hashjoin - join a table of n rows with one of 4 n rows on a key: chained hash table on the
 * small side, probed with skewed keys of which about half are found.
 */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 20000, 8},
	{"medium", 300000, 16},
	{"large", 1000000, 10},
};

struct row {
	uint64_t key;
	uint32_t value;
	uint32_t next; /* index + 1 of the next row of the bucket, 0 at its end */
};

struct table {
	struct row *rows;
	uint32_t *buckets; /* index + 1 of the bucket's first row */
	uint64_t mask;
	uint32_t used;
};

static uint64_t hash(uint64_t key)
{
	key *= 0xff51afd7ed558ccdull;
	return key ^ (key >> 33);
}

static void insert(struct table *t, uint64_t key, uint32_t value)
{
	uint32_t *bucket = &t->buckets[hash(key) & t->mask];

	t->rows[t->used] = (struct row){.key = key, .value = value, .next = *bucket};
	*bucket = ++t->used;
}

/* probe - the sum of the values of all rows with this key; *matches counts them */
static uint64_t probe(const struct table *t, uint64_t key, uint64_t *matches)
{
	uint64_t sum = 0;

	for (uint32_t i = t->buckets[hash(key) & t->mask]; i; i = t->rows[i - 1].next) {
		const struct row *r = &t->rows[i - 1];

		if (r->key == key) {
			sum += r->value;
			++*matches;
		}
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	uint64_t n = (uint64_t)s.n, buckets = 1, seed = 1, sum = 0;
	struct table t = {.rows = wl_alloc(n, sizeof(*t.rows))};

	while (buckets < n)
		buckets *= 2;
	t.mask = buckets - 1;
	t.buckets = wl_alloc(buckets, sizeof(*t.buckets));
	for (long r = 0; r < s.reps; r++) {
		uint64_t matches = 0;

		memset(t.buckets, 0, buckets * sizeof(*t.buckets));
		t.used = 0;
		for (uint64_t i = 0; i < n; i++)
			insert(&t, wl_rand(&seed) % (2 * n), (uint32_t)i);
		for (uint64_t i = 0; i < 4 * n; i++) {
			uint64_t limit = 1 + wl_rand(&seed) % (2 * n);

			sum += probe(&t, wl_rand(&seed) % limit, &matches);
		}
		sum = wl_mix(sum, matches);
	}
	return wl_report("hashjoin", s, sum);
}
