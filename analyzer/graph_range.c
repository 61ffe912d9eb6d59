/* SPDX-License-Identifier: MIT
 *
 * graph_range.c - forward: how many bits a value can have
 *
 * For each general register at each block's start, and for the result of each op: the value is less than
 * 2^z (no sign), and fits into s bits with sign. Loads extend, masks and shifts cut off, a comparison
 * with a constant bounds what it lets through. From this follow
 *
 *   - the bytes a log takes (gr_logwidth, gr_inwidth);
 *   - which operand of an addition can be an address: the one whose other operand is small (GN_NEARA,
 *     GN_NEARB; graph_deref.c).
 *
 * A least fixpoint from "no value yet" up; bounds that keep growing in a loop are rounded up.
 */
#include <emmintrin.h>
#include "graph_order.h"
#include "graph_range.h"

#define NEAR 36 /* bits of what is small: 32-bit index, scaled by 8, and a carry */
#define IDX 20 /* bits of an index into a table of read-only memory */
#define ROUNDS 4 /* visits of a block before bounds are rounded up */

static const struct gr_rng any = {64, 64};

#define X8(w) w, w, w, w, w, w, w, w
const uint8_t gr_bytes[65] = {1, X8(1), X8(2), X8(4), X8(4), X8(8), X8(8), X8(8), X8(8)};
#undef X8

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static struct gr_rng make(unsigned z, unsigned s)
{
	z = least(z, 64);
	return (struct gr_rng){(uint8_t)z, (uint8_t)least(least(s, z + 1), 64)};
}

static struct gr_rng unsig(unsigned z)
{
	return make(z, 64);
}

static struct gr_rng constant(int64_t c)
{
	uint64_t m = (uint64_t)(c < 0 ? ~c : c);

	return make(c < 0 ? 64
		    : m	  ? 64 - (unsigned)__builtin_clzll(m)
			  : 0,
		    (m ? 64 - (unsigned)__builtin_clzll(m) : 0) + 1);
}

static struct gr_rng get(const struct gr_rng *r, unsigned reg)
{
	return reg == SEM_NONE ? (struct gr_rng){0, 1} : reg < 64 ? r[reg] : any;
}

/* the second operand: b or imm, of which w bytes count */
static struct gr_rng second(const struct gr_rng *r, const struct sem_op *op)
{
	return op->b == SEM_NONE ? constant(op->imm) : get(r, op->b);
}

static struct gr_rng join(struct gr_rng a, struct gr_rng b)
{
	return (struct gr_rng){(uint8_t)most(a.zb, b.zb), (uint8_t)most(a.sb, b.sb)};
}

static struct gr_rng sum(struct gr_rng a, struct gr_rng b, unsigned w)
{
	unsigned z = a.zb == 0 ? b.zb : b.zb == 0 ? a.zb : most(a.zb, b.zb) + 1;
	unsigned s = most(a.sb, b.sb) + 1;

	if (w == 8)
		return z < 64 ? make(z, s) : make(64, s);
	return unsig(least(z, 8 * w));
}

static struct gr_rng scaled(struct gr_rng a, unsigned n)
{
	return make(a.zb ? a.zb + n : 0, a.sb + n);
}

static struct gr_rng shifted(const struct gr_rng *r, const struct sem_op *op)
{
	struct gr_rng a = get(r, op->a);
	unsigned z = least(a.zb, 8u * op->w), n = (unsigned)op->imm & (op->w == 8 ? 63 : 31);

	if (op->op == SEM_SHR)
		return unsig(op->b != SEM_NONE ? z : z > n ? z - n : 0);
	if (op->op == SEM_SAR && z < 8u * op->w) /* no sign bit */
		return unsig(op->b != SEM_NONE ? z : z > n ? z - n : 0);
	if (op->op == SEM_SAR && op->w == 8)
		return make(64, op->b != SEM_NONE ? a.sb : a.sb > n ? a.sb - n : 1);
	if (op->op == SEM_SHL && op->b == SEM_NONE)
		return unsig(least(z + n, 8u * op->w));
	return unsig(8u * op->w);
}

static inline struct gr_rng copied(struct gr_rng a, unsigned w)
{
	return a.zb <= 8 * w ? a : unsig(8 * w);
}

