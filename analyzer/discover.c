/* SPDX-License-Identifier: MIT
 *
 * discover.c - from an open module to groups: the order of discovery's stages
 *
 *   pieces ─▶ seeds ─▶ walk ─▶ join ─▶ tables ──▶ suspects ─▶ finish (discover_group.c)
 *                       ▲                │
 *                       └── new targets ─┘
 *
 * Jump tables with a proved bound are solved to a fixpoint before any other table is scanned:
 * the code they reach is certain, and what it mentions ends the scans of the others.
 */
#include <stdio.h>
#include <string.h>
#include "disc.h"
#include "disc_head.h"
#include "discover_group.h"
#include "sort.h"

enum { ROUNDS_MAX = 200 };

static int cmp_ijmp(const void *a, const void *b)
{
	const struct ijmp *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int cmp_lea(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->from < y->from ? -1 : x->from > y->from;
}

uint32_t disc_first_lea(const struct disc *d, uint32_t v)
{
	uint32_t lo = 0, hi = d->lea.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->lea.v[mid].to < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct ijmp *disc_ijmp(const struct disc *d, uint32_t v)
{
	struct ijmp key = {.vaddr = v};

	return d->ijmp.n ? bsearch(&key, d->ijmp.v, d->ijmp.n, sizeof(key), cmp_ijmp) : NULL;
}

void disc_sort(struct disc *d)
{
	sort_first(d->ijmp.v, d->ijmp.n, sizeof(*d->ijmp.v));
	if (d->lea.n != d->sorted)
		qsort(d->lea.v, d->lea.n, sizeof(*d->lea.v), cmp_lea);
	d->sorted = d->lea.n;
}

/* Solves the indirect jumps of every group that has some and changed since it was last looked at.
 * True if new targets were found. */
static bool solve_all(struct disc *d, bool scan)
{
	bool more = false;

	for (uint32_t i = 0; i < d->ijmp.n && !d->nomem; i++) {
		uint32_t r = disc_root(d, disc_piece(d, d->ijmp.v[i].vaddr));
		struct an_group g = {0};
		uint32_t size;

		if (d->piece.v[r].done)
			continue;
		d->piece.v[r].done = true;
		if (group_ranges(d, r, &g)) {
			d->nomem = true;
		} else if (d->piece.v[r].solved != (size = cfg_count(d, &g) * 2 + scan)) {
			if (cfg_build(d, &g)) {
				d->nomem = true;
			} else {
				d->piece.v[r].solved = size;
				more |= table_solve(d, &g, scan);
			}
		}
		cfg_free(&g);
	}
	return more;
}

/* Tables are often referred to by code that only other tables lead to. Before scans start, note the
 * targets of what looks like a rip-relative lea, or a jump through an absolute table, in bytes not
 * reached yet. A label too many ends a scan early at worst, and its group then shows as suspect. */
static void sweep_labels(struct disc *d)
{
	for (uint32_t i = 0; i < d->piece.n; i++) {
		const struct piece *p = &d->piece.v[i];
		const uint8_t *b = p->kind == PC_FDE ? elf_at(d->m, p->start, p->end - p->start) : NULL;
		uint32_t n = p->end - p->start;

		for (uint32_t k = 0; b && k + 7 <= n; k++) {
			int32_t disp;

			k = disc_hole(d, p->start + k, p->end) - p->start;
			if (k + 7 > n)
				break;
			memcpy(&disp, b + k + 3, 4);
			if ((b[k] & 0xfb) == 0x48 && b[k + 1] == 0x8d && (b[k + 2] & 0xc7) == 5)
				disc_label(d, (uint32_t)(p->start + k + 7 + disp));
			else if (!d->m->pie && b[k] == 0xff && b[k + 1] == 0x24 && (b[k + 2] & 7) == 5)
				disc_label(d, (uint32_t)disp);
		}
	}
}

/* scan: tables without bound, too */
static void solve_tables(struct disc *d, bool scan)
{
	bool more = true;

	for (int round = 0; round < ROUNDS_MAX && more && !d->nomem; round++) {
		disc_sort(d);
		disc_join(d);
		more = solve_all(d, scan);
		if (more)
			disc_walk(d);
	}
}

/* and functions that only code found meanwhile names. Among code behind tables that waits for jump tables to be known. */
static void solve(struct disc *d, bool scan)
{
	bool bare = false;

	do {
		do {
			disc_walk(d);
			disc_sort(d);
		} while (disc_info(d) || (bare && d->jumped && (disc_cases(d) || disc_bare(d))));
		solve_tables(d, scan);
		bare = scan || !d->jumped;
	} while (disc_info(d) || (bare && (disc_cases(d) || disc_bare(d))));
}

static bool setup(struct disc *d, struct module *m)
{
	uint64_t span = m->vaddr_hi - m->vaddr_lo;

	d->m = m;
	d->x = elf_priv(m);
	d->lo = m->text_lo;
	d->size = m->text_hi - m->text_lo;
	ZydisDecoderInit(&d->fast, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&d->fast, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	/* 16 bytes of slack: an instruction is looked at as a whole */
	d->il = calloc(d->size + 16ull, 1);
	d->st = calloc(d->size + 16ull, 1);
	d->lab = calloc(span / 64 + 1, 8);
	d->tab = calloc(span / 64 + 1, 8);
	d->memo = calloc(1, sizeof(*d->memo));
	d->insn = calloc(d->size / INSN_NEAR + 1ull, sizeof(*d->insn));
	d->near = malloc((d->size / PIECE_NEAR + 1ull) * sizeof(*d->near));
	return d->il && d->st && d->lab && d->tab && d->memo && d->insn && d->near && disc_pieces(d) &&
	       disc_names(d);
}

static void teardown(struct disc *d)
{
	for (uint32_t i = 0; i < d->ijmp.n; i++)
		free(d->ijmp.v[i].target);
	free(d->il);
	free(d->st);
	disc_bare_free(d);
	free(d->lab);
	free(d->tab);
	free(d->memo);
	free(d->work.v);
	free(d->piece.v);
	free(d->near);
	free(d->insn);
	free(d->cross.v);
	free(d->fall.v);
	free(d->lea.v);
	free(d->fn.v);
	free(d->ijmp.v);
	free(d->behind.v);
	free(d->run.v);
	free(d->cls.v);
}

int discover(struct module *m, int jobs, char *err, size_t errlen)
{
	struct disc d = {0};
	int rc = -1;

	(void)jobs; /* one pass over the text: memory-bound, not worth threads */
	if (setup(&d, m)) {
		disc_seed(&d);
		solve(&d, false);
		sweep_labels(&d);
		solve(&d, true);
		disc_suspects(&d);
		if (!d.nomem)
			rc = group_finish(&d);
	}
	if (rc && errlen)
		snprintf(err, errlen, "out of memory");
	teardown(&d);
	return rc;
}
