/* SPDX-License-Identifier: MIT
 *
 * plan_explain.c - a group's plan for people: each instruction, what is logged at it, why that value
 * is not computed, and the first place that needs it; and counters over whole modules
 *
 * What a log serves is found on the value graph: from each root backward to the first logged
 * values.
 */
#include <stdlib.h>
#include "graph_ssa.h"

struct px {
	struct gr *gr;
	struct vg v;
	uint32_t *serves; /* per op, then per in: first root's instruction + 1 */
	uint32_t *stack, n, cap, root;
};

static uint32_t *serves(struct px *x, uint32_t ref)
{
	return &x->serves[ref & VG_IN ? x->gr->nop + (ref & ~VG_IN) : ref];
}

static void visit(void *ctx, uint32_t ref, unsigned w)
{
	struct px *x = ctx;

	(void)w;
	if (ref == VG_NOREF || *serves(x, ref) || x->n == x->cap)
		return;
	*serves(x, ref) = x->root;
	/* values behind a log are not wanted for this root */
	if (!(ref & VG_IN) && (x->gr->note[ref].flags & GN_LOG))
		return;
	if ((ref & VG_IN) && x->v.in[ref & ~VG_IN].block < x->gr->g->nblock &&
	    x->v.in[ref & ~VG_IN].var < SEM_NGPR &&
	    (x->gr->b[x->v.in[ref & ~VG_IN].block].blklog >> x->v.in[ref & ~VG_IN].var & 1))
		return;
	x->stack[x->n++] = ref;
}

static void trace(struct px *x, uint32_t ref, uint32_t insn)
{
	x->root = insn + 1;
	visit(x, ref, 8);
	while (x->n)
		vg_operands(&x->v, x->stack[--x->n], visit, x);
}

/* every root of the plan; demand: first pass */
static void roots(struct px *x, bool demand)
{
	struct gr *gr = x->gr;

	for (uint32_t i = 0; i < gr->g->ninsn; i++) {
		uint32_t bi = gr->g->insn[i].block, need;
		const struct an_callee *c = glue_callee(gr->g, i);
		bool last = i + 1 == gr->g->block[bi].first + gr->g->block[bi].n;

		for (uint32_t k = gr->in[i].op; k < gr->in[i + 1].op; k++)
			for (int j = 0; j < 4; j++)
				if (!(gr->note[k].flags & GN_SLOT2) &&
				    (gr->op[k].op == SEM_REC || gr_has_slot2(&gr->op[k])) &&
				    x->v.src[k][j] != VG_NOREF) {
					if (demand)
						vg_demand(&x->v, x->v.src[k][j], 8);
					else
						trace(x, x->v.src[k][j], i);
				}
		if (!last)
			continue;
		need = c ? gr->m->group[c->group].sum->needs : 0;
		for (int r = 0; r < SEM_NGPR + 1; r++) {
			uint32_t ref = r < SEM_NGPR ? need >> r & 1 ? vg_end(&x->v, bi, r) : VG_NOREF
				       : gr->b[bi].ctl_can && !gr->b[bi].ctl_log ? vg_end(&x->v, bi, SEM_T0)
										 : VG_NOREF;

			if (ref == VG_NOREF)
				continue;
			if (demand)
				vg_demand(&x->v, ref, 8);
			else
				trace(x, ref, i);
		}
	}
}

static const char *reason(const struct gr *gr, const struct plan_log *l, uint32_t *def)
{
	*def = VG_NOREF;
	switch (l->when) {
	case AT_ENTRY:
		return "provided by direct callers, unknown to others";
	case AT_RESYNC:
		return "control arrives from anywhere";
	case AT_STUB:
		return "the callee may have changed it";
	case AT_BLOCK:
		return "cheaper where the paths join";
	case AT_BEFORE:
		return l->what == LOG_SETCC    ? "condition on values that are not known"
		       : l->what == LOG_EA     ? "cheaper than the registers it is made of"
		       : l->what == LOG_TARGET ? "target from memory"
		       : l->what == LOG_HOP    ? "condition on values that are not known"
		       : l->what == LOG_POPF   ? "flags from the stack"
		       : l->what == LOG_TSC    ? "the instruction locks"
					       : "lanes are not modelled";
	}
	if (l->what == LOG_TSC)
		return "the instruction locks";
	for (uint32_t k = gr->in [l->insn].op; k < gr->in[l->insn + 1].op; k++)
		if ((gr->note[k].flags & GN_LOG) &&
		    (gr->op[k].dst == l->reg || (gr->note[k].flags & GN_COUNT)))
			*def = k;
	if (*def == VG_NOREF)
		return "";
	if (gr->note[*def].flags & GN_COMP)
		return "cheaper here than what it is computed from";
	for (uint32_t k = *def + 1; k-- > gr->in[l->insn].op;)
		if (!(gr->note[k].flags & GN_SLOT2) && gr->op[k].op == SEM_LOAD)
			return gr->note[k].slot != GR_NOSLOT ? "loaded from a stack slot others may write"
							     : "loaded from memory";
	return "result of an operation that is not modelled";
}

