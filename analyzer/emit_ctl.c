/* SPDX-License-Identifier: MIT
 *
 * emit_ctl.c - how control enters and leaves the copy
 *
 *   original text                     copy
 *   entry:  jmp ───────────▶ stub:  mov %r15,%gs:R15; mov %gs:LP,%r15; mark; needed registers
 *                            body:  …
 *   site:   call f ◀──────────────  jmp site                        (f's direct entry, or opaque f)
 *           jmp ───────────▶ stub:  mov %gs:LP,%r15; …
 *                            ret:   mov %r15,%gs:LP; mov %gs:R15,%r15; ret
 *
 * An emulated call (its bytes in the original text are needed for a patch) is
 *   pushq return_address(%rip); jmp target       (target read before the push: it may use rsp)
 *
 * The exact sequences are the table in README.md.
 */
#include <string.h>
#include "emit.h"
#include "nondet.h"
#include "sem_eval.h"

void commit(struct em *e)
{
	code_advance(&e->c, e->c.off);
	e->c.off = 0;
}

/* to the offset at which block `to` begins */
static void settle(struct em *e, uint32_t to)
{
	code_advance(&e->c, (int32_t)(e->c.off - e->off_in[to]));
	e->c.off = e->off_in[to];
}

void flow_begin(struct em *e, uint32_t b)
{
	if (!e->flow)
		return;
	e->flow[b].at = code_label(&e->c);
	code_here(&e->c, e->flow[b].at);
}

void flow_end(struct em *e, uint32_t b)
{
	if (!e->flow)
		return;
	e->flow[b].end = code_label(&e->c);
	code_here(&e->c, e->flow[b].end);
}

/* r15 is the program's from here on */
static void give_back(struct em *e)
{
	code_gs(&e->c, 0x8b, R15, TCB_R15, true);
	e->c.cur.flags |= MAP_X_R15_REAL;
}

static void mark(struct em *e, unsigned kind, uint32_t site)
{
	struct code *c = &e->c;

	code_insn(c);
	code_bytes(c, "\x41\xc7", 2); /* movl $imm32,off(%r15) */
	code_r15mem(c, 0, e->c.off);
	c->fix = code_more(c->fix, c->nfix, &c->capfix, sizeof(*c->fix));
	c->fix[c->nfix++] = (struct map_fixup){c->n, MAP_FIX_MARK};
	code_u32(c, kind | site << RUN_MARK_ID_SHIFT);
	e->c.off += RUN_MARK_SITE_BYTES; /* what comes next overwrites the fourth byte */
}

static void rsp_log(struct em *e)
{
	code_insn(&e->c);
	code_bytes(&e->c, "\x49\x89", 2); /* mov %rsp,off(%r15) */
	code_r15mem(&e->c, X_RSP, e->c.off);
	e->c.off += 8;
}

static uint32_t new_site(struct em *e, uint32_t b, uint32_t kind)
{
	e->site = code_more(e->site, e->nsite, &e->capsite, sizeof(*e->site));
	e->site[e->nsite] = (struct emit_site){b, kind};
	return e->nsite++;
}

static void stub_logs(struct em *e, uint32_t b)
{
	for (uint32_t i = e->logfirst[b]; i < e->logfirst[b + 1]; i++) {
		uint8_t w = e->p->log[i].when;

		if (w == AT_ENTRY || w == AT_RESYNC || w == AT_STUB)
			emit_log(e, &e->p->log[i], NULL, e->lv->bin[b]); /* registers */
	}
}

