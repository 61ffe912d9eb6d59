/* SPDX-License-Identifier: MIT
 *
 * sp.c - the frame: where rsp and copies of it point, what is saved where, and what that proves
 *
 * A forward fixpoint over the blocks on abstract values (sp.h). Results:
 *
 *   lifo     every ret pops this activation's own return address: rsp is entry rsp there, and no
 *            access of known address overwrote the slot
 *   lost     callee-saved registers that do not provably hold their entry values at every exit
 *   slots    loads and stores of the own frame at constant offsets, forwarded only if the frame is
 *            private (no stack address escapes: sp_step.c), by gr_know
 *   RO       loads of bytes that never change
 *
 * A landing pad starts with rsp and the callee-saved registers as at some call of the group: the
 * unwinder restores them from the frame's own tables (psABI 6.2). So does a returns-twice site.
 *
 * Assumed of code that is not analysed: the psABI's calling convention, and that it does not write to the caller's frame
 * without having been given an address of it. The callee-saved registers that it leaves, and rsp, are told (RUN_EV_BACK).
 * What contradicts that is looked for (sp_stray.c); then, and where code has rules of its own anyhow (AN_I_STRAY), return
 * sites log rsp.
 */
#include "graph_order.h"
#include "sp.h"

static const struct av other = {AV_OTHER, 0, 0};

static struct av meet(struct av a, struct av b)
{
	if (a.k == AV_TOP || av_same(a, b))
		return b;
	if (b.k == AV_TOP)
		return a;
	return (struct av){av_stack(a) || av_stack(b) ? AV_TAINT : AV_OTHER, 0, 0};
}

/* all of a state but the unused saves: states are copied all the time */
void sp_copy(struct sp_state *d, const struct sp_state *s)
{
	memcpy(d->r, s->r, sizeof(d->r));
	for (int i = 0; i < s->nsave; i++)
		d->save[i] = s->save[i];
	d->nsave = s->nsave;
	d->seen = s->seen;
}

/* n times eight bytes */
static bool differ(const void *x, const void *y, unsigned n)
{
	uint64_t d = 0, a, b;

	for (unsigned i = 0; i < n; i++) {
		memcpy(&a, (const char *)x + 8 * i, 8);
		memcpy(&b, (const char *)y + 8 * i, 8);
		d |= a ^ b;
	}
	return d != 0;
}

/* Both in order. What is not kept on both ways with the same value is lost, and escapes if it is a stack address. */
static bool meet_saves(struct sp *sp, struct sp_state *d, const struct sp_state *s)
{
	int i = 0, j = 0, n = 0;

	while (i < d->nsave || j < s->nsave) {
		const struct sp_save *x = i < d->nsave ? &d->save[i] : NULL,
				     *y = j < s->nsave ? &s->save[j] : NULL;
		bool first = x && (!y || sp_before(x, y->base, y->off));
		bool second = !first && y && (!x || sp_before(y, x->base, x->off));

		i += !second;
		j += !first;
		if (!first && !second && av_same(x->v, y->v))
			d->save[n++] = *x;
		else
			sp->escape |= (!second && av_stack(x->v)) || (!first && av_stack(y->v));
	}
	i = d->nsave;
	d->nsave = (uint8_t)n;
	return n != i;
}

/* meet_into - d = d meet s; true when d changed */
static bool meet_into(struct sp *sp, struct sp_state *d, const struct sp_state *s)
{
	const unsigned words = sizeof(*s->save) / 8;
	bool ch = false;

	if (!d->seen) {
		sp_copy(d, s);
		d->seen = true;
		return true;
	}
	/* equal parts, which is most: no closer look */
	if (differ(d->r, s->r, SEM_NGPR))
		for (int i = 0; i < SEM_NGPR; i++) {
			struct av v;

			if (av_same(d->r[i], s->r[i]))
				continue;
			v = meet(d->r[i], s->r[i]);
			sp->uneven |= i == SEM_RSP && av_entry(d->r[i]) && av_entry(s->r[i]);
			ch |= !av_same(v, d->r[i]);
			d->r[i] = v;
		}
	if (d->nsave == s->nsave && !differ(d->save, s->save, s->nsave * words))
		return ch;
	return meet_saves(sp, d, s) || ch;
}

