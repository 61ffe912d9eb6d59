/* SPDX-License-Identifier: MIT
 *
 * graph_ssa.c - the value graph: where each operand of each op comes from
 *
 * Built lazily from what is demanded: inside a block an operand refers to the op that defines it;
 * otherwise to the variable at the block's start (struct vg_in), whose operands are the variable at
 * the ends of the predecessors. Tables with equal targets share a node per variable (their class).
 */
#include "graph_ssa.h"
#include "sem_eval.h"

#define MAX_IN 400000

static bool grow(void **p, uint32_t *cap, uint32_t n, size_t size)
{
	uint32_t c = *cap ? *cap * 2 : 256;
	void *q;

	if (n < *cap)
		return true;
	q = scratch_more(*p, n * size, c * size);
	if (!q)
		return false;
	*p = q;
	*cap = c;
	return true;
}

static uint32_t mix(uint32_t block, uint32_t var)
{
	return (block * 0x9e3779b1u ^ var * 0x85ebca6bu) * 0xc2b2ae35u >> 7;
}

static bool rehash(struct vg *v)
{
	uint32_t n = v->nhash ? v->nhash * 2 : 128;
	uint32_t *h = scratch(n * sizeof(*h));

	if (!h)
		return false;
	for (uint32_t i = 0; i < n; i++)
		h[i] = AN_NONE;
	for (uint32_t i = 0; i < v->nin; i++) {
		uint32_t k = mix(v->in[i].block, v->in[i].var) & (n - 1);

		while (h[k] != AN_NONE)
			k = (k + 1) & (n - 1);
		h[k] = i;
	}
	v->hash = h;
	v->nhash = n;
	return true;
}

/* the reference of a variable at a block's (or class's) start */
static uint32_t in_ref(struct vg *v, uint32_t block, unsigned var)
{
	uint32_t k;

	if (v->nin * 2 >= v->nhash && !rehash(v)) {
		v->fail = true;
		return VG_NOREF;
	}
	for (k = mix(block, var) & (v->nhash - 1); v->hash[k] != AN_NONE; k = (k + 1) & (v->nhash - 1))
		if (v->in[v->hash[k]].block == block && v->in[v->hash[k]].var == var)
			return VG_IN | v->hash[k];
	if (v->nin >= MAX_IN || !grow((void **)&v->in, &v->capin, v->nin, sizeof(*v->in))) {
		v->fail = true;
		return VG_NOREF;
	}
	v->in[v->nin] = (struct vg_in){block, (uint16_t)var, 0};
	v->hash[k] = v->nin;
	return VG_IN | v->nin++;
}

uint32_t vg_end(struct vg *v, uint32_t block, unsigned var)
{
	uint32_t lo = v->outfirst[block], hi = v->outfirst[block + 1];

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (v->out[mid].var < var)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < v->outfirst[block + 1] && v->out[lo].var == var)
		return v->out[lo].op;
	return in_ref(v, block, var);
}

/* few, and each variable once */
static void sort_by_var(struct vg_out *o, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct vg_out x = o[i];
		uint32_t j = i;

		for (; j && o[j - 1].var > x.var; j--)
			o[j] = o[j - 1];
		o[j] = x;
	}
}

/* every definition of these is a root */
static bool always_known(unsigned reg)
{
	return reg == SEM_RSP || reg == SEM_FSBASE || reg == SEM_GSBASE;
}

/* variables: last definition, block it is in plus one; those the current block defines */
struct scan {
	uint32_t cur[VG_NVAR], epoch[VG_NVAR];
	uint16_t def[VG_NVAR];
	uint32_t ndef;
};

