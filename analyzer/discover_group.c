/* SPDX-License-Identifier: MIT
 *
 * discover_group.c - certain groups, the opaque list, and what each byte of text may be used for
 *
 * Instructions that are also read as data (V8's builtins read immediates of their own code) are
 * relocated like any others, but their original bytes are kept.
 */
#include <string.h>
#include "discover_group.h"
#include "nondet.h"

int group_ranges(struct disc *d, uint32_t r, struct an_group *g)
{
	uint32_t n = 0;

	for (uint32_t i = r; i != AN_NONE; i = d->piece.v[i].next)
		n++;
	if (!(g->range = malloc(n * sizeof(*g->range))))
		return -1;
	for (uint32_t i = r; i != AN_NONE; i = d->piece.v[i].next) {
		const struct piece *p = &d->piece.v[i];

		if (g->nrange && g->range[g->nrange - 1].end == p->start)
			g->range[g->nrange - 1].end = p->end;
		else
			g->range[g->nrange++] = (struct map_range){p->start, p->end};
	}
	return 0;
}

static bool piece_has_code(const struct disc *d, const struct piece *p)
{
	for (uint32_t v = p->start; v < p->end; v++)
		if (d->il[v - d->lo])
			return true;
	return false;
}

/* Restartable sequences must stay where the kernel knows them (include/uapi/linux/rseq.h:
 * struct rseq_cs is version, flags, then start_ip at offset 8; 32 bytes each). */
static void rseq_pieces(struct disc *d)
{
	for (uint32_t v = d->x->rseq.start; v + 32 <= d->x->rseq.end; v += 32) {
		uint64_t ip, abort;
		bool fixed;
		uint32_t p;

		if (elf_word(d->m, v + 8, &ip, &fixed) && ip < UINT32_MAX &&
		    (p = disc_piece(d, ip)) != AN_NONE)
			d->piece.v[p].reason = MAP_R_RSEQ;
		if (elf_word(d->m, v + 24, &abort, &fixed) && abort < UINT32_MAX &&
		    (p = disc_piece(d, abort)) != AN_NONE)
			d->piece.v[p].reason = MAP_R_RSEQ;
	}
}

static bool piece_has(const struct disc *d, const struct piece *p, bool (*is)(const uint8_t *, unsigned))
{
	for (uint32_t v = p->start; v < p->end; v++) {
		unsigned len = IL_START(d->il[v - d->lo]) ? IL_LEN(d->il[v - d->lo]) : 0;

		if (len && is(elf_at(d->m, v, len), len))
			return true;
	}
	return false;
}

/* MAP_F_SPARSE: of what has no system calls and no instruction that a replay must be told of, nothing is relocated */
static bool calls_or_nondet(const uint8_t *b, unsigned len)
{
	return nondet_syscall(b, len) || nondet_what(b, len) || nondet_other(b, len);
}

static bool group_calls(const struct disc *d, uint32_t r)
{
	for (uint32_t i = r; i != AN_NONE; i = d->piece.v[i].next)
		if (piece_has(d, &d->piece.v[i], calls_or_nondet))
			return true;
	return false;
}

/* of a group that stays where it is for that reason, 0: for none */
static uint8_t sparse(struct disc *d, uint32_t r, uint8_t reason)
{
	bool calls = group_calls(d, r);

	/* the return from a handler goes the program's way in any case, and is known by its frame */
	d->m->hidden |= calls && reason && reason != MAP_R_SIGRET;
	return calls || reason ? reason : MAP_R_SPARSE;
}

static void avoided(struct disc *d)
{
	for (uint32_t i = 0; i < d->x->avoid.n; i++) {
		uint32_t p = disc_piece(d, d->x->avoid.v[i]);

		if (p != AN_NONE)
			d->piece.v[p].reason = MAP_R_AVOID;
	}
}

/* A jump to a computed address inside its own group would land in bytes that are dead. */
static void computed_jumps(struct disc *d)
{
	for (uint32_t i = 0; i < d->ijmp.n; i++)
		if (d->ijmp.v[i].stays)
			d->piece.v[disc_piece(d, d->ijmp.v[i].vaddr)].reason = MAP_R_INDIRECT;
}

/* Function starts nothing refers to are entries: who calls them is not in this file. */
static int lone_entries(struct disc *d)
{
	uint8_t *in = calloc(d->piece.n + 1ull, 1);

	if (!in)
		return -1;
	for (uint32_t i = 0; i < d->cross.n + d->fall.n; i++) {
		const struct edge *e = i < d->cross.n ? &d->cross.v[i] : &d->fall.v[i - d->cross.n];
		uint32_t p = disc_piece(d, e->to);

		if (p != AN_NONE && d->piece.v[p].start == e->to && disc_piece(d, e->from) != p)
			in[p] = 1;
	}
	for (uint32_t i = 0; i < d->ijmp.n; i++)
		for (uint32_t k = 0; k < d->ijmp.v[i].ntarget; k++)
			in[disc_piece(d, d->ijmp.v[i].target[k])] = 1;
	for (uint32_t i = 0; i < d->piece.n; i++) {
		uint32_t o = d->piece.v[i].start - d->lo;

		if (!in[i] && IL_START(d->il[o]) && !(d->st[o] & ST_LAND))
			d->st[o] |= ST_ENTRY;
	}
	free(in);
	for (uint32_t r = 0; r < d->piece.n; r++) {
		bool any = d->piece.v[r].up != r;

		for (uint32_t i = r; !any && i != AN_NONE; i = d->piece.v[i].next)
			for (uint32_t v = d->piece.v[i].start; !any && v < d->piece.v[i].end; v++)
				any = (d->st[v - d->lo] & ST_ENTRY) && IL_START(d->il[v - d->lo]);
		for (uint32_t i = r; !any && i != AN_NONE; i = d->piece.v[i].next)
			if (IL_START(d->il[d->piece.v[i].start - d->lo]))
				d->st[d->piece.v[i].start - d->lo] |= ST_ENTRY;
	}
	return 0;
}