void sp_entry(struct sp_state *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < SEM_NGPR; i++)
		s->r[i] = (struct av){i == SEM_RSP ? AV_FRAME : AV_REG, (uint8_t)i, 0};
}

static void any_state(struct sp_state *s)
{
	s->nsave = 0;
	s->seen = false;
	for (int i = 0; i < SEM_NGPR; i++)
		s->r[i] = other;
	s->r[SEM_RSP] = (struct av){AV_TAINT, 0, 0};
}

/* Arguments that point into the frame: in registers (the kernel's fourth is r10, psABI A.2.1), or on
 * the stack, where any slot may be one. The saved address of the incoming arguments (realigned
 * frames keep it) is none of ours. */
static void escape_args(struct sp *sp, const struct sp_state *s)
{
	bool out = false;

	for (int i = 0; i < SEM_NGPR; i++)
		if ((GR_CALLER_SAVED >> i & 1) && i != SEM_R11)
			out |= av_stack(s->r[i]);
	for (int i = 0; i < s->nsave; i++)
		out |= av_stack(s->save[i].v) && !(s->save[i].v.k == AV_FRAME && s->save[i].v.c >= 0);
	sp->escape |= out;
}

/* A callee whose rsp at return is known not to be the convention's (`ret n`) says so in maywrite. One
 * of which nothing is proved is trusted like an opaque one. */
static bool moves_rsp(const struct gr *gr, uint32_t insn)
{
	const struct an_callee *c =
		glue_call(gr->m, gr->g, insn) == CALL_EXT ? NULL : glue_callee(gr->g, insn);

	return c && (gr->m->group[c->group].sum->maywrite >> SEM_RSP & 1);
}

/* what a landing pad may start from */
static void note_call(struct sp *sp, const struct sp_state *s)
{
	if (sp->landing)
		sp->call_changed |= meet_into(sp, &sp->call, s);
}

static void after_call(struct sp *sp, struct sp_state *s, uint32_t insn)
{
	struct gr *gr = sp->gr;
	uint32_t clob = gr_call_clobber(gr, insn);

	escape_args(sp, s);
	if (gr->g->sum->strays && glue_strays(gr->m, gr->g, insn)) {
		sp->escape = true; /* what it pops or leaves is no slot of this frame */
		any_state(s);
		note_call(sp, s);
		return;
	}
	for (int i = 0; i < SEM_NGPR; i++) {
		if (GR_CALLER_SAVED >> i & 1)
			s->r[i] = other; /* an address of the frame that stays there has escaped just now */
		else if (clob >> i & 1)
			s->r[i] = (struct av){av_stack(s->r[i]) ? AV_TAINT : AV_OTHER, 0,
					      0}; /* may have changed */
	}
	if (av_frame(s->r[SEM_RSP]))
		s->r[SEM_RSP].c += 8;
	if (moves_rsp(gr, insn) || glue_strays(gr->m, gr->g, insn))
		s->r[SEM_RSP] = (struct av){AV_TAINT, 0, 0};
	note_call(sp, s);
}

/* does control leave the group at the end of a block? */
static bool leaves(const struct gr *gr, const struct an_block *b, uint8_t flow)
{
	switch (flow) {
	case FLOW_RET:
		return true;
	case FLOW_JMP:
	case FLOW_JCC:
		return b->succ[0] == AN_NONE;
	case FLOW_IJMP:
		return b->table == AN_NONE || !gr->g->table[b->table].exact;
	default:
		return false;
	}
}

/* control leaves for good with the registers in s: what is not as at entry? */
static void leave(struct sp *sp, struct gr_block *b, const struct sp_state *s, bool ret)
{
	sp->saw |= SP_LEAVES;
	for (int i = 0; i < SEM_NGPR; i++)
		if ((GR_CALLEE_SAVED >> i & 1) && !av_same(s->r[i], (struct av){AV_REG, (uint8_t)i, 0}))
			b->sp_lost |= (uint16_t)(1u << i);
	if (!ret)
		return;
	sp->saw |= SP_RETURNS;
	if (av_same(s->r[SEM_RSP], (struct av){AV_FRAME, SEM_RSP, 8}))
		return;
	sp->saw |= SP_NOLIFO;
	if (av_entry(s->r[SEM_RSP]))
		b->sp_lost |= 1u << SEM_RSP;
}