/* ENTRY, or ENTRYX where rsp is not what the last call made it; x, out of line: 8 bytes more */
static void entry_marks(struct em *e, uint32_t b)
{
	struct code *c = &e->c;
	uint32_t site = new_site(e, b, MAP_SITE_ENTRY);
	struct xentry *x;

	if (e->lv->bin[b] & FLAGS_BIT) {
		mark(e, RUN_MARK_ENTRYX, site);
		rsp_log(e);
		return;
	}
	e->xent = code_more(e->xent, e->nxent, &e->capxent, sizeof(*e->xent));
	x = &e->xent[e->nxent++];
	*x = (struct xentry){code_label(c), code_label(c), site, e->g->insn[e->g->block[b].first].vaddr};
	code_gs(c, 0x39, X_RSP, TCB_EXPECT, true); /* cmp %rsp,%gs:EXPECT */
	code_jcc(c, 5, x->label);
	mark(e, RUN_MARK_ENTRY, site);
	code_here(c, x->join);
}

/* the call before this return site leads to a group that returns with the log pointer in r15 */
static bool comes_kept(const struct em *e, const struct an_block *k)
{
	const struct an_callee *c = k->first ? glue_callee(e->g, k->first - 1) : NULL;

	return c && e->m->group[c->group].sum->keeps;
}

/* Whoever comes to a return site but from a ret in a copy is not followed: what the site relies on is told (RUN_EV_BACK). Leaves
 * r15 the log pointer.
 *
 *   lea -7(%rsp),%r15; cmp %r15,%gs:EXPECT        (ret: lea 1(%rsp),%r15; mov %r15,%gs:EXPECT)
 *   jne x ──────────▶ lea join(%rip),%r15; mov %r15,%gs:RESUME; jmp *%gs:BACK
 *   mov %gs:LP,%r15
 *   join: …
 *
 * Where flags are in use, without them, in rcx: mov %rcx,%gs:SPILL0; mov %gs:EXPECT,%rcx; not %rcx; lea -6(%rsp,%rcx),%rcx;
 * jrcxz 1f; jmp x; 1: mov %gs:SPILL0,%rcx. (not gives -EXPECT - 1.)
 */
static void as_expected_rcx(struct em *e, uint32_t x)
{
	struct code *c = &e->c;
	uint32_t yes = code_label(c);

	code_gs(c, 0x89, X_RCX, TCB_SPILL0, true);
	c->cur.spill[0] = X_RCX;
	code_gs(c, 0x8b, X_RCX, TCB_EXPECT, true);
	code_insn(c);
	code_bytes(c, "\x48\xf7\xd1", 3); /* not %rcx */
	code_insn(c);
	code_bytes(c, "\x48\x8d\x4c\x0c\xfa", 5); /* lea -6(%rsp,%rcx),%rcx */
	code_insn(c);
	code_byte(c, 0xe3); /* jrcxz */
	c->lr = code_more(c->lr, c->nlr, &c->caplr, sizeof(*c->lr));
	c->lr[c->nlr++] = (struct lref){c->n, yes, true};
	code_byte(c, 0);
	code_jmp(c, x);
	code_here(c, yes);
	code_gs(c, 0x8b, X_RCX, TCB_SPILL0, true);
	c->cur.spill[0] = NOREG;
}

static void comes_back(struct em *e, uint32_t b)
{
	bool flags = e->lv->bin[b] & FLAGS_BIT;
	struct code *c = &e->c;
	struct xentry *x;

	e->xback = code_more(e->xback, e->nxback, &e->capxback, sizeof(*e->xback));
	x = &e->xback[e->nxback++];
	*x = (struct xentry){code_label(c), code_label(c), flags, e->g->insn[e->g->block[b].first].vaddr};
	c->cur.flags = MAP_X_STUB;
	if (flags) {
		as_expected_rcx(e, x->label);
	} else {
		code_insn(c);
		code_bytes(c, "\x4c\x8d\x7c\x24\xf9", 5); /* lea -7(%rsp),%r15 */
		code_gs(c, 0x39, R15, TCB_EXPECT, true);
		code_jcc(c, 5, x->label);
	}
	code_gs(c, 0x8b, R15, TCB_LP, true);
	code_here(c, x->join);
}

