/* SPDX-License-Identifier: MIT
 *
 * plan_insn.c - what is left of one instruction: ops for the decoder, logs for the copy
 *
 * The order of logs, and of the ops that read them (sem.h, an.h):
 *
 *   AT_BEFORE  0. order maps: the time, when the instruction locks
 *              1. effective addresses the records need, in record order
 *              2. verify maps: effective addresses of the other records, in record order, checked by
 *                 SEM_VCHK ops that follow the last record
 *              3. mask, then indices, of SEM_RECVEC groups; what popf takes off the stack
 *              4. the condition or target of the control transfer (plan_ctl.c)
 *   AT_AFTER   registers, in the order of the ops that define them; the time
 *
 * Effective addresses are read into temporaries above those of the lifter.
 */
#include "graph_range.h"
#include "plan_buf.h"
#include "prefix.h"

#define EA_TEMP (SEM_T0 + 32)

/* pe_ea - the operand whose effective address is record k's */
bool pe_ea(const struct gr *gr, uint32_t i, uint32_t k, struct plan_log *l)
{
	const struct sem_ea *ea = &gr->note[k].ea;

	*l = (struct plan_log){i, AT_BEFORE, LOG_EA, ea->op, 8, ea->stack ? SEM_REC_DISP(gr->op[k].imm) : 0};
	return ea->op != SEM_EA_NONE;
}

static bool same_address(const struct sem_op *x, const struct sem_op *y)
{
	return x->a == y->a && x->b == y->b && x->w == y->w && x->imm == y->imm;
}

/* instructions have few records; enter has up to 64, and they are all on rsp and rbp */
#define MAXREC SEM_EA_MAX
struct recs {
	uint32_t n, k[MAXREC];
	uint8_t temp[MAXREC];
};

static void find_recs(const struct gr *gr, uint32_t i, struct recs *r)
{
	r->n = 0;
	for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op && r->n < MAXREC; k++)
		if (!(gr->note[k].flags & GN_SLOT2) && gr->op[k].op == SEM_REC) {
			r->temp[r->n] = 0;
			r->k[r->n++] = k;
		}
}

static bool ea_wanted(const struct gr *gr, uint32_t i, const struct recs *r, uint32_t n)
{
	return (gr->note[r->k[n]].flags & GN_EA) || (gr->in[i].ea >> n & 1);
}

static void log_addresses(struct pe *e, uint32_t i, struct recs *r)
{
	struct gr *gr = e->gr;
	unsigned t = EA_TEMP, w;
	struct plan_log l;

	for (uint32_t n = 0; n < r->n; n++) {
		if (!ea_wanted(gr, i, r, n))
			continue;
		if (n && ea_wanted(gr, i, r, n - 1) && same_address(&gr->op[r->k[n]], &gr->op[r->k[n - 1]])) {
			r->temp[n] = r->temp[n - 1];
			continue;
		}
		if (!pe_ea(gr, i, r->k[n], &l)) {
			gr->broken = true;
			return;
		}
		w = gr_eawidth(gr, r->k[n]);
		pe_log(e, i, AT_BEFORE, LOG_EA, l.reg, w, l.disp);
		pe_op(e, w == 8 ? SEM_LOG : SEM_LOGSX, w, t, SEM_NONE, SEM_NONE, SEM_WHY_ADDRESS);
		if (gr->note[r->k[n]].ea.seg)
			pe_op(e, SEM_LEA, 0, t, t, gr->note[r->k[n]].ea.seg, 0);
		r->temp[n] = (uint8_t)t++;
	}
}

/* verify maps: what the processor computed for each record, against the decoder's address. The
 * segment base is not in a logged address: such records are left out. */
static void verify(struct pe *e, uint32_t i, const struct recs *r)
{
	struct plan_log l;

	for (uint32_t n = 0; n < r->n; n++) {
		if (r->temp[n] || !pe_ea(e->gr, i, r->k[n], &l) || e->gr->note[r->k[n]].ea.seg)
			continue;
		pe_log(e, i, AT_BEFORE, LOG_EA, l.reg, 8, l.disp);
		pe_op(e, SEM_VCHK, 8, SEM_NONE, SEM_NONE, SEM_NONE, r->n - 1 - n);
	}
}