/* run block bi from its in-state; the out-state is left in *s */
void sp_block(struct sp *sp, uint32_t bi, struct sp_state *s)
{
	struct gr *gr = sp->gr;
	struct gr_block *note = &gr->b[bi];
	const struct an_block *b = &gr->g->block[bi];
	uint32_t last = b->first + b->n - 1;
	uint8_t flow = gr->g->insn[last].flow;

	sp_copy(s, &sp->in[bi]);
	memcpy(sp->t, s->r, sizeof(s->r));
	sp->saw = 0;
	sp_ops(sp, s, bi);
	if (av_stack(s->r[SEM_RSP]) && !av_stack(sp->t[SEM_RSP]))
		sp->saw |= SP_SWITCH;
	memcpy(s->r, sp->t, sizeof(s->r));
	note->sp_base = s->r[SEM_RSP].k == AV_ALIGN ? SP_ALIGN : av_frame(s->r[SEM_RSP]) ? SP_ENTRY : 0;
	note->sp_off = s->r[SEM_RSP].c;
	note->sp_lost = 0;
	if (flow == FLOW_CALL || flow == FLOW_ICALL) {
		after_call(sp, s, last);
	} else if (flow == FLOW_SYSCALL) {
		escape_args(sp, s);
		s->r[SEM_RAX] = s->r[SEM_RCX] = s->r[SEM_R11] = other;
	} else if (leaves(gr, b, flow)) {
		leave(sp, note, s, flow == FLOW_RET);
	}
	note->sp_saw = sp->saw;
	sp->switches |= (sp->saw & SP_SWITCH) != 0;
	sp->kept |= (sp->saw & SP_KEPT) != 0;
}

static void flow_to(struct sp *sp, uint32_t to, const struct sp_state *s)
{
	/* what runs into live code from behind a call that does not return is padding, or never runs */
	if (to != AN_NONE && !(sp->dead && sp->gr->b[to].live) && meet_into(sp, &sp->in[to], s))
		gr_wait(sp->gr, to);
}

/* Targets see the meet of all jumps to them: only what that loses concerns them. */
static void through_table(struct sp *sp, uint32_t table, const struct sp_state *s)
{
	struct gr *gr = sp->gr;
	const struct an_table *t = &gr->g->table[table];
	struct sp_state *all = &sp->class[gr->class[table]];

	if (meet_into(sp, all, s))
		for (uint32_t k = 0; k < t->ntarget; k++)
			flow_to(sp, t->target[k], all);
}

/* Does control come back to behind the block? Where a call of a group that does not return is followed by
 * other code, that has a frame of its own. What is reached no other way is dead code of this frame. */
static bool goes_on(const struct sp *sp, const struct an_block *b)
{
	uint32_t last = b->first + b->n - 1;

	return sp->dead || sp->gr->g->insn[last].flow != FLOW_CALL || !gr_dead_call(sp->gr, last);
}

static void to_landings(struct sp *sp)
{
	const struct an_group *g = sp->gr->g;

	sp->call_changed = false;
	for (uint32_t i = 0; i < g->nblock && sp->landing && sp->call.seen; i++)
		if ((g->block[i].flags & AN_B_LANDING) && meet_into(sp, &sp->in[i], &sp->call))
			gr_wait(sp->gr, i);
}

/* true if there were any */
static bool drop_constants(struct sp_state *s)
{
	int n = 0, had = s->nsave;

	for (int i = 0; i < had; i++)
		if (s->save[i].v.k < AV_MOD)
			s->save[n++] = s->save[i];
	s->nsave = (uint8_t)n;
	return n != had;
}

/* A constant kept in a frame whose address got out may be another value when it is read back. Once both are seen
 * constants are dropped from where they are, and not kept any more. */
static void no_constants(struct sp *sp)
{
	const struct an_group *g = sp->gr->g;

	sp->nokeep = true;
	drop_constants(&sp->call);
	for (uint32_t i = 0; i < g->ntable; i++)
		if (sp->class[i].seen)
			drop_constants(&sp->class[i]);
	for (uint32_t i = 0; i < g->nblock; i++)
		if (sp->in[i].seen && (drop_constants(&sp->in[i]) || (sp->gr->b[i].sp_saw & SP_KEPT)))
			gr_wait(sp->gr, i);
}