/* what an op gives */
static struct gr_rng result(const struct sem_op *op, const struct gr_rng *r)
{
	struct gr_rng a = get(r, op->a), b = second(r, op);
	unsigned w8 = 8u * op->w;

	switch (op->op) {
	case SEM_IMM:
		return constant(op->imm);
	case SEM_MODADDR:
		return unsig(47); /* below the end of user addresses */
	case SEM_MOV:
		return copied(a, op->w);
	case SEM_SX:
		return a.zb < w8 ? a : make(64, least(a.sb, w8));
	case SEM_EXTH:
		return unsig(8);
	case SEM_INS:
		return unsig(most(a.zb, w8));
	case SEM_INSH:
		return unsig(most(a.zb, 16));
	case SEM_LEA:
		b = get(r, op->b);
		return sum(sum(a, op->b == SEM_NONE ? constant(0) : scaled(b, op->w), 8), constant(op->imm),
			   8);
	case SEM_ADD:
		return sum(a, b, op->w);
	case SEM_SUB:
		return op->w == 8 ? make(64, most(a.sb, b.sb) + 1) : unsig(w8);
	case SEM_AND:
		return unsig(least(least(a.zb, b.zb), w8));
	case SEM_OR:
	case SEM_XOR:
		return op->w == 8 && most(a.zb, b.zb) == 64 ? make(64, most(a.sb, b.sb))
							    : unsig(least(most(a.zb, b.zb), w8));
	case SEM_SHL:
	case SEM_SHR:
	case SEM_SAR:
		return shifted(r, op);
	case SEM_MUL:
		return unsig(least(least(a.zb, w8) + least(b.zb, w8), w8));
	case SEM_UDIV:
		return unsig(w8);
	case SEM_UREM:
		return unsig(least(b.zb, w8));
	case SEM_COND:
	case SEM_CMPEQ:
		return unsig(1);
	case SEM_TZCNT:
	case SEM_LZCNT:
	case SEM_POPCNT:
		return unsig(7);
	case SEM_BZHI:
		return unsig(least(a.zb, 64));
	case SEM_SEL:
		return join(a, get(r, op->b));
	case SEM_LOAD:
		return unsig(w8);
	default:
		return op->dst < SEM_NGPR || op->dst >= SEM_T0 ? unsig(8 * gr_zero_width(op)) : any;
	}
}

static bool near(const struct gr_rng *r, unsigned reg, unsigned scale)
{
	return reg < 64 && least(r[reg].zb + 1u, r[reg].sb) + scale <= NEAR;
}

/* Which operand of a sum is an address if the sum is one? */
static uint16_t near_operands(const struct sem_op *op, const struct gr_rng *r)
{
	unsigned scale = op->op == SEM_ADD ? 0 : op->w;
	uint16_t f = 0;

	if (op->b == SEM_NONE || (op->op == SEM_ADD && op->w != 8) ||
	    (op->op != SEM_ADD && op->op != SEM_LEA && op->op != SEM_REC))
		return 0;
	if (near(r, op->b, scale))
		f |= GN_NEARA;
	if (scale == 0 && near(r, op->a, 0))
		f |= GN_NEARB;
	return f;
}

/* bytes of an op's result that can be other than zero, from its code alone */
unsigned gr_zero_width(const struct sem_op *op)
{
	switch (op->op) {
	case SEM_COND:
	case SEM_CMPEQ:
		return 1;
	case SEM_CRC32: /* w is the data's */
		return 4;
	case SEM_INS:
	case SEM_INSH:
	case SEM_LEA:
	case SEM_SEL:
	case SEM_UNK:
	case SEM_IMM:
	case SEM_MODADDR:
	case SEM_SX:
	case SEM_BEXTR:
	case SEM_BZHI:
	case SEM_BSF:
	case SEM_BSR:
		return 8;
	default:
		return op->w ? op->w : 8;
	}
}

static bool from_operands(const struct sem_op *op)
{
	switch (op->op) {
	case SEM_MOV:
	case SEM_SX:
	case SEM_INS:
	case SEM_INSH:
	case SEM_LEA:
	case SEM_ADD:
	case SEM_AND:
	case SEM_OR:
	case SEM_XOR:
	case SEM_SHL:
	case SEM_SHR:
	case SEM_SAR:
	case SEM_MUL:
	case SEM_UREM:
	case SEM_BZHI:
	case SEM_SEL:
		return true;
	case SEM_SUB:
		return op->w == 8;
	default:
		return false;
	}
}

