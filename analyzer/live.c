/* SPDX-License-Identifier: MIT
 *
 * live.c - registers and flags live at each instruction
 *
 * Backward dataflow per group; what is not live may be borrowed without saving it. The ABI alone
 * is not enough: gcc's -fipa-ra keeps caller-saved registers across calls of functions whose
 * code it knows, and hand-written assembly returns values, flags included, wherever it likes.
 * So facts cross calls, in this order:
 *
 *   1. use/def sets of every instruction                         (all groups, parallel; from patch.c)
 *   2. clob    caller-saved registers a caller must take for overwritten: own writes, those of
 *              direct callees, all where an external or indirect call is made. A callee that is
 *              opaque adds nothing (the compiler may have known that it writes little).
 *   3. need    registers that a group or its direct callees read, from a block on, before they write
 *              them: what it is given, in whatever register
 *   4. liveret registers that some direct caller reads after the call before writing them, or gives to
 *              what it calls next, where calls are taken to define nothing; passed down through tail
 *              jumps; fixpoint
 *   5. before  the result, callees before callers: a call makes live what its callee's entry
 *              reads. Inside call cycles: everything.
 *
 * Live at ret: callee-saved, rsp, rax, rdx, caller-saved not in clob, liveret, and registers that
 * the group reloads from the stack without using them (code that preserves more than it must).
 *
 * Code without unwind tables (an_group.bare) knows what its functions do even where it calls them through tables
 * (x264's coefficient counters): there everything is live at a return, and before a call of which nothing is known.
 */
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "form.h"
#include "sem_lift.h"

#define ALL (GPR_ALL | FLAGS_BIT)
#define ARGS                                                                                                 \
	(1u << X_RDI | 1u << X_RSI | 1u << X_RDX | 1u << X_RCX | 1u << 8 | 1u << 9 | 1u << X_RAX |           \
	 1u << 10 | 1u << X_RSP)
#define RET_ABI ((GPR_ALL & ~CALLER_SAVED) | 1u << X_RAX | 1u << X_RDX)

/* how a block ends; from END_RET on: where control may leave the group */
enum { END_PLAIN, END_CALL, END_ICALL, END_IJMP, END_RET, END_TAIL, END_OUT };

struct live_block {
	uint32_t kill, gen; /* what its instructions do to what is live, a call at its end aside */
	uint32_t succ[2]; /* none: where `bin` has nothing, behind the last one */
	uint32_t callee; /* of the group's, at its end; AN_NONE if there is none */
	uint32_t use; /* of its last instruction */
	uint8_t end;
	bool alone; /* it is a call and nothing else */
};

struct lm {
	struct module *m;
	uint64_t *dirty; /* struct df: room for the largest group */
	uint32_t *bin; /* the same */
};

static struct live *L(const struct an_group *g)
{
	return g->live;
}

/* ---- 1: use and def ---- */

static bool stack_reload(const struct dec *d, unsigned *reg)
{
	const ZydisDecodedOperand *o = &d->op[0];
	int r = o->type == ZYDIS_OPERAND_TYPE_REGISTER ? dec_gpr(o->reg.value) : -1;

	if (r < 0 || o->size != 64)
		return false;
	*reg = r;
	if (d->in.mnemonic == ZYDIS_MNEMONIC_POP)
		return true;
	return d->in.mnemonic == ZYDIS_MNEMONIC_MOV && d->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       d->op[1].mem.base == ZYDIS_REGISTER_RSP;
}

#define RELOAD_SHIFT 24 /* use[]: register a stack reload writes, plus 1, in the top bits */

/* inc, rotates and shifts by cl keep some flags or all: those pass through, they are not read */
static uint32_t reads(const struct dec *d, uint32_t use)
{
	bool tested = d->in.cpu_flags && (d->in.cpu_flags->tested & 0x8d5);

	if (!tested && d->in.meta.category != ZYDIS_CATEGORY_FLAGOP &&
	    d->in.meta.category != ZYDIS_CATEGORY_PUSH)
		use &= ~FLAGS_BIT;
	return use;
}

static void flow_sets(const struct an_insn *i, const struct dec *d, uint32_t *use, uint32_t *def)
{
	if (i->flow == FLOW_SYSCALL) { /* SDM: rcx, r11; the kernel takes the rest as arguments */
		*use = ALL & ~(1u << X_RCX | 1u << 11 | FLAGS_BIT);
		*def = 1u << X_RCX | 1u << 11;
	} else if (i->flow == FLOW_HALT) {
		*use = ALL;
		*def = 0;
	} else if (i->flow == FLOW_CALL || i->flow == FLOW_ICALL || i->flow == FLOW_RET) {
		*use = dec_gprs(d) | 1u << X_RSP;
		*def = 0;
	}
}