static void emit_rec(struct pe *e, uint32_t k, const struct recs *r)
{
	struct sem_op *op = pe_new(e);

	*op = e->gr->op[k];
	for (uint32_t n = 0; n < r->n; n++)
		if (r->k[n] == k && r->temp[n]) {
			op->a = r->temp[n];
			op->b = SEM_NONE;
			op->w = 0;
			op->imm = SEM_RECIMM(0, SEM_REC_IP(op->imm));
		}
}

static void emit_group(struct pe *e, uint32_t i, uint32_t k)
{
	const struct sem_vec *v = (const struct sem_vec *)&e->gr->op[k + 1];
	bool computed = e->gr->note[k].flags & GN_MASK;
	struct sem_vec known = *v;

	*pe_new(e) = e->gr->op[k];
	if (computed) {
		known.mask = SEM_MASK_REG;
		known.count = (uint16_t)gr_mask(&e->gr->op[k]);
	}
	memcpy(pe_new(e), &known, sizeof(known));
	if (e->gr->op[k].op != SEM_RECVEC)
		return;
	if (v->mask == SEM_MASK_K && !computed)
		pe_log(e, i, AT_BEFORE, LOG_KMASK, v->count, v->mask_bytes, 0);
	else if (v->mask == SEM_MASK_VEC)
		pe_log(e, i, AT_BEFORE, LOG_VEC, v->count, v->n * v->mask_bytes, 0);
	if (v->mask != SEM_MASK_ALL && v->idx_bytes)
		pe_log(e, i, AT_BEFORE, LOG_VEC, v->df, v->n * v->idx_bytes, 0);
}

static void emit_value(struct pe *e, uint32_t k)
{
	uint16_t f = e->gr->note[k].flags;
	struct sem_op *op = pe_new(e);

	*op = e->gr->op[k];
	if (f & GN_SELF) /* the word at the thread pointer holds its own address (ELF TLS ABI, x86-64) */
		*op = (struct sem_op){SEM_MOV, 8, op->dst, SEM_FSBASE, SEM_NONE, 0};
	else if (f & GN_RO)
		op->op = SEM_LOADRO;
}

static enum sem_why why_logged(const struct gr *gr, uint32_t i)
{
	for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
		if (!(gr->note[k].flags & GN_SLOT2) && gr->op[k].op == SEM_LOAD)
			return gr->note[k].flags & GN_STACK ? SEM_WHY_SLOT : SEM_WHY_LOAD;
	return SEM_WHY_OTHER;
}

/* with a lock prefix, or xchg with memory, which locks without (SDM Vol. 3, 9.1.2.1); or xend: what a transaction wrote is seen
 * from then on (0F 01 D5) */
static bool locks(const struct gr *gr, uint32_t i)
{
	const struct an_insn *n = &gr->g->insn[i];
	const uint8_t *b = elf_at(gr->m, n->vaddr, n->len);
	struct prefixes p = prefixes(b, n->len);

	return p.lock || (p.n + 3u == n->len && b[p.n] == 0x0f && b[p.n + 1] == 0x01 && b[p.n + 2] == 0xd5) ||
	       (p.n + 2u <= n->len && (b[p.n] == 0x86 || b[p.n] == 0x87) && b[p.n + 1] < 0xc0);
}

static void time_stamp(struct pe *e, uint32_t i, unsigned when)
{
	pe_log(e, i, when, LOG_TSC, 0, 8, 0);
	pe_op(e, SEM_TSC, 8, SEM_NONE, SEM_NONE, SEM_NONE, 0);
}