uint8_t range_kind(const struct sem_op *op, struct gr_rng *r)
{
	struct gr_rng none[64];

	if (op->op == SEM_REC)
		return op->b != SEM_NONE ? RK_REC : RK_NONE;
	if (!gr_is_value(op))
		return RK_NONE;
	if (op->b != SEM_NONE && (op->op == SEM_LEA || (op->op == SEM_ADD && op->w == 8)))
		return RK_SUM;
	if (op->dst >= 64)
		return RK_NONE;
	if (op->op == SEM_MOV && op->a < 64)
		return RK_COPY;
	if (from_operands(op))
		return RK_VALUE;
	memset(none, 64, sizeof(none));
	*r = result(op, none);
	return RK_FIXED;
}

struct range {
	struct gr *gr;
	struct gr_rng r[64];
	uint32_t wide; /* sums with an index */
};

/* a sum's operands, or those of a record's address; what is noted at the last visit stands */
static void note_near(struct range *g, uint32_t k)
{
	const struct sem_op *op = &g->gr->op[k];
	struct gr_note *n = &g->gr->note[k];
	uint16_t near = near_operands(op, g->r);

	if (op->op == SEM_LEA)
		n->idx = op->b < 64 && g->r[op->b].zb <= IDX ? GR_IDX(g->r[op->b].zb, op->w) : 0;
	g->wide += (near != 0) - ((n->flags & (GN_NEARA | GN_NEARB)) != 0);
	n->flags = (uint16_t)((n->flags & ~(GN_NEARA | GN_NEARB)) | near);
}

static void run_block(struct range *g, uint32_t bi)
{
	struct gr *gr = g->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t end = gr->in[b->first + b->n].op;

	memcpy(g->r, gr->b[bi].rng, sizeof(gr->b[bi].rng));
	for (int r = SEM_NGPR; r < SEM_T0; r++)
		g->r[r] = any; /* flags are followed within a block; temporaries within an instruction */
	for (uint32_t k = gr->in [b->first].op; k < end; k++) {
		const struct sem_op *op = &gr->op[k];
		struct gr_note *n = &gr->note[k];

		if (n->range == RK_FIXED) {
			g->r[op->dst] = n->rng;
		} else if (n->range == RK_COPY) {
			g->r[op->dst] = n->rng = copied(g->r[op->a], op->w);
		} else if (n->range != RK_NONE) {
			if (n->range != RK_VALUE)
				note_near(g, k);
			if (n->range != RK_REC && op->dst < 64)
				g->r[op->dst] = n->rng = result(op, g->r);
		}
	}
}

/* the op that made the flag the jump at the end of block b tests, AN_NONE if it is not in the block; and the
 * general registers written after it */
static uint32_t find_flag_op(const struct gr *gr, uint32_t bi, unsigned flag, uint16_t *written)
{
	const struct an_block *b = &gr->g->block[bi];
	uint32_t first = gr->in[b->first].op;

	*written = 0;
	for (uint32_t k = gr->in [b->first + b->n].op; k-- > first;) {
		const struct sem_op *op = &gr->op[k];

		if (gr->note[k].kind < GK_VALUES)
			continue;
		if (op->dst == flag)
			return k;
		if (op->dst < SEM_NGPR)
			*written |= (uint16_t)(1u << op->dst);
	}
	return AN_NONE;
}

/* the same, found once: of one flag, the jump's */
static uint32_t flag_op(struct gr *gr, uint32_t bi, unsigned flag, uint32_t *written)
{
	struct gr_block *b = &gr->b[bi];

	if (!b->flagop)
		b->flagop = find_flag_op(gr, bi, flag, &b->flagwritten) + 2; /* AN_NONE: 1 */
	*written = b->flagwritten;
	return b->flagop - 2;
}

/* a and b or a constant are equal: both have what is known of either */
static void equal(struct range *g, const struct sem_op *op, uint32_t written)
{
	bool a = op->a < SEM_NGPR && !(written >> op->a & 1), b = op->b < SEM_NGPR && !(written >> op->b & 1);
	struct gr_rng x = a ? g->r[op->a] : any, y = op->b == SEM_NONE ? constant(op->imm) : any, m;

	if (b)
		y = g->r[op->b];
	if (op->op == SEM_FR_LOGIC)
		y = constant(0);
	else if (op->op != SEM_FR_SUB)
		return;
	/* of a narrower comparison nothing follows for what is above */
	if (op->w < 8 && ((a && x.zb > 8u * op->w) || (b && y.zb > 8u * op->w) || y.zb == 64))
		return;
	m = make(least(x.zb, y.zb), least(x.sb, y.sb));
	if (a)
		g->r[op->a] = m;
	if (b)
		g->r[op->b] = m;
}