void live_form(struct form *f, const struct dec *d, const struct an_insn *i)
{
	unsigned r;

	f->use = reads(d, sem_gpr_sets(&d->in, d->op, &f->def, &f->may) & ALL);
	f->def &= ALL;
	flow_sets(i, d, &f->use, &f->def);
	if (stack_reload(d, &r) && (CALLER_SAVED >> r & 1))
		f->use |= (r + 1) << RELOAD_SHIFT;
	/* call *(%rax): the TLS descriptor call, which preserves everything else */
	if (i->flow == FLOW_ICALL && d->b[0] == 0xff && d->b[1] == 0x10)
		f->use |= 0x80000000u;
}

/* The first look at every instruction: what it reads and writes, and whether it can be copied at all. */
enum map_reason live_facts(const struct module *m, struct an_group *g)
{
	struct live *l = g->live;
	enum map_reason r = MAP_OK;
	_Alignas(struct form) char tmp[FORM_TMP];
	uint32_t writes = 0;

	if (l->use)
		return MAP_OK;
	live_drop(g);
	l->use = malloc((g->ninsn * 2ul + 1) * sizeof(*l->use));
	l->before = malloc((g->ninsn + (g->nblock + 1ul) * 2) * sizeof(*l->before));
	l->form = malloc((g->ninsn + 1) * sizeof(*l->form));
	if (!l->use || !l->before || !l->form)
		abort();
	l->def = l->use + g->ninsn;
	l->bin = l->before + g->ninsn;
	l->need = l->bin + g->nblock + 1;
	form_find(m, g->insn, g->ninsn, l->form);
	l->nop = 0;
	for (uint32_t i = 0; i < g->ninsn; i++) {
		const struct form *f = l->form[i] ? l->form[i] : form_get(m, &g->insn[i], tmp);

		if ((r = f->reason) != MAP_OK)
			break;
		l->form[i] = (const void *)f != tmp ? f : NULL;
		l->nop += f->n > 0 ? (uint32_t)f->n : 0;
		l->use[i] = f->use;
		l->def[i] = f->def;
		writes |= f->may;
	}
	if (r != MAP_OK) { /* the group becomes opaque for it */
		live_drop(g);
		return r;
	}
	g->sum->ownwrite = writes & GPR_ALL;
	l->own = writes & (CALLER_SAVED | FLAGS_BIT);
	return MAP_OK;
}

static uint8_t end_of(const struct an_insn *i, const struct an_block *k)
{
	switch (i->flow) {
	case FLOW_CALL:
		return END_CALL;
	case FLOW_ICALL:
		return END_ICALL;
	case FLOW_IJMP:
		return END_IJMP;
	case FLOW_RET:
		return END_RET;
	case FLOW_JMP:
	case FLOW_JCC:
		return k->succ[0] == AN_NONE ? END_TAIL : END_PLAIN;
	case FLOW_NEXT:
		return k->succ[1] == AN_NONE ? END_OUT : END_PLAIN;
	}
	return END_PLAIN;
}

/* what the dataflow needs of the blocks, each time it is solved */
static void sum_blocks(struct an_group *g)
{
	struct live *l = L(g);

	l->pads = false;
	memset(l->bin, 0, (g->nblock + 1ul) * 2 * sizeof(*l->bin)); /* and need */
	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct an_block *k = &g->block[b];
		uint32_t last = k->first + k->n - 1, kill = 0, gen = 0;
		const struct an_callee *c = glue_callee(g, last);
		uint8_t end = end_of(&g->insn[last], k);
		bool call = end == END_CALL || end == END_ICALL;

		for (uint32_t i = k->first + k->n - call; i-- > k->first;) {
			kill |= l->def[i];
			gen = (gen & ~l->def[i]) | (l->use[i] & ALL);
		}
		l->sum[b] = (struct live_block){.kill = kill,
						.gen = gen,
						.succ = {k->succ[0] != AN_NONE ? k->succ[0] : g->nblock,
							 k->succ[1] != AN_NONE ? k->succ[1] : g->nblock},
						.callee = c ? (uint32_t)(c - g->callee) : AN_NONE,
						.use = l->use[last],
						.end = end,
						.alone = call && k->n == 1};
		l->pads |= (k->flags & AN_B_LANDING) != 0;
	}
}