/* one block: sources of its ops, then its last definitions */
static void scan_block(struct vg *v, uint32_t bi, struct scan *s)
{
	struct gr *gr = v->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t first = v->nout;

	s->ndef = 0;
	for (uint32_t k = gr->in [b->first].op; k < gr->in[b->first + b->n].op; k++) {
		const struct sem_op *op = &gr->op[k];
		const struct gr_note *n = &gr->note[k];
		uint16_t reg[4] = {op->a, op->b, sem_third(op), SEM_NONE};
		unsigned def = VG_NVAR;

		if (n->flags & GN_SLOT2)
			continue;
		if (gr_has_slot2(op)) { /* count and DF (or eax and edx) are its third and fourth operands */
			const struct sem_vec *sv = (const struct sem_vec *)(op + 1);

			if (op->op != SEM_RECVEC) {
				reg[2] = sv->count;
				reg[3] = sv->df;
			} else {
				reg[2] = (uint16_t)gr_mask(op);
			}
		} else if (gr_is_value(op)) {
			def = op->dst;
		}
		if (n->slot != GR_NOSLOT && gr->forward) {
			if (op->op == SEM_STORE)
				def = SEM_NREGS + n->slot;
			else
				reg[3] = SEM_NREGS + n->slot;
		}
		for (int j = 0; j < 4; j++)
			v->src[k][j] = reg[j] >= VG_NVAR || always_known(reg[j]) ? VG_NOREF
				       : s->epoch[reg[j]] == bi + 1		 ? s->cur[reg[j]]
										 : in_ref(v, bi, reg[j]);
		if (def < VG_NVAR) {
			if (s->epoch[def] != bi + 1)
				s->def[s->ndef++] = (uint16_t)def;
			s->cur[def] = k;
			s->epoch[def] = bi + 1;
		}
	}
	for (uint32_t i = 0; i < s->ndef; i++) {
		unsigned var = s->def[i];

		if (var >= SEM_T0 && var <= SEM_TLAST && var != SEM_T0)
			continue;
		if (!grow((void **)&v->out, &v->capout, v->nout, sizeof(*v->out))) {
			v->fail = true;
			return;
		}
		v->out[v->nout++] = (struct vg_out){s->cur[var], (uint16_t)var};
	}
	if (v->nout > first)
		sort_by_var(v->out + first, v->nout - first);
}

/* the blocks that jump in the group, by the class of their table */
static void find_jumps(struct vg *v)
{
	const struct an_group *g = v->gr->g;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t b = 0; b < g->nblock; b++) {
			uint32_t t = g->block[b].table;

			if (t == AN_NONE || glue_jump(v->gr->m, g, b) == JUMP_LEAVES)
				continue;
			if (pass)
				v->jump[v->jumpfirst[v->gr->class[t]]++] = b;
			else
				v->jumpfirst[v->gr->class[t] + 1]++;
		}
		for (uint32_t i = 0; i < g->ntable && !pass; i++)
			v->jumpfirst[i + 1] += v->jumpfirst[i];
	}
	for (uint32_t i = g->ntable; i > 0; i--) /* the second pass left ends for starts */
		v->jumpfirst[i] = v->jumpfirst[i - 1];
	v->jumpfirst[0] = 0;
}

int vg_open(struct vg *v, struct gr *gr)
{
	uint32_t nb = gr->g->nblock;
	struct scan *s;

	memset(v, 0, sizeof(*v));
	v->mark = scratch_mark();
	v->gr = gr;
	v->src = scratch((gr->nop + 1) * sizeof(*v->src));
	v->nw = scratch_zero(gr->nop + 1);
	v->outfirst = scratch((nb + 1) * sizeof(uint32_t));
	v->jump = scratch((nb + 1) * sizeof(uint32_t));
	v->jumpfirst = scratch_zero((gr->g->ntable + 1) * sizeof(uint32_t));
	s = scratch(sizeof(*s));
	v->fail = !s || !v->src || !v->nw || !v->outfirst || !v->jump || !v->jumpfirst;
	if (s)
		memset(s->epoch, 0, sizeof(s->epoch));
	for (uint32_t i = 0; i < nb && !v->fail; i++) {
		v->outfirst[i] = v->nout;
		scan_block(v, i, s);
	}
	if (v->fail)
		return -1;
	v->outfirst[nb] = v->nout;
	find_jumps(v);
	return 0;
}

