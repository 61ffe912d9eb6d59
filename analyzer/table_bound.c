/* SPDX-License-Identifier: MIT
 *
 * table_bound.c - how large an index can be
 *
 * Follows a value backward from its use to every place it may come from. A comparison on an edge
 * on the way bounds it, as do masks, zero extensions and shifts at its definitions:
 *
 *        cmp $N,%eax ; ja default        edge not taken: eax <= N
 *        mov %eax,%edx                   edx is eax
 *        movslq (%rbx,%rdx,4),%rdx       asks for rdx
 *
 * The maximum over all paths is the bound. A path that comes back to where it was asks nothing
 * new. Compilers prove a signed or offset index non-negative before they use it, so an upper
 * bound is enough: below the table there is nothing to jump through.
 */
#include <string.h>
#include "table.h"

/* What is followed: w bytes of a register, or of a memory operand (reg < 0). */
struct loc {
	int reg;
	uint8_t w;
	ZydisDecodedOperandMem mem;
};

struct seen {
	uint32_t block;
	struct loc loc;
};
struct query {
	struct tctx *t;
	struct seen seen[160];
	uint32_t nseen;
	int depth;
};

/* before instruction `before`, which is in block b or one past its end */
static uint64_t max_in(struct query *q, const struct loc *l, uint32_t before, uint32_t b);

static uint64_t max_before(struct query *q, const struct loc *l, uint32_t before)
{
	return max_in(q, l, before, q->t->g->insn[before].block);
}

static uint64_t full(uint8_t w)
{
	return w >= 8 ? TB_INF : (1ull << (8 * w)) - 1;
}

static bool same_mem(const ZydisDecodedOperandMem *a, const ZydisDecodedOperandMem *b)
{
	return a->segment == b->segment && a->base == b->base && a->index == b->index &&
	       a->scale == b->scale && a->disp.value == b->disp.value && a->base != ZYDIS_REGISTER_RIP;
}

static bool same_loc(const struct loc *a, const struct loc *b)
{
	return a->reg == b->reg && a->w == b->w && (a->reg >= 0 || same_mem(&a->mem, &b->mem));
}

/* operand as a location; false for constants and what is not followed */
static bool to_loc(const ZydisDecodedOperand *op, struct loc *l)
{
	memset(l, 0, sizeof(*l));
	l->w = op->size / 8;
	l->reg = -1;
	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		l->mem = op->mem;
		return true;
	}
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || (l->reg = tv_gpr(op->reg.value)) < 0)
		return false;
	return op->reg.value < ZYDIS_REGISTER_AH || op->reg.value > ZYDIS_REGISTER_BH;
}

static uint64_t max_operand(struct query *q, const ZydisDecodedOperand *op, uint32_t before)
{
	struct loc l;
	uint64_t m;

	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return op->imm.value.u;
	if (!to_loc(op, &l))
		return TB_INF;
	m = max_before(q, &l, before);
	return m < full(l.w) ? m : full(l.w);
}