static void usedef(void *arg, uint32_t gi)
{
	struct module *m = ((struct lm *)arg)->m;
	struct an_group *g = &m->group[gi];

	if (g->reason == MAP_OK) /* patch_plan has been here, and nothing is left to do, mostly */
		g->reason = live_facts(m, g);
	if (g->reason == MAP_OK)
		sum_blocks(g);
}

/* ---- 2: clobber sets ---- */

static bool leaves_unknown(const struct an_group *g, uint32_t b)
{
	const struct an_block *k = &g->block[b];
	const struct an_insn *i = &g->insn[k->first + k->n - 1];

	return i->flow == FLOW_ICALL ||
	       (i->flow == FLOW_IJMP && (k->table == AN_NONE || !g->table[k->table].exact));
}

static void clobbers(struct module *m)
{
	bool again = true;

	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		struct an_group *g = &m->group[gi];

		L(g)->clob = L(g)->own;
		for (uint32_t b = 0; g->reason == MAP_OK && b < g->nblock; b++)
			if (leaves_unknown(g, b))
				L(g)->clob |= CALLER_SAVED | FLAGS_BIT;
	}
	while (again) {
		again = false;
		for (uint32_t gi = 0; gi < m->ngroup; gi++) {
			struct an_group *g = &m->group[gi];
			uint32_t c;

			if (g->reason != MAP_OK)
				continue;
			c = L(g)->clob;
			for (uint32_t k = 0; k < g->ncallee; k++)
				c |= L(&m->group[g->callee[k].group])->clob;
			again |= c != L(g)->clob;
			L(g)->clob = c;
		}
	}
}

/* ---- the dataflow, in three flavours ---- */

struct df {
	const struct module *m;
	const struct an_group *g;
	const struct live_block *sum;
	uint32_t *bin; /* per block, and one that stays 0 */
	uint64_t *dirty; /* a bit per block: it is to be looked at (again) */
	uint32_t ret, pads;
	bool reach; /* flavours 3 and 4: reads after calls; calls define nothing */
};

static struct df flow_of(const struct lm *a, const struct an_group *g, uint32_t *bin, bool reach)
{
	return (struct df){
		.m = a->m, .g = g, .sum = L(g)->sum, .bin = bin, .dirty = a->dirty, .reach = reach};
}

static void look_at(const struct df *f, uint32_t b)
{
	f->dirty[b / 64] |= 1ull << (b % 64);
}

static void look_at_all(const struct df *f)
{
	uint32_t n = f->g->nblock;

	memset(f->dirty, 0xff, n / 64 * 8);
	if (n % 64)
		f->dirty[n / 64] = (1ull << (n % 64)) - 1;
}

/* where more is live at returns than there was */
static void look_at_exits(const struct df *f)
{
	for (uint32_t b = 0; b < f->g->nblock; b++)
		if (f->sum[b].end >= END_RET)
			look_at(f, b);
}

static const struct an_callee *callee_of(const struct df *f, const struct live_block *k)
{
	return k->callee != AN_NONE ? &f->g->callee[k->callee] : NULL;
}

static uint32_t entry_live(const struct module *m, const struct an_callee *c)
{
	const struct live *l = L(&m->group[c->group]);

	return l->done ? l->bin[c->block] : ALL;
}

/* what a direct callee, or opaque code of this module in its place, needs as far as it is known by now */
static uint32_t need_of(const struct module *m, const struct an_callee *c)
{
	const struct live *l = c ? L(&m->group[c->group]) : NULL;

	return l && l->need ? l->need[c->block] : GPR_ALL;
}

/* opaque code of this module is called: nothing is known of its convention */
static uint32_t call_before(const struct df *f, const struct live_block *k, uint32_t after)
{
	const struct an_callee *c = callee_of(f, k);

	if (f->reach)
		return after | (k->use & ALL) | (k->end == END_CALL ? need_of(f->m, c) : 0);
	if (c)
		return (after & ~L(&f->m->group[c->group])->clob) | entry_live(f->m, c) | 1u << X_RSP;
	if (k->end == END_CALL || f->g->bare)
		return ALL;
	if (k->use >> 31)
		return after | ARGS | (k->use & ALL);
	return (after & ~(CALLER_SAVED | FLAGS_BIT)) | ARGS | (k->use & ALL);
}