/* Addresses of places inside functions that are stored somewhere, and are not the business of an
 * indirect jump of their own group: somebody may come in there. A label in a table is its jump's; one
 * that code computes is a jump's too when that jump goes only there (BY_CODE) or may go anywhere. Hand-written code gives
 * them to other functions, which jump there when they are done (dav1d's transforms). */
enum { BY_TABLE = 1, BY_CODE = 2 };
static void label_entries(struct disc *d)
{
	uint8_t *by = calloc(d->size + 1ull, 1);

	if (!by) {
		d->nomem = true;
		return;
	}
	for (uint32_t i = 0; i < d->ijmp.n; i++) {
		const struct ijmp *j = &d->ijmp.v[i];

		for (uint32_t k = 0; k < j->ntarget; k++)
			by[j->target[k] - d->lo] |= j->exact && j->table != AN_NONE ? BY_TABLE : BY_CODE;
	}
	for (uint32_t i = 0; i < d->lea.n; i++) {
		const struct edge *e = &d->lea.v[i];
		uint32_t o = e->to - d->lo, q = disc_piece(d, e->from);
		bool own = q == AN_NONE || disc_root(d, q) == disc_root(d, disc_piece(d, e->to));

		if (q != AN_NONE)
			own &= d->piece.v[q].kind != PC_GAP;
		if (IL_START(d->il[o]) && !(own && by[o] & (q == AN_NONE ? BY_TABLE | BY_CODE : BY_CODE)))
			d->st[o] |= ST_ENTRY;
	}
	free(by);
}

static bool add_opaque(struct disc *d, uint32_t start, uint32_t end, uint8_t reason)
{
	struct module *m = d->m;

	if ((m->nopaque & (m->nopaque - 1)) == 0) {
		void *p = realloc(m->opaque, (m->nopaque ? m->nopaque * 2ull : 1) * sizeof(*m->opaque));

		if (!p)
			return false;
		m->opaque = p;
	}
	m->opaque[m->nopaque++] = (struct map_opaque){start, end, reason, 0};
	return true;
}

static uint8_t group_reason(struct disc *d, uint32_t r)
{
	uint8_t reason = 0;

	for (uint32_t i = r; i != AN_NONE; i = d->piece.v[i].next)
		if (d->piece.v[i].reason && (!reason || reason == MAP_R_UNREACHED))
			reason = d->piece.v[i].reason;
	return reason;
}

static bool may_be_data(uint8_t reason)
{
	return reason == MAP_R_DECODE || reason == MAP_R_OVERLAP;
}

/* Where padding ends that begins at v, at the end of code, in a run of bytes that ends at `end`. Behind it a table may begin whose
 * first bytes look like more of it; tables are aligned. */
static uint32_t padding_end(const struct disc *d, uint32_t v, uint32_t end)
{
	uint32_t table = (v + 7) & ~7u;

	return !d->jumped || table > end || (IL_START(d->il[end - d->lo]) && disc_is_pad(d, v, end)) ? end
												     : table;
}

static void mark_padding(struct disc *d, uint32_t start, uint32_t end, uint8_t *live)
{
	for (uint32_t v = start; (v = disc_unused(d, v, end)) < end;) {
		uint32_t e = v, stop;

		while (e < end && !d->il[e - d->lo] && !(d->st[e - d->lo] & ST_DATA))
			e++;
		stop = padding_end(d, v, e);
		/* a run that starts right behind code, or at a piece's start: instructions of padding only */
		while (v < stop) {
			unsigned n = disc_nop_len(elf_at(d->m, v, stop - v), stop - v);

			if (!n)
				break;
			memset(live + (v - d->lo), AN_BYTE_PAD, n);
			v += n;
		}
		v = e;
	}
}

/* The bytes of a run of instructions. Eight by eight, as hardly any are read as data. */
static void mark_run(const struct disc *d, uint32_t start, uint32_t end, uint8_t *live)
{
	const uint64_t data = 0x0101010101010101u * ST_DATA;
	uint64_t st;

	memset(live + (start - d->lo), AN_BYTE_CODE, end - start);
	for (uint32_t v = start; v < end; v += 8) { /* there is slack behind the text */
		memcpy(&st, d->st + (v - d->lo), 8);
		for (uint32_t k = v; (st & data) && k < end && k < v + 8; k++)
			if (d->st[k - d->lo] & ST_DATA)
				live[k - d->lo] = AN_BYTE_KEEP;
	}
}