/* Stub of block b; inl: the body follows, else jump to it. */
void ctl_stub(struct em *e, uint32_t b, bool inl)
{
	const struct an_block *k = &e->g->block[b];
	uint32_t vaddr = e->g->insn[k->first].vaddr;
	struct code *c = &e->c;
	uint8_t s = e->stub[b];
	bool direct =
		s == STUB_RELOAD && (k->flags & AN_B_RETURN) && !(k->flags & (AN_B_TARGET | AN_B_ANYTARGET));

	state(e, vaddr);
	c->cur.flags = MAP_X_R15_REAL | MAP_X_STUB;
	code_here(c, e->stubl[b]);
	c->off = 0;
	if (!direct)
		code_gs(c, 0x89, R15, TCB_R15, true);
	if (s == STUB_RETURN &&
	    !(e->m->mapflags & MAP_F_SPARSE)) /* what is recorded for a replay has no log */
		comes_back(e, b);
	else if (!direct || !comes_kept(e, k))
		code_gs(c, 0x8b, R15, TCB_LP, true);
	c->cur.flags = MAP_X_STUB;
	if (e->chk_stub[b])
		space_check(e, vaddr, e->lv->bin[b]);
	if (s == STUB_RETURN) {
		code_insn(c);
		code_bytes(c, "\x41\xc6", 2); /* movb $mark,(%r15) */
		code_r15mem(c, 0, e->c.off);
		code_byte(c, RUN_MARK_RET | (b & 0x1f) << 3);
		e->c.off = 1;
	} else if (s == STUB_ENTRY) {
		entry_marks(e, b);
	} else if (s == STUB_RESYNC) {
		mark(e, RUN_MARK_RESYNC, new_site(e, b, MAP_SITE_RESYNC));
		rsp_log(e);
	}
	stub_logs(e, b);
	settle(e, b);
	if (!inl)
		code_jmp(c, e->body[b]);
	state(e, vaddr);
}

/* to block `to` at the end of block b; nothing where it is next */
void ctl_goto(struct em *e, uint32_t b, uint32_t to)
{
	if (to != b + 1 || e->lid[b] != e->lid[to])
		code_jmp(&e->c, rot_label(e, b, to));
}

/* leaves for opaque code at `target`; r15 committed */
static void leave(struct em *e, uint32_t target)
{
	struct code *c = &e->c;

	code_gs(c, 0x89, R15, TCB_LP, true);
	code_gs(c, 0x89, X_RSP, TCB_EXPECT, true);
	give_back(e);
	code_jmp_mod(c, target);
}

/* the jump or condition `cc` to code outside the group */
static void tail(struct em *e, int cc, uint32_t i)
{
	const struct an_callee *t = glue_callee(e->g, i);
	uint32_t target = e->g->insn[i].target;
	struct leave *v;

	if (t) {
		code_ref(&e->c, cc, t->group, t->block);
		return;
	}
	if (cc < 0) {
		leave(e, target);
		return;
	}
	e->leave = code_more(e->leave, e->nleave, &e->capleave, sizeof(*e->leave));
	v = &e->leave[e->nleave++];
	*v = (struct leave){code_label(&e->c), target, target};
	code_jcc(&e->c, cc, v->label);
}

static void push_return(struct em *e, uint32_t vaddr)
{
	struct code *c = &e->c;
	struct pool *p;

	e->pool = code_more(e->pool, e->npool, &e->cappool, sizeof(*e->pool));
	p = &e->pool[e->npool++];
	*p = (struct pool){code_label(c), vaddr};
	code_insn(c);
	code_bytes(c, "\xff\x35", 2);
	c->lr = code_more(c->lr, c->nlr, &c->caplr, sizeof(*c->lr));
	c->lr[c->nlr++] = (struct lref){c->n, p->label, false};
	code_u32(c, 0);
}

/* mov %r15,%gs:LP; lea -8(%rsp),%r15; mov %r15,%gs:EXPECT */
static void expect_call(struct em *e, bool lp)
{
	struct code *c = &e->c;

	if (lp)
		code_gs(c, 0x89, R15, TCB_LP, true);
	code_insn(c);
	code_bytes(c, "\x4c\x8d\x7c\x24\xf8", 5);
	code_gs(c, 0x89, R15, TCB_EXPECT, true);
}