/* a is below b or a constant, or equal to it */
static void below(struct range *g, const struct sem_op *op, uint32_t written)
{
	unsigned z;

	if (op->op != SEM_FC_SUB || op->a >= SEM_NGPR || (written >> op->a & 1))
		return;
	if (op->w < 8 && g->r[op->a].zb > 8u * op->w)
		return;
	if (op->b == SEM_NONE) {
		if (op->imm < 0)
			return;
		z = constant(op->imm).zb;
	} else if (op->b < SEM_NGPR && !(written >> op->b & 1)) {
		z = g->r[op->b].zb;
	} else {
		return;
	}
	g->r[op->a] = make(least(g->r[op->a].zb, z), g->r[op->a].sb);
}

/* The outcome of the jump at the end of block b that a comparison says something about: 1 taken, 0 not taken, -1 neither. */
static int bounded(const struct gr *gr, uint32_t bi)
{
	const struct an_block *b = &gr->g->block[bi];
	uint8_t cc = gr->in[b->first + b->n - 1].cc;

	return cc >= 2 && cc <= 7 ? !(cc & 1) : -1; /* b, e, be; ae, ne, a */
}

/* what it lets through on that way */
static void bound(struct range *g, uint32_t bi)
{
	struct gr *gr = g->gr;
	const struct an_block *b = &gr->g->block[bi];
	bool equals = gr->in[b->first + b->n - 1].cc >> 1 == 2;
	uint32_t written, k = flag_op(gr, bi, equals ? SEM_FR : SEM_FC, &written);

	if (k == AN_NONE)
		return;
	if (equals)
		equal(g, &gr->op[k], written);
	else
		below(g, &gr->op[k], written);
}

_Static_assert(SEM_NGPR * sizeof(struct gr_rng) == 2 * sizeof(__m128i), "two of them hold all registers");

/* registers whose values are small: zb up to GR_SMALL, or sb up to one more */
static uint16_t find_small(const struct range *g)
{
	const __m128i most = _mm_set1_epi16((GR_SMALL + 1) << 8 | GR_SMALL);
	__m128i large[2]; /* by register: 0 if one of the two is not above */

	_Static_assert(offsetof(struct gr_rng, zb) == 0, "the low byte");
	for (int i = 0; i < 2; i++) {
		__m128i x = _mm_loadu_si128((const __m128i *)(g->r + 8 * i));
		__m128i up = _mm_cmpeq_epi8(_mm_subs_epu8(x, most), _mm_setzero_si128());

		large[i] = _mm_cmpeq_epi16(up, _mm_setzero_si128());
	}
	return (uint16_t)~_mm_movemask_epi8(_mm_packs_epi16(large[0], large[1]));
}

/* round up what keeps growing */
static uint8_t widen(unsigned bits)
{
	return bits <= 8 ? 8 : bits <= 16 ? 16 : bits <= 32 ? 32 : bits <= 46 ? 46 : 64;
}

/* d = d join s; true if that is more than d was. Eight values at a time: most of what arrives changes nothing. */
static bool join_all(struct gr_rng *d, const struct gr_rng *s)
{
	__m128i same = _mm_set1_epi8(-1);

	for (int i = 0; i < 2; i++) {
		__m128i a = _mm_loadu_si128((const __m128i *)(d + 8 * i));
		__m128i m = _mm_max_epu8(a, _mm_loadu_si128((const __m128i *)(s + 8 * i)));

		same = _mm_and_si128(same, _mm_cmpeq_epi8(a, m));
		_mm_storeu_si128((__m128i *)(d + 8 * i), m);
	}
	return _mm_movemask_epi8(same) != 0xffff;
}

/* bounds that grew from `was` */
static void round_up(struct gr_rng *r, const struct gr_rng *was)
{
	for (int i = 0; i < SEM_NGPR; i++) {
		if (r[i].zb > was[i].zb)
			r[i].zb = widen(r[i].zb);
		if (r[i].sb > was[i].sb)
			r[i].sb = widen(r[i].sb);
	}
}