/* a value that the decoder cannot compute from what it has, of an instruction whose result is none of the general registers */
static void log_temporary(struct pe *e, uint32_t i, const struct sem_op *op)
{
	if (op->op == SEM_UNK) {
		/* never by ptwrite: an interrupted one has not come to it (walk_seek.c) */
		pe_log(e, i, AT_AFTER, LOG_REG, SEM_RCX, 8, 0);
		pe_op(e, SEM_LOG, 8, op->dst, SEM_NONE, SEM_NONE, SEM_WHY_OTHER);
	} else {
		pe_log(e, i, AT_BEFORE, LOG_POPF, 0, 8, 0);
		pe_op(e, SEM_LOG, 8, op->dst, SEM_NONE, SEM_NONE, SEM_WHY_SLOT);
	}
}

static void log_registers(struct pe *e, uint32_t i)
{
	struct gr *gr = e->gr;
	bool sx;

	for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
		if ((gr->note[k].flags & GN_LOG) && !(gr->note[k].flags & GN_COUNT)) {
			unsigned w = gr_logwidth(gr, i, k, gr->note[k].nw, &sx);

			pe_log_reg(e, i, AT_AFTER, gr->op[k].dst, w, sx, gr->op[k].dst, why_logged(gr, i));
		}
}

static void insn(struct pe *e, uint32_t i)
{
	struct gr *gr = e->gr;
	bool timed = (gr->mapflags & MAP_F_ORDER) && gr->g->insn[i].flow == FLOW_NEXT && locks(gr, i);
	bool check = gr->mapflags & MAP_F_VERIFY;
	uint32_t k0 = gr->in[i].op, k1 = gr->in[i + 1].op;
	uint16_t any = gr->in[i].ea || check ? GN_EA : 0;
	struct recs r; /* large */

	r.n = 0;
	for (const struct gr_note *n = gr->note + k0; n < gr->note + k1; n++)
		any |= n->flags;
	if (timed)
		time_stamp(e, i, AT_BEFORE);
	if (any & GN_EA) { /* else records are what they are */
		find_recs(gr, i, &r);
		log_addresses(e, i, &r);
	}
	for (uint32_t k = k0; k < k1; k++) {
		const struct gr_note *n = &gr->note[k];

		if (n->kind == GK_REC) {
			emit_rec(e, k, &r);
			if (check && r.n && k == r.k[r.n - 1] && r.n < MAXREC)
				verify(e, i, &r);
		} else if (n->kind == GK_GROUP) {
			emit_group(e, i, k);
		} else if (n->flags & GN_EMIT) {
			emit_value(e, k);
		} else if ((n->flags & GN_LOG) && (n->flags & GN_COUNT)) {
			log_temporary(e, i, &gr->op[k]);
		}
	}
	if (any & GN_LOG)
		log_registers(e, i);
	if (timed)
		time_stamp(e, i, AT_AFTER);
}

/* Most instructions log nothing, and their records are what they are. False, and nothing is done: this one does */
static bool logless(struct pe *e, uint32_t i)
{
	const struct gr *gr = e->gr;
	const struct sem_op *op = gr->op + gr->in[i].op;
	const struct gr_note *n = gr->note + gr->in[i].op, *end = gr->note + gr->in[i + 1].op;
	uint32_t from = e->nop;

	for (; n < end; n++, op++) {
		if ((n->flags & (GN_EA | GN_LOG)) || n->kind == GK_GROUP) {
			e->nop = from;
			return false;
		}
		if (n->kind == GK_REC)
			*pe_new(e) = *op;
		else if (n->flags & GN_EMIT)
			emit_value(e, (uint32_t)(op - gr->op));
	}
	return true;
}

void pe_insns(struct pe *e, uint32_t first, uint32_t n)
{
	const struct gr *gr = e->gr;
	bool all = gr->mapflags & (MAP_F_ORDER | MAP_F_VERIFY);

	for (uint32_t i = first; i < first + n; i++) {
		uint32_t from = e->nop;

		if (all || gr->in[i].ea || !logless(e, i))
			insn(e, i);
		pe_count(e, i, from);
	}
}