/* lea at(%rsp),%r15; mov %r15,%gs:EXPECT: as where a ret leads, or would */
static void expect_return(struct em *e, int32_t at)
{
	struct code *c = &e->c;

	code_insn(c);
	if (at == (int8_t)at) {
		code_bytes(c, "\x4c\x8d\x7c\x24", 4);
		code_byte(c, (uint8_t)at);
	} else {
		code_bytes(c, "\x4c\x8d\xbc\x24", 4);
		code_u32(c, (uint32_t)at);
	}
	code_gs(c, 0x89, R15, TCB_EXPECT, true);
}

/* target of an indirect call to tcb.target; r15 has been given back */
static void target_early(struct em *e, const struct dec *d)
{
	struct code *c = &e->c;
	int r = d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? dec_gpr(d->op[0].reg.value) : -1;

	if (r == X_RSP) {
		c->fail = "call through rsp";
	} else if (r >= 0) {
		code_gs(c, 0x89, r, TCB_TARGET, true);
	} else {
		emit_load_operand(e, d, R15);
		c->cur.flags &= ~MAP_X_R15_REAL;
		code_gs(c, 0x89, R15, TCB_TARGET, true);
	}
}

static void call(struct em *e, const struct dec *d, uint32_t i)
{
	const struct an_insn *n = &e->g->insn[i];
	const struct an_callee *t = n->flow == FLOW_CALL ? glue_callee(e->g, i) : NULL;
	bool emul = e->lv->emul && e->lv->emul[i];
	struct code *c = &e->c;

	commit(e);
	if (t) {
		if (!emul) {
			code_jmp_mod(c, n->vaddr);
			return;
		}
		push_return(e, n->vaddr + n->len);
		state(e, e->m->group[t->group].insn[e->m->group[t->group].block[t->block].first].vaddr);
		code_ref(c, -1, t->group, t->block);
		return;
	}
	if (emul && n->flow == FLOW_ICALL) {
		code_gs(c, 0x89, R15, TCB_LP, true);
		give_back(e);
		target_early(e, d);
		c->cur.flags &= ~MAP_X_R15_REAL;
		expect_call(e, false);
	} else {
		expect_call(e, true);
	}
	give_back(e);
	if (!emul) {
		code_jmp_mod(c, n->vaddr);
		return;
	}
	push_return(e, n->vaddr + n->len);
	if (n->flow == FLOW_CALL) {
		c->cur.vaddr = n->target;
		c->ahead = 0;
		code_jmp_mod(c, n->target);
	} else {
		c->cur.vaddr = AN_NONE;
		c->ahead = 0;
		c->cur.flags |= MAP_X_TARGET;
		code_gs(c, 0xff, 4, TCB_TARGET, false);
	}
}

/* cmpl $half of `to`'s run-time address,slot + at(%rip) */
static void compare_half(struct em *e, uint32_t slot, uint32_t at, uint32_t to)
{
	struct code *c = &e->c;

	code_insn(c);
	code_bytes(c, "\x81\x3d", 2);
	code_mod32(c, slot + at, 4);
	c->fix = code_more(c->fix, c->nfix, &c->capfix, sizeof(*c->fix));
	c->fix[c->nfix++] = (struct map_fixup){c->n, at ? MAP_FIX_HI32 : MAP_FIX_LO32};
	code_u32(c, to);
}

/* A stub whose slot is expected to hold the entry of group t: if it does, to t's direct entry. In halves,
 * since no register is free: the program may pass what it likes in any. Flags are not passed (live.c). */
