/* SPDX-License-Identifier: MIT
 *
 * emit.c - the instrumented copy of one group
 *
 * Blocks in address order, each: its stub (when no block falls into it), the space check, what the plan
 * logs at its start, its instructions with the logs before and after them, its end. Stubs that
 * would be fallen into, space check slow paths and exits to opaque code follow at the end.
 *
 * loop*, jrcxz, xbegin: LOG_HOP is one byte, 1 where the branch is taken (emit_ctl.c).
 */
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "form.h"
#include "nondet.h"
#include "scratch.h"

/* the n bytes of the instruction at vaddr; disp: where its displacement is, if that is relative to rip, else 0 */
static void copy(struct em *e, uint32_t vaddr, const uint8_t *b, unsigned n, unsigned disp)
{
	struct code *c = &e->c;
	uint32_t rel;

	code_insn(c);
	code_copy(code_room(c), b, n);
	c->n += n;
	if (disp) {
		memcpy(&rel, b + disp, 4);
		c->n -= n - disp;
		code_mod32(c, vaddr + n + rel, n - disp - 4);
		c->n += n - disp - 4;
	}
}

void emit_bytes(struct em *e, const struct dec *d, const uint8_t *b)
{
	const ZydisDecodedInstruction *in = &d->in;
	bool rip =
		(in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod == 0 && in->raw.modrm.rm == 5;

	copy(e, d->vaddr, b, in->length, rip ? in->raw.disp.offset : 0);
}

static bool names_gs(const struct dec *d)
{
	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.segment == ZYDIS_REGISTER_GS &&
		    o->mem.type != ZYDIS_MEMOP_TYPE_AGEN)
			return true;
	}
	return d->in.mnemonic == ZYDIS_MNEMONIC_WRGSBASE || d->in.mnemonic == ZYDIS_MNEMONIC_RDGSBASE ||
	       d->in.mnemonic == ZYDIS_MNEMONIC_SWAPGS;
}

static bool branch_form(const struct dec *d, uint8_t flow)
{
	uint8_t op = d->in.opcode;
	bool one = d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;

	switch (flow) {
	case FLOW_NEXT:
		return d->in.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE &&
		       d->in.meta.category != ZYDIS_CATEGORY_RET &&
		       d->in.mnemonic != ZYDIS_MNEMONIC_SYSCALL &&
		       /* a breakpoint's handler is shown the next instruction, as after any other (preload/rt_xlat.c) */
		       (d->in.meta.category != ZYDIS_CATEGORY_INTERRUPT ||
			d->in.mnemonic == ZYDIS_MNEMONIC_INT3);
	case FLOW_JMP:
		return one && (op == 0xe9 || op == 0xeb);
	case FLOW_JCC:
		return one ? (op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3) ||
				       d->in.mnemonic == ZYDIS_MNEMONIC_XBEGIN
			   : op >= 0x80 && op <= 0x8f;
	case FLOW_CALL:
		return one && op == 0xe8;
	case FLOW_ICALL:
		return one && op == 0xff && d->in.raw.modrm.reg == 2;
	case FLOW_IJMP:
		return one && op == 0xff && d->in.raw.modrm.reg == 4;
	case FLOW_RET:
		return one && (op == 0xc2 || op == 0xc3);
	case FLOW_SYSCALL:
		return d->in.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
	default:
		return true;
	}
}

enum map_reason emit_can(const struct dec *d, const struct an_insn *i, uint32_t mapflags)
{
	bool modrm = d->in.attributes & ZYDIS_ATTRIB_HAS_MODRM;