/* what any of the jump's targets reads */
static uint32_t jump_out(const struct df *f, uint32_t b)
{
	const struct an_group *g = f->g;
	const struct an_table *t = g->block[b].table != AN_NONE ? &g->table[g->block[b].table] : NULL;
	uint32_t out = 0;

	for (uint32_t n = 0; t && n < t->ntarget; n++)
		out |= f->bin[t->target[n]];
	if (!f->reach && (!t || !t->exact))
		out |= g->bare ? ALL : GPR_ALL;
	return out;
}

/* live after the last instruction of a block */
static inline uint32_t block_out(const struct df *f, uint32_t b)
{
	const struct live_block *k = &f->sum[b];
	uint32_t out = f->bin[k->succ[0]] | f->bin[k->succ[1]];

	if (k->end < END_IJMP)
		return out;
	switch (k->end) {
	case END_IJMP:
		return out | jump_out(f, b);
	case END_RET:
		return f->ret;
	case END_TAIL:
		if (f->reach)
			return out | f->ret | need_of(f->m, callee_of(f, k));
		if (k->callee == AN_NONE)
			return ALL;
		return out | (GPR_ALL & ~(1u << 11)) | entry_live(f->m, callee_of(f, k));
	case END_OUT:
		return f->reach ? f->ret : ALL;
	}
	return out;
}

static uint32_t pads_live(const struct df *f)
{
	uint32_t p = 0;

	for (uint32_t b = 0; b < f->g->nblock; b++)
		if (f->g->block[b].flags & AN_B_LANDING)
			p |= f->bin[b] & ~(1u << X_RAX | 1u << X_RDX | FLAGS_BIT);
	return p;
}

/* Over the whole block. What is live at the landing pads is live at each of its instructions. */
static uint32_t block_in(const struct df *f, uint32_t b)
{
	const struct live_block *k = &f->sum[b];
	uint32_t live = block_out(f, b);

	if (k->end == END_CALL || k->end == END_ICALL) {
		live = call_before(f, k, live | f->pads);
		if (k->alone)
			return live;
	}
	return (live & ~k->kill) | k->gen | f->pads;
}

/* One pass from the last block to the first over those to be looked at: a block whose start changes makes its predecessors
 * such ones. True if some are left. */
static bool sweep(const struct df *f)
{
	const struct an_group *g = f->g;
	bool again = false;

	for (uint32_t w = (g->nblock + 63) / 64; w-- > 0;) {
		uint64_t below = ~0ull, todo;

		while ((todo = f->dirty[w] & below)) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(todo), b = w * 64 + bit, v;

			below = (1ull << bit) - 1;
			f->dirty[w] &= ~(1ull << bit);
			v = block_in(f, b) | f->bin[b];
			if (v == f->bin[b])
				continue;
			f->bin[b] = v;
			for (uint32_t k = 0; k < g->block[b].npred; k++) {
				look_at(f, g->block[b].pred[k]);
				again |= g->block[b].pred[k] >= b;
			}
		}
	}
	return again;
}

/* Facts are only added, so where it starts from does not matter as long as it is no more than the result. */
static void solve(struct df *f)
{
	bool again = true;

	if (L(f->g)->pads)
		f->pads = pads_live(f);
	while (again) {
		uint32_t p;

		again = sweep(f);
		if (!L(f->g)->pads || (p = pads_live(f)) == f->pads)
			continue;
		f->pads = p;
		look_at_all(f);
		again = true;
	}
}

/* A stub's expected target (glue_link): the compiler does not know that it is, the psABI holds. */
static bool by_slot(const struct an_group *g, uint32_t callee)
{
	return g->insn[g->callee[callee].insn].flow == FLOW_IJMP;
}

/* callees before callers; explicit stack, the call graph can be deep */
static void bottom_up(const struct lm *a, void (*fn)(const struct lm *a, struct an_group *g))
{
	struct module *m = a->m;
	uint8_t *seen = calloc(m->ngroup + 1, 1);
	uint32_t *stack = malloc((m->ngroup + 1) * 8), n = 0;

	if (!seen || !stack)
		abort();
	for (uint32_t root = 0; root < m->ngroup; root++) {
		if (seen[root] || m->group[root].reason != MAP_OK)
			continue;
		seen[root] = 1;
		stack[0] = root;
		stack[1] = 0;
		n = 1;
		while (n) {
			struct an_group *g = &m->group[stack[2 * n - 2]];
			uint32_t *k = &stack[2 * n - 1], c = AN_NONE;

			while (*k < g->ncallee && c == AN_NONE) {
				c = by_slot(g, *k) ? AN_NONE : g->callee[*k].group;
				if (c != AN_NONE && seen[c])
					c = AN_NONE;
				++*k;
			}
			if (c == AN_NONE) {
				fn(a, g);
				n--;
				continue;
			}
			seen[c] = 1;
			stack[2 * n] = c;
			stack[2 * n + 1] = 0;
			n++;
		}
	}
	free(seen);
	free(stack);
}