/* Is the memory operand the same in both instructions' view, and untouched between? */
static bool clobbers_mem(struct query *q, const struct loc *l, uint32_t i, struct dins *x)
{
	uint32_t w = tv_writes(q->t, i);
	int b = tv_gpr(l->mem.base), n = tv_gpr(l->mem.index);
	bool stack = b == 4 || b == 5;

	if ((b >= 0 && (w >> b & 1)) || (n >= 0 && (w >> n & 1)))
		return true;
	if (!(w & WR_MEM))
		return false;
	if (q->t->g->insn[i].flow != FLOW_NEXT)
		return !stack;
	return !tv_decode(q->t, i, x) || x->op[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	       !(tv_is_slot(&x->op[0]) && stack && tv_gpr(x->op[0].mem.base) == b &&
		 x->op[0].mem.disp.value != l->mem.disp.value);
}

/* Is register `a` before instruction i a copy of register `b` before it, both w bytes wide? */
static bool copies(struct query *q, int a, int b, uint8_t w, uint32_t i)
{
	struct defs da, b1, b2;
	struct dins x;
	struct loc src;

	tv_defs(q->t, a, i, &da);
	if (da.open || da.n != 1 || q->t->g->insn[da.v[0]].flow != FLOW_NEXT || !tv_decode(q->t, da.v[0], &x))
		return false;
	if (x.in.mnemonic != ZYDIS_MNEMONIC_MOV && x.in.mnemonic != ZYDIS_MNEMONIC_MOVZX &&
	    x.in.mnemonic != ZYDIS_MNEMONIC_MOVSXD)
		return false;
	if (!to_loc(&x.op[1], &src) || src.reg != b || x.op[0].size < 32 || w < (src.w < 4 ? src.w : 4))
		return false;
	tv_defs(q->t, b, i, &b1);
	tv_defs(q->t, b, da.v[0], &b2);
	return b1.n == b2.n && b1.open == b2.open && !memcmp(b1.v, b2.v, b1.n * sizeof(*b1.v));
}

/* `lea c(%x),%l ; cmp $-c,%x ; jb default`: a range of negative numbers, shifted to start at zero. On
 * the edge with x >= m, x + c wraps into [m + c, c - 1]. */
static uint64_t bound_wrapped(struct query *q, const struct loc *l, const struct dins *c, uint32_t i)
{
	struct defs da;
	struct dins x;
	uint32_t m = c->op[1].imm.value.u, add;

	if (c->op[0].size != 32 || c->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || l->reg < 0)
		return TB_INF;
	tv_defs(q->t, l->reg, i, &da);
	if (da.open || da.n != 1 || q->t->g->insn[da.v[0]].flow != FLOW_NEXT ||
	    !tv_decode(q->t, da.v[0], &x) || x.in.mnemonic != ZYDIS_MNEMONIC_LEA || x.op[0].size != 32 ||
	    x.op[1].mem.index != ZYDIS_REGISTER_NONE ||
	    tv_gpr(x.op[1].mem.base) != tv_gpr(c->op[0].reg.value))
		return TB_INF;
	add = x.op[1].mem.disp.value;
	return (uint64_t)m + add > UINT32_MAX ? add - 1 : TB_INF;
}

/* Largest value of l when condition cc holds after `cmp a, b`. */
static uint64_t bound_by(struct query *q, const struct loc *l, const struct dins *c, uint32_t i, int cc)
{
	struct loc a, b;
	bool la, lb;
	uint64_t n = TB_INF;

	la = to_loc(&c->op[0], &a);
	lb = to_loc(&c->op[1], &b);
	if (c->in.mnemonic == ZYDIS_MNEMONIC_TEST) {
		if (la && lb && a.reg >= 0 && a.reg == b.reg && cc == 4 &&
		    (l->reg == a.reg || (l->reg >= 0 && copies(q, l->reg, a.reg, a.w, i))) &&
		    a.w >= (l->w < 4 ? l->w : 4))
			return 0;
		return TB_INF;
	}
	if (la && l->reg == a.reg && (l->reg >= 0 || same_mem(&l->mem, &a.mem)))
		lb = false;
	else if (la && l->reg >= 0 && a.reg >= 0 &&
		 (copies(q, l->reg, a.reg, a.w, i) || copies(q, a.reg, l->reg, a.w, i)))
		lb = false;
	else if (lb && l->reg == b.reg && (l->reg >= 0 || same_mem(&l->mem, &b.mem)))
		la = false;
	else
		return la && a.reg >= 0 && (cc == 3 || cc == 7) ? bound_wrapped(q, l, c, i) : TB_INF;
	if (la) {
		if (cc == 6 || cc == 2 || cc == 4 || cc == 14 || cc == 12)
			n = max_operand(q, &c->op[1], i);
		n -= n != TB_INF && n && (cc == 2 || cc == 12);
	} else {
		if (cc == 3 || cc == 7 || cc == 4 || cc == 13 || cc == 15)
			n = max_operand(q, &c->op[0], i);
		n -= n != TB_INF && n && (cc == 7 || cc == 15);
	}
	/* a narrow comparison says nothing about the bytes above it, unless they are zero */
	if (n != TB_INF && a.w < (l->w < 4 ? l->w : 4) && max_before(q, l, i) > full(a.w))
		return TB_INF;
	return n;
}

/* If l before instruction i is defined by a copy at i - 1 … follow it. False: redefined otherwise. */
static bool through(struct query *q, struct loc *l, uint32_t i)
{
	struct dins x;
	struct loc src;

	if (l->reg < 0)
		return !clobbers_mem(q, l, i, &x);
	if (!(tv_writes(q->t, i) >> l->reg & 1))
		return true;
	if (q->t->g->insn[i].flow != FLOW_NEXT || !tv_decode(q->t, i, &x) ||
	    (x.in.mnemonic != ZYDIS_MNEMONIC_MOV && x.in.mnemonic != ZYDIS_MNEMONIC_MOVZX) ||
	    x.op[0].size < 32 || !to_loc(&x.op[1], &src))
		return false;
	*l = src;
	return true;
}

/* Bound of l (as it is at the end of block p) on the edge from p to `to`. */
static uint64_t edge_bound(struct query *q, struct loc l, uint32_t p, uint32_t to)
{
	const struct an_group *g = q->t->g;
	const struct an_block *b = &g->block[p];
	uint32_t i = b->first + b->n - 1;
	struct dins x;
	int cc;

	if (g->insn[i].flow != FLOW_JCC || b->succ[0] == b->succ[1] || !tv_decode(q->t, i, &x) ||
	    (x.in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (x.in.opcode & 0xf0) != 0x70))
		return TB_INF;
	cc = (x.in.opcode & 15) ^ (b->succ[0] != to);
	for (int hops = 0; hops < 4; hops++) {
		while (i-- > b->first) {
			if (tv_writes(q->t, i) & WR_FLAGS) {
				if (!tv_decode(q->t, i, &x) || (x.in.mnemonic != ZYDIS_MNEMONIC_CMP &&
								x.in.mnemonic != ZYDIS_MNEMONIC_TEST))
					return TB_INF;
				return bound_by(q, &l, &x, i, cc);
			}
			if (!through(q, &l, i))
				return TB_INF;
		}
		/* `cmp; ja; je`: the second branch's flags come from the block before */
		if (b->npred != 1 || (b->flags & (AN_B_ENTRY | AN_B_LANDING | AN_B_RETURN)))
			return TB_INF;
		b = &g->block[b->pred[0]];
		i = b->first + b->n;
	}
	return TB_INF;
}

/* `cmp $N,S; cmova C,S` clamps: the value is at most N where it is kept. */
static uint64_t max_cmov(struct query *q, const struct dins *x, uint32_t i)
{
	uint32_t k = i, first = q->t->g->block[q->t->g->insn[i].block].first;
	int cc = x->in.opcode & 15;
	uint64_t keep = TB_INF, take = TB_INF;
	struct loc l;
	struct dins c;

	while (k-- > first && !(tv_writes(q->t, k) & WR_FLAGS))
		if ((tv_writes(q->t, k) >> tv_gpr(x->op[0].reg.value) & 1))
			break;
	if (k + 1 > first && (tv_writes(q->t, k) & WR_FLAGS) && tv_decode(q->t, k, &c) &&
	    c.in.mnemonic == ZYDIS_MNEMONIC_CMP) {
		if (to_loc(&x->op[0], &l))
			keep = bound_by(q, &l, &c, k, cc ^ 1);
		if (to_loc(&x->op[1], &l))
			take = bound_by(q, &l, &c, k, cc);
	}
	if (keep == TB_INF)
		keep = max_operand(q, &x->op[0], i);
	if (take == TB_INF)
		take = max_operand(q, &x->op[1], i);
	return keep > take ? keep : take;
}

static uint64_t plus(uint64_t m, int64_t v)
{
	if (m == TB_INF || (v < 0 && m < (uint64_t)-v) || m > (1ull << 40))
		return TB_INF;
	return m + v;
}

/* A load from a read-only table of bytes or words with known base and bounded index: its largest
 * element (printf maps characters to jump table indices that way). */
static uint64_t max_element(struct query *q, const struct dins *x, uint32_t i)
{
	const ZydisDecodedOperand *m = &x->op[1];
	struct loc idx = {.reg = tv_gpr(m->mem.index), .w = 8};
	struct consts base = {.n = 1};
	uint64_t n, worst = 0;

	if (m->type != ZYDIS_OPERAND_TYPE_MEMORY || m->size > 16 || idx.reg < 0 ||
	    m->mem.scale * 8u != m->size)
		return TB_INF;
	if (m->mem.base != ZYDIS_REGISTER_NONE)
		tv_consts(q->t, tv_gpr(m->mem.base), i, &base, 4);
	n = max_before(q, &idx, i);
	if (base.open || n > 4096)
		return TB_INF;
	for (uint32_t b = 0; b < base.n; b++) {
		uint64_t at = base.v[b] + m->mem.disp.value;
		uint32_t bytes = (n + 1) * m->mem.scale;
		const uint8_t *p = at < UINT32_MAX && elf_fixed(q->t->d->m, at, bytes)
					   ? elf_at(q->t->d->m, at, bytes)
					   : NULL;

		if (!p)
			return TB_INF;
		for (uint32_t k = 0; k < bytes; k += m->mem.scale) {
			uint32_t v = m->mem.scale == 2 ? p[k] | p[k + 1] << 8 : p[k];

			worst = v > worst ? v : worst;
		}
	}
	return worst;
}

/* A value of at most m and d more, in w bytes. One or two bytes go round, and may be an index in the table again (clang's kinds of
 * statements: `add $0x80,%dl; movzbl %dl,%edx`); what goes round in more leads out of it. */
static uint64_t sum(uint64_t m, int64_t d, uint8_t w)
{
	if (w >= 4)
		return plus(m, d);
	return d < 0 || m > full(w) || m > full(w) - (uint64_t)d ? full(w) : m + (uint64_t)d;
}

static uint64_t max_lea(struct query *q, const struct dins *x, uint32_t i, uint8_t w)
{
	const ZydisDecodedOperandMem *m = &x->op[1].mem;
	struct loc l = {.w = 8};
	uint64_t v;

	if (m->base == ZYDIS_REGISTER_RIP ||
	    (m->base != ZYDIS_REGISTER_NONE && m->index != ZYDIS_REGISTER_NONE))
		return TB_INF;
	l.reg = tv_gpr(m->base != ZYDIS_REGISTER_NONE ? m->base : m->index);
	l.w = x->op[0].size / 8;
	if (l.reg < 0)
		return TB_INF;
	v = max_before(q, &l, i);
	if (m->base == ZYDIS_REGISTER_NONE && v != TB_INF)
		v = v > (1ull << 40) ? TB_INF : v * m->scale;
	return sum(v, m->disp.value, w);
}

/* Largest value of l after instruction i, which defines it. */
static uint64_t max_def(struct query *q, const struct loc *l, uint32_t i)
{
	const ZydisDecodedOperand *a, *b;
	uint64_t m, n;
	struct dins x;

	if (q->t->g->insn[i].flow != FLOW_NEXT || !tv_decode(q->t, i, &x))
		return TB_INF;
	a = &x.op[0];
	b = &x.op[1];
	if (a->type != ZYDIS_OPERAND_TYPE_REGISTER || tv_gpr(a->reg.value) != l->reg ||
	    (a->size < 32 && a->size / 8 < l->w) ||
	    (a->reg.value >= ZYDIS_REGISTER_AH && a->reg.value <= ZYDIS_REGISTER_BH))
		return TB_INF;
	switch (x.in.mnemonic) {
	case ZYDIS_MNEMONIC_MOVZX:
		if ((m = max_element(q, &x, i)) != TB_INF)
			return m;
		return max_operand(q, b, i);
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSXD:
		return max_operand(q, b, i);
	case ZYDIS_MNEMONIC_MOVSX:
		m = max_operand(q, b, i);
		return m < full(b->size / 8) / 2 ? m : TB_INF;
	case ZYDIS_MNEMONIC_CDQE:
	case ZYDIS_MNEMONIC_CWDE: {
		struct loc s = {.reg = 0, .w = x.in.mnemonic == ZYDIS_MNEMONIC_CDQE ? 4 : 2};

		return max_before(q, &s, i);
	}
	case ZYDIS_MNEMONIC_AND:
		m = b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && b->imm.value.s < 0 ? TB_INF
										  : max_operand(q, b, i);
		if (b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && m != TB_INF)
			return m;
		n = max_operand(q, a, i);
		return m < n ? m : n;
	case ZYDIS_MNEMONIC_OR:
		m = max_operand(q, a, i);
		n = max_operand(q, b, i);
		m = m > n ? m : n;
		return m > (1u << 20) ? TB_INF : (2ull << (63 - __builtin_clzll(m | 1))) - 1;
	case ZYDIS_MNEMONIC_SHR:
		if (b->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return TB_INF;
		return max_operand(q, a, i) >> (b->imm.value.u & 63);
	case ZYDIS_MNEMONIC_SHL:
		m = max_operand(q, a, i);
		return b->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || m > (1u << 24) || b->imm.value.u > 8
			       ? TB_INF
			       : m << b->imm.value.u;
	case ZYDIS_MNEMONIC_ADD:
		return b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE
			       ? sum(max_operand(q, a, i), b->imm.value.s, l->w)
			       : TB_INF;
	case ZYDIS_MNEMONIC_SUB:
		return b->type == ZYDIS_OPERAND_TYPE_IMMEDIATE
			       ? sum(max_operand(q, a, i), -b->imm.value.s, l->w)
			       : TB_INF;
	case ZYDIS_MNEMONIC_INC:
		return sum(max_operand(q, a, i), 1, l->w);
	case ZYDIS_MNEMONIC_DEC:
		return sum(max_operand(q, a, i), -1, l->w);
	case ZYDIS_MNEMONIC_LEA:
		return max_lea(q, &x, i, l->w);
	case ZYDIS_MNEMONIC_XOR:
		return b->type == ZYDIS_OPERAND_TYPE_REGISTER && b->reg.value == a->reg.value ? 0 : TB_INF;
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
		return 63;
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_POPCNT:
		return 64;
	default:
		if (x.in.meta.category == ZYDIS_CATEGORY_SETCC)
			return 1;
		if (x.in.meta.category == ZYDIS_CATEGORY_CMOV)
			return max_cmov(q, &x, i);
		return TB_INF;
	}
}

/* l at the start of block b: the worst of its predecessors. */
static uint64_t max_entry(struct query *q, const struct loc *l, uint32_t b)
{
	const struct an_block *bl = &q->t->g->block[b];
	uint64_t worst = 0;

	for (uint32_t k = 0; k < q->nseen; k++)
		if (q->seen[k].block == b && same_loc(&q->seen[k].loc, l))
			return 0;
	if ((bl->flags & (AN_B_ENTRY | AN_B_LANDING)) || !bl->npred || q->nseen == 160)
		return TB_INF;
	q->seen[q->nseen++] = (struct seen){b, *l};
	for (uint32_t k = 0; k < bl->npred && worst != TB_INF; k++) {
		const struct an_block *p = &q->t->g->block[bl->pred[k]];
		uint64_t e = edge_bound(q, *l, bl->pred[k], b);

		if (e == TB_INF)
			e = max_in(q, l, p->first + p->n, bl->pred[k]);
		if (e > worst)
			worst = e;
	}
	return worst;
}

static uint64_t max_in(struct query *q, const struct loc *l, uint32_t before, uint32_t b)
{
	const struct an_group *g = q->t->g;
	uint32_t i = before;
	uint64_t m = TB_INF;
	struct dins x;

	if (q->depth > 60 || !q->t->budget)
		return TB_INF;
	q->depth++;
	for (;;) {
		if (i == g->block[b].first) {
			m = max_entry(q, l, b);
			break;
		}
		i--;
		q->t->budget -= q->t->budget > 0;
		if (l->reg >= 0 ? tv_writes(q->t, i) >> l->reg & 1 : clobbers_mem(q, l, i, &x)) {
			if (l->reg >= 0)
				m = max_def(q, l, i);
			else if (g->insn[i].flow == FLOW_NEXT && tv_decode(q->t, i, &x) &&
				 x.in.mnemonic == ZYDIS_MNEMONIC_MOV &&
				 x.op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				 same_mem(&x.op[0].mem, &l->mem) && x.op[0].size == l->w * 8)
				m = max_operand(q, &x.op[1], i);
			break;
		}
	}
	q->depth--;
	return m;
}

uint64_t tb_max(struct tctx *t, int reg, uint8_t w, uint32_t before)
{
	struct loc l = {.reg = reg, .w = w};
	struct query q; /* large: of `seen` nothing is looked at yet */

	q.t = t;
	q.nseen = 0;
	q.depth = 0;
	return max_before(&q, &l, before);
}