static void linked(struct em *e, const struct dec *d, const struct an_callee *t)
{
	const struct an_group *g = &e->m->group[t->group];
	uint32_t slot = d->vaddr + d->in.length + (uint32_t)d->op[0].mem.disp.value;
	uint32_t to = g->insn[g->block[t->block].first].vaddr;
	struct code *c = &e->c;
	uint32_t other = code_label(c), ahead = c->ahead; /* the slot's address, for --verify */

	compare_half(e, slot, 0, to);
	code_jcc(c, 5, other);
	compare_half(e, slot, 4, to);
	code_jcc(c, 5, other);
	code_insn(c);
	code_bytes(c, "\x41\xc6", 2); /* movb $mark,(%r15) */
	code_r15mem(c, 0, 0);
	code_byte(c, RUN_MARK_LINK);
	c->off = 1;
	c->ahead = ahead + 1;
	commit(e);
	state(e, to); /* with its mark the jump has happened */
	code_ref(c, -1, t->group, t->block);
	code_here(c, other);
	state(e, d->vaddr);
	c->ahead = ahead;
	e->logbytes++;
}

/* the block ends with a jump that the decoder takes for a return to another stack (SEM_RETX) */
static bool switches(const struct em *e, uint32_t b)
{
	uint32_t k = e->p->blockop[b];

	while (k < e->p->nop && (e->p->op[k].op <= SEM_BLOCK || e->p->op[k].op == SEM_RMARK))
		k += 1 + sem_has_slot(e->p->op[k].op);
	return k < e->p->nop && e->p->op[k].op == SEM_RETX;
}

static void ijump(struct em *e, const struct dec *d, uint32_t b, uint32_t live)
{
	enum jumpkind k = glue_jump(e->m, e->g, b);
	struct code *c = &e->c;
	struct scratch s;

	commit(e);
	if (k == JUMP_LEAVES && glue_link(e->g, b))
		linked(e, d, glue_link(e->g, b));
	if (k != JUMP_PLAIN) {
		code_gs(c, 0x89, R15, TCB_LP, true);
		if (k == JUMP_LEAVES && switches(e, b))
			expect_return(e, -7);
		else if (k != JUMP_RELOAD)
			code_gs(c, 0x89, X_RSP, TCB_EXPECT, true);
		give_back(e);
		flow_begin(e, b);
		emit_bytes(e, d, d->b);
	} else if (!r15_named(d)) {
		flow_begin(e, b);
		emit_bytes(e, d, d->b);
	} else if (d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		flow_begin(e, b);
		code_gs(c, 0xff, 4, TCB_R15, false);
	} else {
		s = scratch_get(e, dec_gprs(d), live);
		code_gs(c, 0x8b, s.reg, TCB_R15, true);
		emit_load_operand(e, d, s.reg);
		code_gs(c, 0x89, s.reg, TCB_TARGET, true);
		scratch_put(e, s);
		flow_begin(e, b);
		code_gs(c, 0xff, 4, TCB_TARGET, false);
	}
	flow_end(e, b);
}

/* The runtime writes the mark and returns to resume with room or not, so a check follows. */
static void syscall_insn(struct em *e, uint32_t b, const struct dec *d)
{
	uint32_t next = d->vaddr + d->in.length, resume, to = e->g->block[b].succ[1];
	struct code *c = &e->c;

	commit(e);
	resume = code_label(c);
	code_lea_label(c, X_RCX, resume); /* rcx dies in syscall */
	code_gs(c, 0x89, X_RCX, TCB_RESUME, true);
	code_insn(c);
	code_bytes(c, "\x48\x8d\x0d", 3);
	code_mod32(c, next, 0);
	code_gs(c, 0x89, X_RCX, TCB_TARGET, true);
	code_gs(c, 0xff, 4, TCB_SYSCALL, false);
	code_here(c, resume);
	state(e, next);
	if (to == AN_NONE) {
		leave(e, next);
		return;
	}
	if (!e->chk_body[to])
		space_check(e, next, e->lv->bin[to]);
	settle(e, to);
	ctl_goto(e, b, to);
}

/* from block b to block `to`, or out to opaque code at vaddr */
static void go_on(struct em *e, uint32_t b, uint32_t to, uint32_t vaddr)
{
	if (to != AN_NONE) {
		settle(e, to);
		ctl_goto(e, b, to);
	} else {
		commit(e);
		leave(e, vaddr);
	}
}

