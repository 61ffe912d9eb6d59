/* SPDX-License-Identifier: MIT
 *
 * walk_why.c - what the log's bytes are for: by cause, and by the place that wrote them
 *
 * Only on demand (walk_opts.why), so that the inner loop does not pay: ops that read the log are then
 * translated to H_COUNT, which counts the op and goes on to its handler. Marks that are read outside
 * of the loop are counted at the first op they lead to. What is left, and not said here, are events.
 */
#include <stdlib.h>
#include <string.h>
#include "walk.h"

static bool reads_log(unsigned h)
{
	return (h >= H_LOG1 && h <= H_LOGSX6) || h == H_JCC_LOG || h == H_IJMP_LOG || h == H_RMARK ||
	       h == H_RECVEC || h == H_VCHK || h == H_TSC || h == H_SYSCALL || h == H_JMPX_LINK;
}

/* Ops from..to-1 have just been translated. */
void why_wrap(struct inst *m, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (reads_log(m->code[i].h)) {
			m->count[i].h = m->code[i].h;
			m->code[i].h = H_COUNT;
		}
}

static uint32_t bytes_of(const struct inst *m, uint32_t i, enum sem_why *why)
{
	unsigned h = m->count[i].h;
	uint64_t cause = (uint64_t)m->code[i].imm;
	struct sem_vec v;

	if (h >= H_LOG1 && h <= H_LOGSX6) {
		*why = cause < SEM_WHY_BRANCH ? (enum sem_why)cause : SEM_WHY_OTHER;
		return h == H_LOGSX6 ? 6 : h <= H_LOG8 ? 1u << (h - H_LOG1) : 1u << (h - H_LOGSX1);
	}
	switch (h) {
	case H_JCC_LOG:
		*why = SEM_WHY_BRANCH;
		return 1;
	case H_IJMP_LOG:
		*why = SEM_WHY_TARGET;
		return 4;
	case H_RMARK:
		*why = SEM_WHY_RETURN_MARK;
		return 1;
	case H_JMPX_LINK:
		*why = SEM_WHY_ENTRY_MARK;
		return 1;
	case H_SYSCALL:
		*why = SEM_WHY_SYSCALL_MARK;
		return 12;
	case H_VCHK:
		*why = SEM_WHY_VERIFY;
		return 8;
	case H_TSC:
		*why = SEM_WHY_TIME;
		return 8;
	default:
		memcpy(&v, &m->map->op[i + 1], sizeof(v));
		*why = SEM_WHY_VECTOR;
		return (v.mask == SEM_MASK_K	 ? v.mask_bytes
			: v.mask == SEM_MASK_VEC ? v.n * v.mask_bytes
						 : 0) +
		       v.n * v.idx_bytes;
	}
}

static struct walk_why *place_at(struct walk_result *res, uint64_t ip)
{
	if (res->nwhy && res->why_at[res->nwhy - 1].ip == ip)
		return &res->why_at[res->nwhy - 1];
	if (!(res->nwhy & (res->nwhy + 1)))
		res->why_at = xrealloc(res->why_at, (size_t)res->nwhy * 2 + 2, sizeof(*res->why_at));
	res->why_at[res->nwhy] = (struct walk_why){.ip = ip};
	return &res->why_at[res->nwhy++];
}

/* A block's entry and return programs precede its SEM_BLOCK: they belong to the next one in the
 * table, unless that lies behind a control op of a block's own. */
static void collect(struct walker *w, const struct inst *m)
{
	const struct map *map = m->map;
	uint32_t next = 0, block = NONE32;

	for (uint32_t i = 0; i < map->nop; i++) {
		const struct opcount *c = &m->count[i];
		struct walk_why *at;
		enum sem_why why = SEM_WHY_OTHER;
		uint32_t bytes;

		if (i >= next) { /* the block whose ops these are */
			for (next = i; next < map->nop && map->op[next].op != SEM_BLOCK; next++)
				;
			if (next < map->nop && (uint64_t)map->op[next].imm < map->nblock)
				block = (uint32_t)map->op[next].imm;
			for (; next < map->nop &&
			       !(map->op[next].op > SEM_BLOCK && map->op[next].op != SEM_RMARK);
			     next++)
				;
			next++;
		}
		if ((!c->n && !c->mark) || block == NONE32)
			continue;
		at = place_at(w->res, m->bias + map->block[block].vaddr);
		if (c->n) {
			bytes = bytes_of(m, i, &why);
			at->bytes[why] += c->n * bytes;
			at->logs += bytes ? c->n : 0;
		}
		at->bytes[SEM_WHY_ENTRY_MARK] += c->mark;
	}
}

void why_finish(struct walker *w)
{
	if (!w->o->why)
		return;
	for (uint32_t i = 0; i < w->ninst; i++)
		collect(w, w->inst[i]);
}