	if (!branch_form(d, i->flow) || names_gs(d))
		return MAP_R_UNRELOCATABLE;
	/* a far transfer to Intel PT (SDM Vol. 3, 33.4.2): it ends a recording of the program's own code before the handler */
	if ((mapflags & MAP_F_PT) && d->in.mnemonic == ZYDIS_MNEMONIC_INT3)
		return MAP_R_UNRELOCATABLE;
	if (modrm && d->in.raw.modrm.mod == 0 && d->in.raw.modrm.rm == 5 && d->in.address_width != 64)
		return MAP_R_UNRELOCATABLE; /* eip-relative */
	if (i->flow != FLOW_NEXT && i->flow != FLOW_HALT && d->in.operand_width == 16)
		return MAP_R_UNRELOCATABLE;
	if ((i->flow == FLOW_ICALL || i->flow == FLOW_IJMP) &&
	    (d->in.address_width != 64 ||
	     (dec_gprs(d) >> X_RSP & 1 && d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	      dec_gpr(d->op[0].reg.value) == X_RSP)))
		return MAP_R_UNRELOCATABLE;
	if (i->flow == FLOW_NEXT && r15_named(d) && !r15_can(d))
		return MAP_R_UNRELOCATABLE;
	return MAP_OK;
}

/* the plan's logs from k to end */
static void logs(struct em *e, uint32_t k, uint32_t end, const struct dec *d, uint32_t live)
{
	for (; k < end; k++)
		if (e->p->log[k].what != LOG_HOP)
			emit_log(e, &e->p->log[k], d, live);
}

/* Finds those of instruction i of block b: e->log is behind the ones of what is before it. */
static void find_logs(struct em *e, uint32_t b, uint32_t i)
{
	uint32_t k = e->log = e->logend, end = e->logfirst[b + 1];
	const struct plan_log *l = e->p->log;

	while (k < end && l[k].insn == i && l[k].when == AT_BEFORE)
		k++;
	e->logafter = k;
	while (k < end && l[k].insn == i)
		k++;
	e->logend = k;
}

/* and of block b itself: stub_logs (emit_ctl.c) writes the others */
static void block_logs(struct em *e, uint32_t b, uint32_t live)
{
	uint32_t k = e->logfirst[b], end = e->logfirst[b + 1];
	const struct plan_log *l = e->p->log;

	while (k < end && l[k].when != AT_BEFORE && l[k].when != AT_AFTER) {
		if (l[k].when == AT_BLOCK)
			emit_log(e, &l[k], NULL, live); /* registers */
		k++;
	}
	e->logend = k;
}

/* a long block: a check within, where r15 is advanced anyway */
static void inner_check(struct em *e, uint32_t b, uint32_t vaddr, uint32_t live)
{
	if (e->bytes[b] <= SPACE_BLOCK_MAX || e->since < SPACE_BLOCK_MAX / 2)
		return;
	commit(e);
	space_check(e, vaddr, live);
}

/* i is what sets the flags of the conditional jump that ends the block, and nothing is logged between
 * the two: r15 can move before i, so that the processor still takes both as one */
static bool fuses(const struct em *e, uint32_t b, uint32_t i)
{
	const struct an_block *k = &e->g->block[b];

	return i + 2 == k->first + k->n && e->g->insn[i + 1].flow == FLOW_JCC &&
	       e->logafter == e->logfirst[b + 1];
}

/* Most instructions need not be decoded: their copy is their bytes, or those with the slot of r15, and nothing but registers
 * after them is logged. */
static bool as_is(struct em *e, uint32_t b, uint32_t i)
{
	const struct an_block *k = &e->g->block[b];
	const struct an_insn *n = &e->g->insn[i];
	const struct form *f = e->lv->form[i];
	unsigned len = n->len;
	const uint8_t *p;

	if (n->flow != FLOW_NEXT || !f || e->log != e->logafter)
		return false; /* or it is not kept */
	p = elf_at(e->m, n->vaddr, n->len);
	if ((e->m->mapflags & MAP_F_NONDET) && nondet_what(p, n->len))
		return false;
	if (f->nslot && e->cur_rot == NOREG) {
		p = f->slot;
		len = f->nslot;
	} else if (!f->plain) {
		return false;
	}
	for (uint32_t l = e->logafter; l < e->logend; l++)
		if (e->p->log[l].what != LOG_REG)
			return false;
	inner_check(e, b, n->vaddr, e->lv->before[i]);
	if (fuses(e, b, i))
		ctl_move(e, b);
	copy(e, n->vaddr, p, len, n->disp);
	if (e->logafter < e->logend) {
		state(e, n->vaddr + n->len);
		logs(e, e->logafter, e->logend, NULL, live_after(e->g, i));
	}
	if (i + 1 == k->first + k->n) {
		state(e, n->vaddr + n->len);
		ctl_end(e, b, NULL, i, e->lv->before[i]);
	}
	return true;
}