/* loop*, jrcxz, xbegin: the instruction itself decides, over a hop within reach of its rel8:
 *   loop 1f; [log 0]; jmp next; 1: [log 1]; jmp taken
 * The log of such a branch (LOG_HOP) is 1 where it is taken. A transaction that aborts undoes its logs with all its stores,
 * the 0 among them, and r15 is what it was: the 1 comes in its place. */
static void loop_insn(struct em *e, uint32_t b, const struct dec *d, uint32_t i, bool log)
{
	const struct an_block *k = &e->g->block[b];
	struct code *c = &e->c;
	uint32_t one = code_label(c), off = e->c.off, target = e->g->insn[i].target;
	unsigned rel = d->in.opcode == 0xc7 ? 4 : 1;

	code_insn(c);
	if (rel == 1)
		flow_begin(e, b);
	code_bytes(c, d->b, d->in.length - rel);
	c->lr = code_more(c->lr, c->nlr, &c->caplr, sizeof(*c->lr));
	c->lr[c->nlr++] = (struct lref){c->n, one, rel == 1};
	code_bytes(c, "\0\0\0", rel);
	if (rel == 1)
		flow_end(e, b);
	for (unsigned taken = 0; taken < 2; taken++) {
		uint32_t to;

		state(e, taken ? target : d->vaddr + d->in.length);
		if (taken)
			code_here(c, one);
		e->c.off = off;
		if (log) {
			code_insn(c);
			code_bytes(c, "\x41\xc6", 2);
			code_r15mem(c, 0, e->c.off);
			code_byte(c, taken);
			e->c.off++;
			e->since += !taken;
			e->logbytes += !taken;
		}
		to = k->succ[!taken];
		if (to != AN_NONE) {
			settle(e, to);
			code_jmp(c, rot_label(e, b, to));
		} else {
			commit(e);
			if (taken)
				tail(e, -1, i);
			else
				leave(e, d->vaddr + d->in.length);
		}
	}
}

/* xbegin, for a replay: the runtime does not come back to what follows it.
 *
 *   again: mov %rax,%gs:SPILL0; lea again(%rip),%rax; mov %rax,%gs:RESUME; lea xbegin(%rip),%rax; mov %rax,%gs:TARGET
 *          mov %gs:SPILL0,%rax; movl $what,%gs:WHAT; jmp *%gs:NONDET
 */
static void begin_full(struct em *e, const struct dec *d)
{
	struct code *c = &e->c;
	uint32_t again;

	commit(e);
	again = code_label(c);
	code_here(c, again);
	code_gs(c, 0x89, X_RAX, TCB_SPILL0, true);
	c->cur.spill[0] = X_RAX;
	code_lea_label(c, X_RAX, again);
	code_gs(c, 0x89, X_RAX, TCB_RESUME, true);
	code_insn(c);
	code_bytes(c, "\x48\x8d\x05", 3);
	code_mod32(c, d->vaddr, 0);
	code_gs(c, 0x89, X_RAX, TCB_TARGET, true);
	code_gs(c, 0x8b, X_RAX, TCB_SPILL0, true);
	c->cur.spill[0] = NOREG;
	nondet_call(e, nondet_what(d->b, d->in.length));
}

void ctl_move(struct em *e, uint32_t b)
{
	uint32_t to = e->g->block[b].succ[0];

	if (to != AN_NONE)
		settle(e, to);
	else
		commit(e);
}

static void jcc(struct em *e, uint32_t b, const struct dec *d, uint32_t i)
{
	const struct an_block *k = &e->g->block[b];
	uint32_t next = d->vaddr + d->in.length;
	unsigned cc = d->in.opcode & 15;

	ctl_move(e, b);
	flow_begin(e, b);
	if (k->succ[0] != AN_NONE)
		code_jcc(&e->c, cc, rot_label(e, b, k->succ[0]));
	else
		tail(e, cc, i);
	flow_end(e, b);
	state(e, next);
	go_on(e, b, k->succ[1], next);
}