static void arrive(struct range *g, uint32_t to)
{
	struct gr_rng was[SEM_NGPR];
	struct gr_block *b;

	if (to == AN_NONE)
		return;
	b = &g->gr->b[to];
	if (b->nrange > ROUNDS)
		memcpy(was, b->rng, sizeof(was));
	if (!join_all(b->rng, g->r) && b->nrange)
		return;
	if (b->nrange > ROUNDS)
		round_up(b->rng, was);
	b->nrange += b->nrange < 255;
	gr_wait_turn(g->gr, to);
}

static void forget(struct gr_rng *r, uint32_t lost)
{
	for (; lost; lost &= lost - 1)
		r[__builtin_ctz(lost)] = any;
}

/* the end of a block on the way with the outcome `taken` */
static void leave_jump(struct range *g, uint32_t bi, bool taken, bool on)
{
	g->gr->b[bi].small[taken] = find_small(g);
	if (on)
		arrive(g, g->gr->g->block[bi].succ[!taken]);
}

/* what a block's end tells the blocks it leads to (`on`: and tells them) */
static void leave(struct range *g, uint32_t bi, bool on)
{
	struct gr *gr = g->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint8_t flow = gr_flow(gr, bi);
	struct gr_rng keep[SEM_NGPR];
	int way;

	if (flow == FLOW_JCC) {
		way = bounded(gr, bi);
		memcpy(keep, g->r, sizeof(keep));
		if (way == 1)
			bound(g, bi);
		leave_jump(g, bi, true, on);
		if (way == 1)
			memcpy(g->r, keep, sizeof(keep));
		else if (way == 0)
			bound(g, bi);
		leave_jump(g, bi, false, on);
	}
	if (flow == FLOW_JCC || !on)
		return;
	if (flow == FLOW_CALL || flow == FLOW_ICALL)
		forget(g->r, (gr->b[bi].clob & 0xffff) | GR_CALLER_SAVED);
	else if (flow == FLOW_SYSCALL)
		forget(g->r, 1u << SEM_RAX | 1u << SEM_RCX | 1u << SEM_R11);
	arrive(g, b->succ[0]);
	arrive(g, b->succ[1]);
	if (b->table != AN_NONE)
		for (uint32_t k = 0; k < gr->g->table[b->table].ntarget; k++)
			arrive(g, gr->g->table[b->table].target[k]);
}

/* Control comes in with nothing known here. */
static bool open_block(const struct gr *gr, uint32_t i)
{
	const struct an_block *b = &gr->g->block[i];

	return (b->flags & (AN_B_ENTRY | AN_B_LANDING | AN_B_TWICE | AN_B_ANYTARGET)) || !b->npred ||
	       gr->b[i].stub == STUB_RESYNC || gr->b[i].stub == STUB_ENTRY;
}

/* no more than GR_WIDE sums with an index */
static void first_wide(struct gr *gr)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < gr->nop; k++)
		if ((gr->note[k].flags & (GN_NEARA | GN_NEARB)) && n++ >= GR_WIDE)
			gr->note[k].flags &= (uint16_t) ~(GN_NEARA | GN_NEARB);
}

void gr_range(struct gr *gr)
{
	struct range g = {.gr = gr};
	uint32_t nb = gr->g->nblock;

	for (int r = 0; r < 64; r++)
		g.r[r] = any;
	for (uint32_t i = 0; i < nb; i++) {
		gr->b[i].nrange = open_block(gr, i);
		memset(gr->b[i].rng, gr->b[i].nrange ? 64 : 0, sizeof(gr->b[i].rng));
		if (gr->b[i].nrange)
			gr_wait_turn(gr, i);
	}
	for (uint32_t i = nb; (i = gr_turn_up(gr, i)) != AN_NONE;) {
		run_block(&g, i);
		leave(&g, i, true);
	}
	for (uint32_t i = 0; i < nb; i++) {
		if (gr->b[i].nrange)
			continue;
		/* a cycle nothing leads to */
		memset(gr->b[i].rng, 64, sizeof(gr->b[i].rng));
		run_block(&g, i);
		leave(&g, i, false);
	}
	if (g.wide > GR_WIDE)
		first_wide(gr);
}