/* movl $what,%gs:TCB_WHAT; jmp *%gs:TCB_NONDET */
void nondet_call(struct em *e, uint32_t what)
{
	struct code *c = &e->c;

	code_insn(c);
	code_bytes(c, "\x65\xc7\x04\x25", 4);
	code_u32(c, TCB_WHAT);
	code_u32(c, what);
	code_gs(c, 0xff, 4, TCB_NONDET, false);
}

/* An instruction whose result a replay must be told: the runtime executes it (tcb.nondet). What it writes is dead
 * before it and serves to say where to come back to. */
static bool nondet_insn(struct em *e, const struct dec *d)
{
	uint32_t what = e->m->mapflags & MAP_F_NONDET ? nondet_what(d->b, d->in.length) : 0, resume;
	unsigned kind = what & 0xff, s = kind < NONDET_RDRAND ? X_RDX : what >> 8 & 15;
	struct code *c = &e->c;

	if (!what)
		return false;
	if (s == R15 || s == X_RSP) {
		c->fail = "a random number to r15 or rsp";
		return true;
	}
	commit(e);
	resume = code_label(c);
	code_lea_label(c, s, resume);
	code_gs(c, 0x89, s, TCB_RESUME, true);
	code_insn(c);
	code_bytes(c, (uint8_t[]){0x48 | (s >> 3) << 2, 0x8d, 0x05 | (s & 7) << 3}, 3);
	code_mod32(c, d->vaddr + d->in.length, 0);
	code_gs(c, 0x89, s, TCB_TARGET, true);
	nondet_call(e, what);
	code_here(c, resume);
	return true;
}

/* Of a direct transfer, a call or a return at which nothing but its condition is logged no more is asked (ctl_end) than its
 * opcode and length: it need not be decoded. */
static bool simple(struct em *e, uint32_t i, struct dec *d)
{
	const struct an_insn *n = &e->g->insn[i];
	const uint8_t *p;

	if (n->flow == FLOW_NEXT || n->flow == FLOW_IJMP || n->flow == FLOW_HALT ||
	    (n->flow == FLOW_ICALL && e->lv->emul && e->lv->emul[i]))
		return false;
	for (uint32_t l = e->log; l < e->logafter; l++)
		if (e->p->log[l].what != LOG_SETCC && e->p->log[l].what != LOG_HOP)
			return false;
	p = d->b = elf_at(e->m, n->vaddr, n->len);
	if (n->flow == FLOW_RET && n->len > 2) /* ret n */
		return false;
	d->vaddr = n->vaddr;
	d->in.attributes = 0;
	d->in.length = n->len;
	d->in.opcode_map = ZYDIS_OPCODE_MAP_DEFAULT;
	d->in.opcode = p[n->len - 1];
	if (n->len >= 6 && p[n->len - 6] == 0x0f && (p[n->len - 5] & 0xf0) == 0x80) { /* jcc rel32 */
		d->in.opcode_map = ZYDIS_OPCODE_MAP_0F;
		d->in.opcode = p[n->len - 5];
	} else if (n->flow == FLOW_JCC && n->len >= 6) { /* xbegin */
		d->in.opcode = p[n->len - 6];
	} else if (n->flow == FLOW_JCC) { /* rel8, loop and jrcxz among them */
		d->in.opcode = p[n->len - 2];
	}
	return true;
}