static void mark_code(const struct disc *d, const struct an_group *g, uint8_t *live)
{
	uint32_t start = 0, end = 0;

	for (uint32_t i = 0; i < g->ninsn; i++) {
		const struct an_insn *n = &g->insn[i];

		if (n->vaddr > end || !end) {
			mark_run(d, start, end, live);
			start = n->vaddr;
		}
		if (n->vaddr + n->len > end)
			end = n->vaddr + n->len;
	}
	mark_run(d, start, end, live);
}

static const char *group_name(const struct module *m, const struct an_group *g)
{
	for (uint32_t i = 0; i < g->nblock; i++) {
		const struct elf_sym *s = g->block[i].flags & AN_B_ENTRY
						  ? elf_sym_at(m, g->insn[g->block[i].first].vaddr)
						  : NULL;

		if (s)
			return s->name;
	}
	return NULL;
}

static int make_group(struct disc *d, uint32_t r)
{
	struct module *m = d->m;
	struct an_group *g = &m->group[m->ngroup];

	memset(g, 0, sizeof(*g));
	if (group_ranges(d, r, g) || cfg_build(d, g) || cfg_loops(g) ||
	    !(g->sum = calloc(1, sizeof(*g->sum)))) {
		cfg_free(g);
		return -1;
	}
	for (uint32_t i = r; i != AN_NONE; i = d->piece.v[i].next) {
		g->suspect |= d->piece.v[i].suspect;
		g->bare |= d->piece.v[i].kind == PC_GAP;
		mark_padding(d, d->piece.v[i].start, d->piece.v[i].end, m->live_byte);
		d->piece.v[i].group = m->ngroup;
	}
	g->id = m->ngroup++;
	g->name = group_name(m, g);
	mark_code(d, g, m->live_byte);
	return 0;
}

static int opaque_piece(struct disc *d, const struct piece *p, uint8_t reason)
{
	uint32_t v = p->start, end = p->end;
	unsigned n;

	while (reason == MAP_R_UNREACHED && v < end && (n = disc_nop_len(elf_at(d->m, v, end - v), end - v)))
		v += n;
	if (reason == MAP_R_UNREACHED && v == end) {
		mark_padding(d, p->start, p->end, d->m->live_byte);
		return 0;
	}
	return add_opaque(d, v < end ? v : p->start, end, reason) ? 0 : -1;
}

/* The few zeros that align a section of code belong to nobody. */
static void align_gaps(struct disc *d)
{
	const struct elf_priv *x = d->x;

	for (uint32_t i = 0; i + 1 < x->text.n; i++) {
		uint32_t v = x->text.v[i].end, n = x->text.v[i + 1].start - v;
		const uint8_t *b = n && n < 16 ? elf_at(d->m, v, n) : NULL;
		bool taken = !b;

		for (uint32_t k = 0; !taken && k < x->data.n; k++)
			taken = x->data.v[k].start < v + n && x->data.v[k].end > v;
		for (uint32_t k = 0; !taken && k < n; k++)
			taken = b[k] || d->il[v + k - d->lo] || (d->st[v + k - d->lo] & ST_DATA);
		if (!taken)
			memset(d->m->live_byte + (v - d->lo), AN_BYTE_PAD, n);
	}
}

int group_finish(struct disc *d)
{
	struct module *m = d->m;

	disc_join(d);
	label_entries(d);
	disc_unseen(d);
	disc_join(d);
	rseq_pieces(d);
	avoided(d);
	disc_code_reads(d);
	disc_info_check(d);
	computed_jumps(d);
	if (lone_entries(d) || d->nomem)
		return -1;
	m->group = calloc(d->piece.n + 1ull, sizeof(*m->group));
	m->live_byte = calloc(d->size + 16ull, 1);
	if (!m->group || !m->live_byte)
		return -1;
	align_gaps(d);
	for (uint32_t i = 0; i < d->piece.n; i++)
		d->piece.v[i].group = AN_NONE;
	for (uint32_t i = 0; i < d->piece.n; i++) {
		struct piece *p = &d->piece.v[i];
		uint32_t r = disc_root(d, i);
		uint8_t reason;

		if (r == i && p->next == AN_NONE && !piece_has_code(d, p)) {
			if (opaque_piece(d, p, p->reason ? p->reason : MAP_R_UNREACHED))
				return -1;
			continue;
		}
		reason = group_reason(d, r);
		/* what does not decode throughout may be data (GHC has tables among its code) */
		if (!may_be_data(reason) && !may_be_data(p->reason))
			d->m->bases |= p->bases && piece_has(d, p, nondet_base);
		if (d->m->mapflags & MAP_F_SPARSE)
			reason = sparse(d, r, reason);
		if (reason) {
			if (opaque_piece(d, p, reason))
				return -1;
		} else if (r == i && make_group(d, r)) {
			return -1;
		}
	}
	return group_link(d);
}
