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
	memcpy(d->save, s->save, s->nsave * sizeof(*d->save));
	d->nsave = s->nsave;
	d->seen = s->seen;
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
	bool ch = false;

	if (!d->seen) {
		sp_copy(d, s);
		d->seen = true;
		return true;
	}
	/* equal parts, which is most: no closer look */
	if (memcmp(d->r, s->r, sizeof(d->r)))
		for (int i = 0; i < SEM_NGPR; i++) {
			struct av v;

			if (av_same(d->r[i], s->r[i]))
				continue;
			v = meet(d->r[i], s->r[i]);
			sp->uneven |= i == SEM_RSP && d->r[i].k == AV_REG && s->r[i].k == AV_REG;
			ch |= !av_same(v, d->r[i]);
			d->r[i] = v;
		}
	if (d->nsave == s->nsave && !memcmp(d->save, s->save, s->nsave * sizeof(*s->save)))
		return ch;
	return meet_saves(sp, d, s) || ch;
}

static void entry_state(struct sp_state *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < SEM_NGPR; i++)
		s->r[i] = (struct av){AV_REG, (uint8_t)i, 0};
}

static void any_state(struct sp_state *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < SEM_NGPR; i++)
		s->r[i] = other;
	s->r[SEM_RSP] = (struct av){AV_TAINT, 0, 0};
}

/* Arguments that point into the frame: in registers (the kernel's fourth is r10, psABI A.2.1), or on
 * the stack, where any slot may be one. The saved address of the incoming arguments (realigned
 * frames keep it) is none of ours. */
static void escape_args(struct sp *sp, const struct sp_state *s)
{
	for (int i = 0; i < SEM_NGPR; i++)
		if ((GR_CALLER_SAVED >> i & 1) && i != SEM_R11 && av_stack(s->r[i]))
			sp->escape = true;
	for (int i = 0; i < s->nsave; i++)
		if (av_stack(s->save[i].v) && !(s->save[i].v.k == AV_REG && s->save[i].v.c >= 0))
			sp->escape = true;
}

/* A callee whose rsp at return is known not to be the convention's (`ret n`) says so in maywrite. One
 * of which nothing is proved is trusted like an opaque one. */
static bool moves_rsp(const struct gr *gr, uint32_t insn)
{
	const struct an_callee *c =
		glue_call(gr->m, gr->g, insn) == CALL_EXT ? NULL : glue_callee(gr->g, insn);

	return c && (gr->m->group[c->group].sum->maywrite >> SEM_RSP & 1);
}