/* struct map_place.rep */
static uint32_t repeats(const struct dec *d)
{
	uint32_t rep = d->in.operand_width / 8;

	if (d->in.meta.category != ZYDIS_CATEGORY_STRINGOP ||
	    !(d->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
		return 0;
	for (int i = 0; i < d->in.operand_count; i++) {
		if (d->op[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (dec_gpr(d->op[i].mem.base) == X_RSI)
			rep |= MAP_PLACE_SRC;
		if (dec_gpr(d->op[i].mem.base) == X_RDI)
			rep |= MAP_PLACE_DST;
	}
	return rep;
}

/* jmp *%gs:TCB_PLACE (MAP_PLACE) */
static void place(struct em *e, const struct dec *d)
{
	e->place = (struct map_place){d->vaddr, code_label(&e->c), 0, repeats(d)};
	code_here(&e->c, e->place.copy_off);
	code_gs(&e->c, 0xff, 4, TCB_PLACE, false);
}

/* Most of those stand in a row, with nothing to log between: from i on, as far as none of the block's last two is among
 * them (fuses). How many, behind i, have been copied. */
static uint32_t row(struct em *e, uint32_t b, uint32_t i)
{
	const struct an_block *k = &e->g->block[b];
	const struct an_insn *n = &e->g->insn[i];
	uint32_t end = k->first + k->n - 2, to = i + 1;
	struct map_xlat x;
	const uint8_t *p;

	if (e->logend < e->logfirst[b + 1] && e->p->log[e->logend].insn < end)
		end = e->p->log[e->logend].insn;
	while (to < end && e->lv->form[to] && e->lv->form[to]->plain && !e->g->insn[to].disp)
		to++;
	end = e->g->insn[to - 1].vaddr + e->g->insn[to - 1].len;
	p = elf_at(e->m, n->vaddr, end - n->vaddr);
	if (to == i + 1 || !p)
		return 0;
	code_reserve(&e->c, to - i - 1);
	x = (struct map_xlat){0, 0, MAP_X_START, e->cur_rot, {NOREG, e->cur_rot}, (uint16_t)e->c.off, 0};
	for (const struct an_insn *m = n + 1; m < e->g->insn + to; m++) {
		x.vaddr = m->vaddr;
		code_next(&e->c, &x, p + (m->vaddr - n->vaddr), m->len);
	}
	return to - i - 1;
}

static void one_insn(struct em *e, uint32_t b, uint32_t i)
{
	const struct an_insn *n = &e->g->insn[i];
	const struct an_block *k = &e->g->block[b];
	uint32_t live = e->lv->before[i];
	bool asked = n->vaddr == e->m->place;
	struct dec d;

	find_logs(e, b, i);
	state(e, n->vaddr);
	e->c.start = true;
	if (!asked && as_is(e, b, i))
		return;
	if ((asked || !simple(e, i, &d)) && dec_insn(e->m, n, &d)) {
		e->c.fail = "undecodable instruction";
		return;
	}
	if (asked && !repeats(&d))
		place(e, &d);
	inner_check(e, b, n->vaddr, live);
	logs(e, e->log, e->logafter, &d, live);
	if (asked && repeats(&d))
		place(e, &d);
	if (n->flow != FLOW_NEXT) {
		ctl_end(e, b, &d, i, live);
		return;
	}
	if (fuses(e, b, i))
		ctl_move(e, b);
	if (d.in.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		e->c.start = false; /* nothing in the copy is reached by an indirect branch of the program */
	else if (nondet_insn(e, &d))
		;
	else if (r15_named(&d))
		r15_emit(e, &d, live);
	else
		emit_bytes(e, &d, d.b);
	state(e, n->vaddr + n->len);
	if (e->logafter < e->logend)
		logs(e, e->logafter, e->logend, &d, live_after(e->g, i));
	if (i + 1 == k->first + k->n)
		ctl_end(e, b, &d, i, live);
}

/* the block before b in the copy runs into b */
static bool falls(const struct em *e, uint32_t b)
{
	uint32_t to[2];

	if (!b)
		return false;
	for (uint32_t n = flow_succ(e, b - 1, to, 2); n-- > 0;)
		if (n < 2 && to[n] == b)
			return true;
	return false;
}

static void one_block(struct em *e, uint32_t b)
{
	const struct an_block *k = &e->g->block[b];
	uint32_t vaddr = e->g->insn[k->first].vaddr;
	uint32_t live = e->lv->bin[b];
	bool rows = !(e->m->mapflags & MAP_F_NONDET) && e->bytes[b] <= SPACE_BLOCK_MAX &&
		    e->m->place - vaddr > e->g->insn[k->first + k->n - 1].vaddr - vaddr;

	if (e->stub[b] != STUB_NONE && e->stub[b] != STUB_PLAIN && !falls(e, b))
		ctl_stub(e, b, true);
	code_here(&e->c, e->body[b]);
	if (e->stub[b] == STUB_PLAIN)
		code_here(&e->c, e->stubl[b]);
	e->c.off = e->off_in[b];
	e->since = 0;
	e->cur_rot = e->lid[b] ? e->rot[e->lid[b] - 1].reg : NOREG;
	state(e, vaddr);
	if (e->chk_body[b])
		space_check(e, vaddr, live);
	block_logs(e, b, live);
	for (uint32_t n = 0; n < k->n && !e->c.fail; n++) {
		one_insn(e, b, k->first + n);
		if (n + 3 < k->n && rows)
			n += row(e, b, k->first + n);
	}
	if (e->logend != e->logfirst[b + 1] && !e->c.fail)
		e->c.fail = "the plan's logs are not in stream order";
	e->cur_rot = NOREG;
}

static void count_bytes(struct em *e)
{
	static const uint8_t head[] = {[STUB_RETURN] = 1,
				       [STUB_ENTRY] = RUN_MARK_SITE_BYTES + 8,
				       [STUB_RESYNC] = RUN_MARK_SITE_BYTES + 8};
	uint32_t b = 0;

	for (uint32_t i = 0; i < e->p->nlog; i++) {
		const struct plan_log *l = &e->p->log[i];
		uint32_t lb = e->g->insn[l->insn].block;

		if (lb < b)
			e->c.fail = "the plan's logs are not in block order";
		if (l->when == AT_AFTER && e->g->insn[l->insn].flow != FLOW_NEXT)
			e->c.fail = "the plan logs after a control transfer";
		for (; b < lb; b++)
			e->logfirst[b + 1] = i;
		if (l->when == AT_ENTRY || l->when == AT_RESYNC || l->when == AT_STUB)
			e->sbytes[lb] += log_bytes(l);
		else
			e->bytes[lb] += log_bytes(l);
		e->tells[lb] |= l->what == LOG_PTW;
		e->nptw += l->what == LOG_PTW;
	}
	if (e->nptw) {
		e->ptw = scratch(e->p->nlog * sizeof(*e->ptw));
		if (!e->ptw)
			abort();
		memset(e->ptw, 0xff, e->p->nlog * sizeof(*e->ptw)); /* AN_NONE */
	}
	for (; b < e->g->nblock; b++)
		e->logfirst[b + 1] = e->p->nlog;
	for (b = 0; b < e->g->nblock; b++) {
		e->bytes[b] += glue_link(e->g, b) ? 1 : 0;
		e->stub[b] = glue_stub(e->m, e->g, b);
		if (e->stub[b] < sizeof(head))
			e->sbytes[b] += head[e->stub[b]];
	}
}

static void em_init(struct em *e)
{
	uint32_t nb = e->g->nblock + 1;
	uint32_t *w = scratch_zero((size_t)nb * 7 * 4 + (size_t)nb * 5);
	uint8_t *v;

	if (!w)
		abort();
	if (e->m->mapflags & MAP_F_PT) { /* else nobody asks */
		e->flow = scratch(nb * sizeof(*e->flow));
		if (!e->flow)
			abort();
		memset(e->flow, 0xff, nb * sizeof(*e->flow)); /* AN_NONE */
	}
	e->body = w;
	e->stubl = w + nb;
	e->logfirst = w + 2 * nb;
	e->bytes = w + 3 * nb;
	e->sbytes = w + 4 * nb;
	e->off_in = w + 5 * nb;
	e->nflow = w + 6 * nb;
	v = (uint8_t *)(w + 7 * nb);
	e->chk_body = v;
	e->chk_stub = v + nb;
	e->stub = v + 2 * nb;
	e->lid = v + 3 * nb;
	e->tells = v + 4 * nb;
	e->cur_rot = NOREG;
	e->place.copy_off = AN_NONE;
	code_init(&e->c, e->g->ninsn, nb);
	code_labels(&e->c, 2 * e->g->nblock);
	for (uint32_t b = 0; b < e->g->nblock; b++) {
		e->body[b] = 2 * b;
		e->stubl[b] = 2 * b + 1;
	}
}

/* an array of which there may be nothing */
static void put(void *to, const void *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
}

/* What waits for all other groups: one piece of memory, no larger than it needs to be */
static struct emitted *take(struct em *e)
{
	uint32_t nb = e->g->nblock, nflow = e->flow ? nb : 0, nptw = 0;
	const struct code *c = &e->c;
	struct emitted *x =
		malloc(sizeof(*x) + 2 * nb * sizeof(uint32_t) + nflow * sizeof(*x->flow) +
		       e->nptw * sizeof(*x->ptw) + c->nfix * sizeof(*x->fix) + c->nref * sizeof(*x->ref) +
		       c->nxl * sizeof(*x->xlat) + e->nsite * sizeof(*x->site) + c->n);
	uint32_t *at = (uint32_t *)(x + 1);

	_Static_assert(_Alignof(struct map_xlat) <= 4 && _Alignof(struct emit_flow) <= 4, "they are words");
	if (!x)
		abort();
	*x = (struct emitted){.ntext = c->n,
			      .nfix = c->nfix,
			      .nref = c->nref,
			      .nxlat = c->nxl,
			      .nsite = e->nsite,
			      .nptw = e->nptw,
			      .logbytes = e->logbytes,
			      .place = e->place};
	x->block_off = at;
	x->stub_off = x->block_off + nb;
	x->flow = (void *)(x->stub_off + nb);
	x->ptw = (void *)(x->flow + nflow);
	x->fix = (void *)(x->ptw + x->nptw);
	x->ref = (void *)(x->fix + x->nfix);
	x->xlat = (void *)(x->ref + x->nref);
	x->site = (void *)(x->xlat + x->nxlat);
	x->text = (void *)(x->site + x->nsite);
	for (uint32_t b = 0; b < nb; b++) {
		x->block_off[b] = code_at(c, e->body[b]);
		x->stub_off[b] = e->stub[b] == STUB_NONE ? AN_NONE : code_at(c, e->stubl[b]);
	}
	for (uint32_t b = 0; b < nflow; b++) {
		const struct flowl *f = &e->flow[b];

		x->flow[b] = f->at == AN_NONE ? (struct emit_flow){0, 0}
					      : (struct emit_flow){code_at(c, f->at),
								   code_at(c, f->end) - code_at(c, f->at)};
	}
	if (!nflow)
		x->flow = NULL;
	for (uint32_t i = 0; e->nptw && i < e->p->nlog; i++)
		if (e->p->log[i].what == LOG_PTW) /* without a label where nothing leads to the stub */
			x->ptw[nptw++] = e->ptw[i] == AN_NONE ? AN_NONE : code_at(c, e->ptw[i]);
	put(x->fix, c->fix, c->nfix * sizeof(*c->fix));
	put(x->ref, c->ref, c->nref * sizeof(*c->ref));
	put(x->xlat, c->xl, c->nxl * sizeof(*c->xl));
	put(x->site, e->site, e->nsite * sizeof(*e->site));
	memcpy(x->text, c->b, c->n);
	if (e->place.copy_off != AN_NONE)
		x->place.copy_off = code_at(c, e->place.copy_off);
	return x;
}

struct emitted *emit_group(const struct module *m, const struct an_group *g, const struct plan *p,
			   const char **why)
{
	struct em e = {.m = m, .g = g, .p = p, .lv = g->live};
	struct scratch_mark mark = scratch_mark();
	struct emitted *x = NULL;

	em_init(&e);
	count_bytes(&e);
	if (!e.c.fail) {
		space_plan(&e);
		rot_plan(&e);
	}
	for (uint32_t b = 0; b < g->nblock && !e.c.fail; b++)
		one_block(&e, b);
	for (uint32_t b = 0; b < g->nblock && !e.c.fail; b++)
		if (e.stub[b] != STUB_NONE && code_at(&e.c, e.stubl[b]) == AN_NONE)
			ctl_stub(&e, b, false);
	if (!e.c.fail) {
		space_cold(&e);
		ctl_cold(&e);
		rot_edges(&e);
	}
	if (!e.c.fail && !code_relax(&e.c))
		x = take(&e);
	else
		*why = e.c.fail;
	scratch_release(mark);
	return x;
}

void emitted_free(struct emitted *x)
{
	free(x);
}