static const char *const reg_name[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
				       "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static void print_log(FILE *f, struct px *x, const struct plan_log *l)
{
	static const char *const when[] = {"at block", "before", "after", "entry", "resync", "return"};
	const struct an_group *g = x->gr->g;
	uint32_t def, to = 0;
	const char *why = reason(x->gr, l, &def);

	fprintf(f, "    %14s log ", when[l->when]);
	switch (l->what) {
	case LOG_REG:
		fprintf(f, "%s:%u", reg_name[l->reg & 15], l->w);
		break;
	case LOG_PTW:
		fprintf(f, "%s:%u by ptwrite", reg_name[l->reg & 15], l->w);
		break;
	case LOG_SETCC:
		fprintf(f, "condition:1");
		break;
	case LOG_EA:
		fprintf(f, "address:%u", l->w);
		break;
	case LOG_KMASK:
		fprintf(f, "k%u:%u", l->reg, l->w);
		break;
	case LOG_VEC:
		fprintf(f, "vector %u:%u", l->reg, l->w);
		break;
	case LOG_TSC:
		fprintf(f, "time:8");
		break;
	default:
		fprintf(f, "target:%u", l->w == 8 ? 8 : 4);
		break;
	}
	fprintf(f, "  %s", why);
	if (def != VG_NOREF)
		to = *serves(x, def);
	else if (l->what == LOG_REG || l->what == LOG_PTW)
		for (uint32_t i = 0; i < x->v.nin && !to; i++)
			if (x->v.in[i].block == g->insn[l->insn].block && x->v.in[i].var == l->reg)
				to = *serves(x, VG_IN | i);
	if (to)
		fprintf(f, "; for %x", g->insn[to - 1].vaddr);
	fputc('\n', f);
}

static void disassemble(FILE *f, const struct module *m, const struct an_insn *ai)
{
	ZydisDecoder d;
	ZydisFormatter fmt;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	const uint8_t *p = elf_at(m, ai->vaddr, ai->len);
	char text[128] = "?";

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&fmt, ZYDIS_FORMATTER_STYLE_ATT);
	if (p && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, p, ai->len, &in, o)))
		ZydisFormatterFormatInstruction(&fmt, &in, o, in.operand_count_visible, text, sizeof(text),
						ai->vaddr, NULL);
	fprintf(f, "  %8x  %s\n", ai->vaddr, text);
}

static void print_group(FILE *f, struct px *x, const struct plan *p)
{
	const struct an_group *g = x->gr->g;
	uint32_t k = 0;

	fprintf(f, "%s: needs", g->name ? g->name : "(no name)");
	for (int r = 0; r < SEM_NGPR; r++)
		if (g->sum->needs >> r & 1)
			fprintf(f, " %s", reg_name[r]);
	fprintf(f, "; returns %s; stack slots %s\n", g->sum->lifo ? "in order" : "logged",
		x->gr->forward ? "followed" : "not followed (an address of the frame escapes)");
	for (uint32_t i = 0; i < g->ninsn; i++) {
		uint32_t bi = g->insn[i].block;

		if (i == g->block[bi].first)
			fprintf(f, " block %u, loop depth %u\n", bi, g->block[bi].depth);
		for (; k < p->nlog && p->log[k].insn == i && p->log[k].when != AT_AFTER; k++)
			print_log(f, x, &p->log[k]);
		disassemble(f, x->gr->m, &g->insn[i]);
		for (; k < p->nlog && p->log[k].insn == i; k++)
			print_log(f, x, &p->log[k]);
	}
}

int plan_explain(FILE *f, const struct module *m, const struct an_group *g, uint32_t mapflags)
{
	struct px x = {.gr = NULL};
	struct plan *p = NULL;
	int bad, r = -1;

	x.gr = gr_open(m, g, mapflags, &bad);
	if (!x.gr || plan_solve(x.gr) < 0 || !(p = pe_run(x.gr)) || vg_open(&x.v, x.gr) < 0)
		goto out;
	roots(&x, true);
	x.cap = x.gr->nop + x.v.nin + 1;
	x.serves = calloc(x.cap + 1, sizeof(uint32_t));
	x.stack = malloc((x.cap + 1) * sizeof(uint32_t));
	if (!x.serves || !x.stack)
		goto out;
	roots(&x, false);
	print_group(f, &x, p);
	r = 0;
out:
	vg_close(&x.v);
	gr_close(x.gr);
	plan_free(p);
	free(x.serves);
	free(x.stack);
	return r;
}

void plan_count(const struct plan *p, const struct an_group *g, struct plan_stats *s)
{
	static const double weight[] = {1, 10, 100, 1000, 10000};

	for (uint32_t k = 0; k < p->nlog; k++) {
		const struct plan_log *l = &p->log[k];
		uint32_t d = g->block[g->insn[l->insn].block].depth;

		if (l->what >= PLAN_NWHAT)
			continue;
		s->sites[l->what]++;
		s->bytes[l->what] += (l->what == LOG_PTW ? l->w : log_bytes(l)) * weight[d > 4 ? 4 : d];
	}
	for (uint32_t i = 0; i < p->nop; i++)
		switch (p->op[i].op) {
		case SEM_RECVEC:
		case SEM_RECREP:
		case SEM_RECXS:
			i++;
			break;
		case SEM_JCC:
			s->jcc_computed++;
			break;
		case SEM_JCC_LOG:
			s->jcc_logged++;
			break;
		case SEM_JCC_FLOW:
			s->jcc_flow++;
			break;
		case SEM_FLOW:
			s->targets_flow++;
			break;
		case SEM_IJMP:
			s->ijmp_computed++;
			break;
		case SEM_IJMP_LOG:
			s->ijmp_logged++;
			break;
		default:
			break;
		}
	s->ops += p->nop;
}