/* ---- 3: need ---- */

/* true: it needs more than was known */
static bool need_more(const struct lm *a, struct an_group *g)
{
	struct df f = flow_of(a, g, L(g)->need, true);
	uint64_t before = 0, after = 0;

	for (uint32_t b = 0; b < g->nblock; b++)
		before += f.bin[b];
	for (uint32_t k = 0; k < g->ncallee; k++)
		look_at(&f, g->insn[g->callee[k].insn].block);
	solve(&f);
	for (uint32_t b = 0; b < g->nblock; b++)
		after += f.bin[b]; /* bits are only added */
	return after != before;
}

static void need_first(const struct lm *a, struct an_group *g)
{
	struct df f = flow_of(a, g, L(g)->need, true);

	look_at_all(&f);
	solve(&f);
	for (uint32_t k = 0; k < g->ncallee; k++)
		L(g)->late |= !L(&a->m->group[g->callee[k].group])->done;
	L(g)->done = true;
}

/* Did one of g's callees come to need more, in this pass over all groups or the one before? */
static bool news(const struct module *m, const struct an_group *g, uint32_t pass)
{
	for (uint32_t k = 0; k < g->ncallee; k++)
		if (L(&m->group[g->callee[k].group])->changed + 1 >= pass)
			return true;
	return false;
}

static void needs(const struct lm *a)
{
	struct module *m = a->m;
	bool again = true;

	bottom_up(a, need_first);
	for (uint32_t pass = 2; again; pass++) { /* call cycles */
		again = false;
		for (uint32_t gi = 0; gi < m->ngroup; gi++) {
			struct an_group *g = &m->group[gi];

			if (g->reason != MAP_OK || !(pass == 2 ? L(g)->late : news(m, g, pass)) ||
			    !need_more(a, g))
				continue;
			L(g)->changed = pass;
			again = true;
		}
	}
	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		L(&m->group[gi])->done = false;
}

/* ---- 4: liveret ---- */

/* What it needs is the answer where nothing of interest is read behind it, and where the search starts from, if not. */
static void reach_group(const struct lm *a, struct an_group *g, uint8_t *dirty)
{
	struct module *m = a->m;
	struct df f = flow_of(a, g, L(g)->need, true);

	f.ret = L(g)->ureach;
	if (f.ret) {
		f.bin = memcpy(a->bin, f.bin, (g->nblock + 1ul) * sizeof(*f.bin));
		look_at_exits(&f);
		solve(&f);
	}
	for (uint32_t k = 0; k < g->ncallee; k++) {
		struct live *t = L(&m->group[g->callee[k].group]);
		uint32_t b = g->insn[g->callee[k].insn].block, r;

		if (by_slot(g, k))
			continue;
		r = block_out(&f, b);
		if (g->insn[g->callee[k].insn].flow != FLOW_CALL)
			r = L(g)->ureach;
		r &= ~RET_ABI;
		if (r & ~t->ureach) {
			t->ureach |= r;
			dirty[g->callee[k].group] = 1;
		}
	}
}

static void liverets(const struct lm *a)
{
	struct module *m = a->m;
	uint8_t *dirty = malloc(m->ngroup + 1);
	bool again = true;

	if (!dirty)
		abort();
	memset(dirty, 1, m->ngroup + 1);
	while (again) {
		again = false;
		for (uint32_t gi = 0; gi < m->ngroup; gi++) {
			if (!dirty[gi] || m->group[gi].reason != MAP_OK)
				continue;
			dirty[gi] = 0;
			again = true;
			reach_group(a, &m->group[gi], dirty);
		}
	}
	free(dirty);
}

/* ---- 5: the result ---- */

static uint32_t fill(const struct df *f)
{
	const struct an_group *g = f->g;
	struct live *l = L(g);
	uint32_t dead_reload = 0;

	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct live_block *k = &f->sum[b];
		uint32_t v = block_out(f, b), i = g->block[b].first + g->block[b].n;

		if (k->end == END_CALL || k->end == END_ICALL)
			l->before[--i] = v = call_before(f, k, v | f->pads);
		while (i-- > g->block[b].first) {
			uint32_t r = l->use[i] >> RELOAD_SHIFT & 0x1f;

			if (r && !(v >> (r - 1) & 1))
				dead_reload |= 1u << (r - 1);
			l->before[i] = v = (v & ~l->def[i]) | (l->use[i] & ALL) | f->pads;
		}
	}
	return dead_reload;
}