/* The end of block b: its last instruction i transfers control, or falls through. */
void ctl_end(struct em *e, uint32_t b, const struct dec *d, uint32_t i, uint32_t live)
{
	const struct an_block *k = &e->g->block[b];
	const struct an_insn *n = &e->g->insn[i];
	struct code *c = &e->c;
	bool log = false;

	switch (n->flow) {
	case FLOW_CALL:
	case FLOW_ICALL:
		call(e, d, i);
		break;
	case FLOW_RET:
		commit(e);
		if (!e->g->sum->keeps) {
			code_gs(c, 0x89, R15, TCB_LP, true);
			expect_return(e, 1 + (int32_t)(d->in.opcode == 0xc2 ? d->in.raw.imm[0].value.u : 0));
			give_back(e);
		}
		flow_begin(e, b);
		emit_bytes(e, d, d->b);
		flow_end(e, b);
		break;
	case FLOW_SYSCALL:
		syscall_insn(e, b, d);
		break;
	case FLOW_IJMP:
		ijump(e, d, b, live);
		break;
	case FLOW_HALT:
		commit(e);
		emit_bytes(e, d, d->b);
		break;
	case FLOW_JCC:
		for (uint32_t l = e->logfirst[b]; l < e->logfirst[b + 1]; l++)
			log |= e->p->log[l].what == LOG_HOP;
		if (d->in.opcode == 0xc7 && (e->m->mapflags & MAP_F_NONDET))
			begin_full(e, d);
		else if (d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (d->in.opcode & 0xf0) != 0x70)
			loop_insn(e, b, d, i, log);
		else
			jcc(e, b, d, i);
		break;
	case FLOW_JMP:
		if (k->succ[0] != AN_NONE) {
			go_on(e, b, k->succ[0], AN_NONE);
		} else {
			commit(e);
			tail(e, -1, i);
		}
		break;
	default:
		go_on(e, b, k->succ[1], n->vaddr + n->len);
	}
}

/* what is out of line: exits of conditional tail jumps, entries with another rsp, unseen code that comes back, return addresses */
void ctl_cold(struct em *e)
{
	struct code *c = &e->c;

	for (uint32_t i = 0; i < e->nleave; i++) {
		state(e, e->leave[i].vaddr);
		c->off = 0;
		code_here(c, e->leave[i].label);
		leave(e, e->leave[i].target);
	}
	for (uint32_t i = 0; i < e->nxent; i++) {
		state(e, e->xent[i].vaddr);
		c->cur.flags = MAP_X_STUB;
		code_here(c, e->xent[i].label);
		e->c.off = 0;
		mark(e, RUN_MARK_ENTRYX, e->xent[i].site);
		rsp_log(e);
		code_advance(c, 8); /* the rest is what the join has written, too */
		c->off -= 8;
		code_jmp(c, e->xent[i].join);
	}
	for (uint32_t i = 0; i < e->nxback; i++) {
		state(e, e->xback[i].vaddr);
		c->cur.flags = MAP_X_STUB;
		c->off = 0;
		code_here(c, e->xback[i].label);
		if (e->xback[i].site) {
			c->cur.spill[0] = X_RCX;
			code_gs(c, 0x8b, X_RCX, TCB_SPILL0, true);
			c->cur.spill[0] = NOREG;
		}
		code_lea_label(c, R15, e->xback[i].join);
		code_gs(c, 0x89, R15, TCB_RESUME, true);
		code_gs(c, 0xff, 4, TCB_BACK, false);
	}
	for (uint32_t i = 0; i < e->npool; i++) {
		uint64_t v = e->pool[i].vaddr;

		code_here(c, e->pool[i].label);
		c->fix = code_more(c->fix, c->nfix, &c->capfix, sizeof(*c->fix));
		c->fix[c->nfix++] = (struct map_fixup){c->n, MAP_FIX_ABS64};
		code_bytes(c, &v, 8);
	}
}