/* Comes to an end: values get worse, and there is little that is worse than what is known at first. */
static void fixpoint(struct sp *sp)
{
	struct gr *gr = sp->gr;
	struct sp_state s;

	do {
		to_landings(sp);
		for (uint32_t i; (i = gr_first(gr)) != AN_NONE;) {
			const struct an_block *b = &gr->g->block[i];

			if (!sp->in[i].seen)
				continue;
			sp_block(sp, i, &s);
			flow_to(sp, b->succ[0], &s);
			if (b->succ[1] != AN_NONE && goes_on(sp, b))
				flow_to(sp, b->succ[1], &s);
			if (b->table != AN_NONE)
				through_table(sp, b->table, &s);
			if (sp->escape && sp->kept && !sp->nokeep)
				no_constants(sp);
		}
	} while (sp->call_changed);
}

/* seed - the state at the entries. First those that nothing in the group leads to. An entry in the
 * middle of a frame (exception handlers of interpreters, or an address that only looks like one) is
 * entered with that frame: what leads to it stands. */
static void seed(struct sp *sp, bool inner)
{
	const struct an_group *g = sp->gr->g;
	struct sp_state s;

	sp_entry(&s);
	for (uint32_t i = 0; i < g->nblock; i++) {
		const struct av *rsp = &sp->in[i].r[SEM_RSP];

		if (!(g->block[i].flags & AN_B_ENTRY) || inner != (g->block[i].npred > 0))
			continue;
		if (sp->in[i].seen && av_frame(*rsp) && !(rsp->k == AV_FRAME && rsp->c == 0))
			continue;
		meet_into(sp, &sp->in[i], &s);
		gr_wait(sp->gr, i);
	}
}

/* the code behind calls that do not return */
static void dead_code(struct sp *sp)
{
	struct gr *gr = sp->gr;
	bool any = false;

	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		gr->b[i].live = sp->in[i].seen;
		if (!gr->b[i].live || goes_on(sp, &gr->g->block[i]))
			continue;
		gr_wait(gr, i);
		any = true;
	}
	sp->dead = true;
	if (any)
		fixpoint(sp);
}

static void solve(struct sp *sp)
{
	seed(sp, false);
	fixpoint(sp);
	seed(sp, true);
	fixpoint(sp);
	dead_code(sp);
}

static struct sp *open_sp(struct gr *gr)
{
	struct sp *sp = scratch(sizeof(*sp));
	uint32_t n = gr->g->nblock + gr->g->ntable + 1;

	if (!sp)
		return NULL;
	*sp = (struct sp){.gr = gr, .in = scratch(n * sizeof(*sp->in))};
	if (!sp->in)
		return NULL;
	sp->class = sp->in + gr->g->nblock;
	for (uint32_t i = 0; i < n; i++)
		sp->in[i].seen = false; /* states are large; what is not seen is not looked at */
	for (uint32_t i = 0; i < gr->g->nblock; i++)
		sp->landing |= (gr->g->block[i].flags & AN_B_LANDING) != 0;
	for (int r = 0; r < 64; r++)
		sp->t[r] = other;
	return sp;
}

/* what the blocks' last visits have seen, which were from the states that stand */
static void verdict(struct sp *sp)
{
	struct gr *gr = sp->gr;
	struct sp_state s;

	gr->lifo = true;
	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		bool seen = sp->in[i].seen;

		if (!seen)
			any_state(&sp->in[i]);
		if (!seen || sp->unsettled)
			sp_block(sp, i, &s);
		/* code no known edge reaches proves nothing, but a ret in it is checked by the decoder */
		if (!seen || !(gr->b[i].sp_saw & SP_LEAVES))
			continue;
		gr->lost |= gr->b[i].sp_lost;
		if (gr->b[i].sp_saw & SP_NOLIFO)
			gr->lifo = false;
	}
	gr->lifo = gr->lifo && !sp->retslot;
	gr->forward = !sp->escape;
}

int sp_run(struct gr *gr)
{
	struct scratch_mark mark = scratch_mark();
	struct sp *sp = open_sp(gr);

	if (!sp)
		return -1;
	solve(sp);
	gr->g->sum->strays |= sp_astray(sp);
	verdict(sp);
	sp_notes(sp);
	scratch_release(mark);
	return 0;
}