static void live_group(const struct lm *a, struct an_group *g)
{
	struct live *l = g->live;
	struct df f = flow_of(a, g, l->bin, false);
	uint32_t more;

	look_at_all(&f);
	do {
		f.ret = RET_ABI | (CALLER_SAVED & ~l->clob) | l->ureach | l->retextra;
		if (g->bare)
			f.ret = ALL;
		solve(&f);
		more = fill(&f) & ~f.ret;
		l->retextra |= more;
		look_at_exits(&f);
	} while (more);
	memset(f.dirty, 0, (g->nblock + 63) / 64 * 8);
	g->sum->liveret = l->ureach | l->retextra;
	l->done = true;
}

/* The copy of a stub compares before it jumps: not to what reads the flags of its caller. */
static void unlink_flags(struct module *m)
{
	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		struct an_group *g = &m->group[gi];
		uint32_t n = 0;

		for (uint32_t k = 0; k < g->ncallee; k++)
			if (!by_slot(g, k) || !(entry_live(m, &g->callee[k]) & FLAGS_BIT))
				g->callee[n++] = g->callee[k];
		g->ncallee = n;
	}
}

/* Recorded, and replayed: a replay finds the place of a signal by registers (MAP_PLACE), dead ones among them, as it cannot
 * be known in a function which of them its callers need. So none is borrowed without being saved. */
static void all_matter(struct module *m)
{
	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		const struct an_group *g = &m->group[gi];

		for (uint32_t i = 0; L(g)->before && i < g->ninsn; i++)
			L(g)->before[i] |= GPR_ALL;
		for (uint32_t b = 0; L(g)->bin && b < g->nblock; b++)
			L(g)->bin[b] |= GPR_ALL;
	}
}

/* Nobody asks for them any more, and plans and copies want the room: live_facts finds them again if need be. */
static void drop_sets(struct live *l)
{
	free(l->use);
	l->use = l->def = NULL;
}

int live_module(struct module *m, int jobs)
{
	struct lm a = {.m = m};
	struct live_block *sum;
	uint32_t blocks = 0, most = 0;

	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		blocks += m->group[gi].nblock;
		if (m->group[gi].nblock > most)
			most = m->group[gi].nblock;
	}
	sum = malloc((blocks + 1) * sizeof(*sum));
	a.dirty = calloc(most / 64 + 1, sizeof(*a.dirty));
	a.bin = malloc((most + 1) * sizeof(*a.bin));
	if (!sum || !a.dirty || !a.bin)
		abort();
	blocks = 0;
	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		struct an_group *g = &m->group[gi];

		if (!g->live)
			g->live = calloc(1, sizeof(struct live));
		if (!g->live)
			abort();
		L(g)->sum = sum + blocks;
		blocks += g->nblock;
		L(g)->done = L(g)->late = false;
		L(g)->ureach = L(g)->retextra = L(g)->changed = 0;
	}
	par_for(m->ngroup, jobs, usedef, &a);
	clobbers(m);
	needs(&a);
	liverets(&a);
	bottom_up(&a, live_group);
	free(sum);
	free(a.dirty);
	free(a.bin);
	unlink_flags(m);
	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		drop_sets(L(&m->group[gi]));
	if (m->mapflags & MAP_F_NONDET)
		all_matter(m);
	return 0;
}

void live_drop(struct an_group *g)
{
	struct live *l = g->live;

	drop_sets(l);
	free(l->before);
	free(l->form);
	l->before = l->bin = l->need = NULL;
	l->form = NULL;
}

void live_free(struct an_group *g)
{
	struct live *l = g->live;

	if (!l)
		return;
	live_drop(g);
	free(l->emul);
	free(l);
	g->live = NULL;
}

uint32_t live_after(const struct an_group *g, uint32_t insn)
{
	const struct an_block *b = &g->block[g->insn[insn].block];

	/* terminators: what every successor reads is live before them too, so this is safe */
	if (insn + 1 < b->first + b->n)
		return L(g)->before[insn + 1];
	return b->succ[1] != AN_NONE && g->insn[insn].flow == FLOW_NEXT ? L(g)->bin[b->succ[1]] : ALL;
}