static void after_call(struct sp *sp, struct sp_state *s, uint32_t insn)
{
	struct gr *gr = sp->gr;
	uint32_t clob = gr_call_clobber(gr, insn);

	escape_args(sp, s);
	if (gr->g->sum->strays && glue_strays(gr->m, gr->g, insn)) {
		sp->escape = true; /* what it pops or leaves is no slot of this frame */
		any_state(s);
		sp->call_changed |= meet_into(sp, &sp->call, s);
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
	sp->call_changed |= meet_into(sp, &sp->call, s);
}

/* leave - control leaves for good with the registers in s: what is not as at entry? */
static void leave(struct sp *sp, const struct sp_state *s, bool ret)
{
	struct gr *gr = sp->gr;

	for (int i = 0; i < SEM_NGPR; i++)
		if ((GR_CALLEE_SAVED >> i & 1) && !av_same(s->r[i], (struct av){AV_REG, (uint8_t)i, 0}))
			gr->lost |= 1u << i;
	if (!ret || av_same(s->r[SEM_RSP], (struct av){AV_REG, SEM_RSP, 8}))
		return;
	gr->lifo = false;
	if (s->r[SEM_RSP].k == AV_REG)
		gr->lost |= 1u << SEM_RSP;
}

bool sp_leaves(const struct gr *gr, uint32_t bi, bool *ret)
{
	const struct an_block *b = &gr->g->block[bi];
	uint32_t last = b->first + b->n - 1;

	*ret = gr->g->insn[last].flow == FLOW_RET;
	switch (gr->g->insn[last].flow) {
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

/* run block bi from its in-state; the out-state is left in *s */
void sp_block(struct sp *sp, uint32_t bi, struct sp_state *s)
{
	struct gr *gr = sp->gr;
	const struct an_block *b = &gr->g->block[bi];
	uint32_t last = b->first + b->n - 1;
	uint8_t flow = gr->g->insn[last].flow;

	sp_copy(s, &sp->in[bi]);
	memcpy(sp->t, s->r, sizeof(s->r));
	for (uint32_t i = b->first; i <= last; i++)
		sp_insn(sp, s, i);
	sp->switches |= av_stack(s->r[SEM_RSP]) && !av_stack(sp->t[SEM_RSP]);
	memcpy(s->r, sp->t, sizeof(s->r));
	gr->b[bi].sp_base = s->r[SEM_RSP].k == AV_ALIGN ? SP_ALIGN : av_frame(s->r[SEM_RSP]) ? SP_ENTRY : 0;
	gr->b[bi].sp_off = s->r[SEM_RSP].c;
	if (flow == FLOW_CALL || flow == FLOW_ICALL) {
		after_call(sp, s, last);
	} else if (flow == FLOW_SYSCALL) {
		escape_args(sp, s);
		s->r[SEM_RAX] = s->r[SEM_RCX] = s->r[SEM_R11] = other;
	}
}

static void flow_to(struct sp *sp, uint32_t to, const struct sp_state *s, bool *again)
{
	/* what runs into live code from behind a call that does not return is padding, or never runs */
	if (to != AN_NONE && !(sp->dead && sp->gr->b[to].live) && meet_into(sp, &sp->in[to], s))
		*again = true;
}

/* Targets see the meet of all jumps to them: only what that loses concerns them. */
static bool through_table(struct sp *sp, uint32_t table, const struct sp_state *s)
{
	struct gr *gr = sp->gr;
	const struct an_table *t = &gr->g->table[table];
	struct sp_state *all = &sp->class[gr->class[table]];
	bool again = false;

	if (!meet_into(sp, all, s))
		return false;
	for (uint32_t k = 0; k < t->ntarget; k++) {
		bool ch = false;

		flow_to(sp, t->target[k], all, &ch);
		if (ch)
			gr->b[t->target[k]].visited = 1;
		again |= ch;
	}
	return again;
}

/* Does control come back to behind the block? Where a call of a group that does not return is followed by
 * other code, that has a frame of its own. What is reached no other way is dead code of this frame. */
static bool goes_on(const struct sp *sp, const struct an_block *b)
{
	return !gr_dead_call(sp->gr, b->first + b->n - 1) || sp->dead;
}

/* A constant kept in a frame whose address got out may be another value when it is read back. Once both are seen
 * what was found counts for nothing. */
static bool in_vain(const struct sp *sp)
{
	return sp->escape && sp->kept && !sp->nokeep;
}

static void fixpoint(struct sp *sp)
{
	struct gr *gr = sp->gr;
	struct sp_state s;
	bool again = true;

	for (int round = 0; again && round < 200; round++) {
		again = false;
		sp->call_changed = false;
		for (uint32_t i = 0; i < gr->g->nblock; i++) {
			const struct an_block *b = &gr->g->block[i];

			if (in_vain(sp))
				return;
			if (b->flags & AN_B_LANDING && sp->call.seen && meet_into(sp, &sp->in[i], &sp->call))
				gr->b[i].visited = 1;
			if (!sp->in[i].seen || !gr->b[i].visited)
				continue;
			gr->b[i].visited = 0;
			sp_block(sp, i, &s);
			for (int k = 0; k < 2; k++) {
				bool ch = false;

				if (k == 1 && !goes_on(sp, b))
					continue;

				flow_to(sp, b->succ[k], &s, &ch);
				if (ch)
					gr->b[b->succ[k]].visited = 1;
				again |= ch;
			}
			if (b->table != AN_NONE)
				again |= through_table(sp, b->table, &s);
		}
		again |= sp->call_changed;
	}
	sp->unsettled |= again;
	sp->escape |= again;
	if (again) /* know nothing */
		for (uint32_t i = 0; i < gr->g->nblock; i++)
			any_state(&sp->in[i]);
}

/* seed - the state at the entries. First those that nothing in the group leads to. An entry in the
 * middle of a frame (exception handlers of interpreters, or an address that only looks like one) is
 * entered with that frame: what leads to it stands. */
static void seed(struct sp *sp, bool inner)
{
	struct sp_state s;

	for (uint32_t i = 0; i < sp->gr->g->nblock; i++) {
		const struct an_block *b = &sp->gr->g->block[i];
		const struct av *rsp = &sp->in[i].r[SEM_RSP];

		sp->gr->b[i].visited = 0;
		if (!(b->flags & AN_B_ENTRY) || inner != (b->npred > 0))
			continue;
		if (sp->in[i].seen && av_frame(*rsp) && !(rsp->k == AV_REG && rsp->c == 0))
			continue;
		entry_state(&s);
		meet_into(sp, &sp->in[i], &s);
		sp->gr->b[i].visited = 1;
	}
}

/* the code behind calls that do not return */
static void dead_code(struct sp *sp)
{
	struct gr *gr = sp->gr;

	for (uint32_t i = 0; i < gr->g->nblock; i++)
		gr->b[i].live = sp->in[i].seen;
	sp->dead = true;
	for (uint32_t i = 0; i < gr->g->nblock; i++)
		gr->b[i].visited =
			gr->b[i].live && gr_dead_call(gr, gr->g->block[i].first + gr->g->block[i].n - 1);
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

static void none_seen(struct sp *sp)
{
	/* states are large; what is not seen is not looked at */
	for (uint32_t i = 0; i < sp->gr->g->nblock + sp->gr->g->ntable + 1; i++)
		sp->in[i].seen = false;
}

static void solve_again(struct sp *sp)
{
	none_seen(sp);
	memset(&sp->call, 0, sizeof(sp->call));
	sp->call_changed = sp->escape = sp->retslot = sp->dead = sp->unsettled = false;
	sp->nokeep = true;
	solve(sp);
}

int sp_run(struct gr *gr)
{
	struct scratch_mark mark = scratch_mark();
	struct sp *sp = scratch_zero(sizeof(*sp));
	struct sp_state s;
	bool ret;

	if (!sp)
		return -1;
	sp->gr = gr;
	sp->in = scratch((gr->g->nblock + gr->g->ntable + 1) * sizeof(*sp->in));
	if (!sp->in)
		return -1;
	none_seen(sp);
	sp->class = sp->in + gr->g->nblock;
	for (int r = 0; r < 64; r++)
		sp->t[r] = other;
	solve(sp);
	if (in_vain(sp))
		solve_again(sp);
	gr->g->sum->strays |= sp_astray(sp);
	gr->lifo = true;
	for (uint32_t i = 0; i < gr->g->nblock; i++) {
		bool seen = sp->in[i].seen, out = sp_leaves(gr, i, &ret);

		if (!seen)
			any_state(&sp->in[i]);
		if (!seen || out || sp->unsettled) /* the others have been run from these very states */
			sp_block(sp, i, &s);
		/* code no known edge reaches proves nothing, but a ret in it is checked by the decoder */
		if (seen && out)
			leave(sp, &s, ret);
	}
	sp_notes(sp);
	gr->lifo = gr->lifo && !sp->retslot;
	gr->forward = !sp->escape;
	for (uint32_t i = 0; i < gr->g->nblock; i++)
		gr->b[i].visited = 0;
	scratch_release(mark);
	return 0;
}