void vg_close(struct vg *v)
{
	if (v->gr) /* has been opened */
		scratch_release(v->mark);
}

/* does a call, or a mark, between the end of pred and b make var unknown? */
static bool unknown_between(const struct vg *v, uint32_t pred, uint32_t b, unsigned var)
{
	const struct gr *gr = v->gr;
	uint8_t flow = gr_flow(gr, pred);

	if (flow == FLOW_SYSCALL)
		return var == SEM_R11 || var == SEM_RAX || var == SEM_RCX;
	if (flow == FLOW_IJMP && glue_jump(gr->m, gr->g, pred) == JUMP_LEAVES)
		return true;
	if (flow != FLOW_CALL && flow != FLOW_ICALL)
		return false;
	return gr->b[b].stub == STUB_RESYNC || (var < SEM_NGPR && (gr_ret_clobber(gr, pred) >> var & 1));
}

static void in_operands(struct vg *v, uint32_t in, vg_visit f, void *ctx)
{
	const struct an_group *g = v->gr->g;
	uint32_t b = v->in[in].block, seen = AN_NONE;
	unsigned var = v->in[in].var, w = v->in[in].nw;

	if (b >= g->nblock) {
		uint32_t class = b - g->nblock;

		for (uint32_t k = v->jumpfirst[class]; k < v->jumpfirst[class + 1]; k++)
			f(ctx, vg_end(v, v->jump[k], var), w);
		return;
	}
	for (uint32_t k = 0; k < g->block[b].npred; k++) {
		uint32_t p = g->block[b].pred[k];

		if (unknown_between(v, p, b, var))
			continue;
		if (g->block[p].table != AN_NONE) {
			uint32_t c = v->gr->class[g->block[p].table];

			if (c != seen)
				f(ctx, in_ref(v, g->nblock + c, var), w);
			seen = c;
		} else {
			f(ctx, vg_end(v, p, var), w);
		}
	}
}

static void op_operands(struct vg *v, uint32_t k, vg_visit f, void *ctx)
{
	const struct gr *gr = v->gr;
	const struct sem_op *op = &gr->op[k];
	struct sem_use u[4];
	int n;

	if (op->op == SEM_STORE) {
		f(ctx, v->src[k][0], 8);
		f(ctx, v->src[k][1], op->w == 2 ? 4 : op->w);
		return;
	}
	if (!(gr->note[k].flags & GN_COMP))
		return;
	if (op->op == SEM_LOAD && !(gr->note[k].flags & (GN_RO | GN_SELF)))
		f(ctx, v->src[k][3], 8);
	n = gr_op_uses(gr, k, v->nw[k], u);
	for (int i = 0; i < n; i++) {
		if (always_known(u[i].reg))
			continue;
		f(ctx, v->src[k][u[i].reg == op->a ? 0 : u[i].reg == op->b ? 1 : 2], u[i].w);
	}
}

void vg_operands(struct vg *v, uint32_t ref, vg_visit f, void *ctx)
{
	if (ref & VG_IN)
		in_operands(v, ref & ~VG_IN, f, ctx);
	else
		op_operands(v, ref, f, ctx);
}

static void want(void *ctx, uint32_t ref, unsigned w)
{
	struct vg *v = ctx;
	uint8_t *nw;

	if (ref == VG_NOREF)
		return;
	nw = ref & VG_IN ? &v->in[ref & ~VG_IN].nw : &v->nw[ref];
	if (*nw >= w)
		return;
	*nw = (uint8_t)w;
	if (!grow((void **)&v->work, &v->capwork, v->nwork, sizeof(*v->work))) {
		v->fail = true;
		return;
	}
	v->work[v->nwork++] = ref;
}

void vg_demand(struct vg *v, uint32_t ref, unsigned w)
{
	want(v, ref, w);
	while (v->nwork && !v->fail)
		vg_operands(v, v->work[--v->nwork], want, v);
}
