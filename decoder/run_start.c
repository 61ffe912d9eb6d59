/* SPDX-License-Identifier: MIT
 *
 * run_start.c - start.bin: registers and memory at the first traced instruction
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "dec.h"

static int check(struct start *s, const char *path, struct ptrace_error *e)
{
	const struct run_start *h = &s->s;
	XXH3_state_t *x;
	uint64_t sum;

	if (h->magic != RUN_START_MAGIC)
		return err_set(e, PTRACE_BAD, "%s is not a start state", path);
	if (h->version != RUN_VERSION)
		return err_set(e, PTRACE_BAD,
			       "%s has version %u, this decoder reads %d: use the ptrace-decode "
			       "of the version that made the run",
			       path, h->version, RUN_VERSION);
	if (h->nregions > (s->size - sizeof(*h)) / sizeof(struct run_region))
		return err_set(e, PTRACE_BAD, "%s is cut in its table of regions", path);
	if (h->names > s->size - sizeof(*h) - h->nregions * sizeof(struct run_region))
		return err_set(e, PTRACE_BAD, "%s is cut in its names of regions", path);
	s->region = (const void *)(s->base + sizeof(*h));
	s->names = (const char *)(s->region + h->nregions);
	s->nregion = h->nregions;
	x = XXH3_createState();
	if (!x)
		return err_set(e, PTRACE_IO, "no memory for %s", path);
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, s->base, offsetof(struct run_start, xxh3));
	XXH3_64bits_update(x, s->region, s->nregion * sizeof(*s->region) + h->names);
	sum = XXH3_64bits_digest(x);
	XXH3_freeState(x);
	if (sum != h->xxh3)
		return err_set(e, PTRACE_BAD, "%s is damaged (checksum)", path);
	for (uint32_t i = 0; i < s->nregion; i++) {
		const struct run_region *r = &s->region[i];

		if (i && r->addr < r[-1].addr)
			return err_set(e, PTRACE_BAD,
				       "%s: its regions are not in order: region %u is at %#llx", path, i,
				       (unsigned long long)r->addr);
		if ((r->prot & RUN_REGION_DUMPED) &&
		    (r->file_off > s->size || r->size > s->size - r->file_off))
			return err_set(e, PTRACE_BAD, "%s is cut: region %u at %#llx is not all there", path,
				       i, (unsigned long long)r->addr);
	}
	return 0;
}

struct start *start_open(const char *path, struct ptrace_error *e)
{
	struct start *s = xcalloc(1, sizeof(*s));

	s->base = file_map(path, &s->size, e);
	if (s->base && s->size < sizeof(s->s))
		err_set(e, PTRACE_BAD, "%s is cut", path);
	if (!s->base || s->size < sizeof(s->s)) {
		start_close(s);
		return NULL;
	}
	memcpy(&s->s, s->base, sizeof(s->s));
	if (check(s, path, e)) {
		start_close(s);
		return NULL;
	}
	return s;
}

void start_close(struct start *s)
{
	if (!s)
		return;
	file_unmap(s->base, s->size);
	free(s);
}
