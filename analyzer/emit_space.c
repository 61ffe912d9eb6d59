/* SPDX-License-Identifier: MIT
 *
 * emit_space.c - log offsets, and where the space checks go
 *
 * Offsets: each block has a fixed offset from r15 at which its logs begin; who reaches it with
 * another one moves r15 by the difference first (settle(), emit_ctl.c). It is that of the first way
 * in, in address order, so an edge that closes no difference costs nothing, and joins need no r15 of
 * their own. 0 where a check, a stub or other groups require it, and where it would exceed
 * SPACE_OFF (longer encodings). A stub that is the only way in passes its own bytes on. r15 plus the
 * offset is always the stream's position, so r15 never points behind bytes not yet written.
 *
 * Checks: run.h allows RUN_CHUNK_SLACK bytes between two tests on any path. Proof:
 *   - every cycle of the copy's flow graph in which bytes are logged has a checked block
 *     (strongly connected components without the edges into checked blocks, until none is left
 *     that logs);
 *   - what remains has no logging cycle, so from(b) = most bytes from the start of b to the next
 *     check or to where control leaves the copy, is finite; kept below SPACE_PATH by more checks;
 *   - a place where control comes in (direct entry, stub) is checked unless nothing can be
 *     logged from it; a stub in front of a checked block may log its mark before that check.
 * So an unchecked run of bytes is at most one path, one long block's piece and one stub:
 * SPACE_PATH + SPACE_BLOCK_MAX + a few hundred bytes, however calls and returns follow each other.
 *
 *        test $1<<20,%r15d
 *        jne cold ─────────────▶ mov %rax,%gs:SPILL1; lea resume(%rip),%rax
 *   resume: …                    mov %rax,%gs:RESUME; mov %gs:SPILL1,%rax
 *                                jmp *%gs:CHUNK_FULL
 *
 * Copies for Intel PT (MAP_F_PT) compare with memory instead: cmp %r15,%gs:LIMIT; jbe cold. It is where the bit would be
 * set, until somebody asks for a keyframe by setting it to 0 (run.h). So that one is not long in coming there are checks
 * that no log needs: at every entry, in cycles with a ptwrite, and in those with other cycles in them. What may
 * run for long without one is an innermost loop that calls nothing and tells nothing.
 *
 * Where flags are live: mov %rax,%gs:SPILL1; lahf; seto %al; mov %rax,%gs:FLAGS; test;
 * jne; add $0x7f,%al; sahf; mov %gs:SPILL1,%rax. (seto gives 0 or 1; adding 0x7f overflows exactly for 1.)
 */
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "scratch.h"

#define SPACE_PATH 32768u
#define SPACE_OFF 100u

static const struct an_insn *last(const struct an_group *g, uint32_t b)
{
	return &g->insn[g->block[b].first + g->block[b].n - 1];
}

/* successors reached inside the copy, without a stub; returns how many (may exceed max) */
uint32_t flow_succ(const struct em *e, uint32_t b, uint32_t *out, uint32_t max)
{
	const struct an_block *k = &e->g->block[b];
	uint8_t fl = last(e->g, b)->flow;
	uint32_t n = 0;

	if (fl == FLOW_CALL || fl == FLOW_ICALL || fl == FLOW_RET || fl == FLOW_HALT)
		return 0;
	if (fl == FLOW_IJMP) {
		const struct an_table *t;

		if (glue_jump(e->m, e->g, b) != JUMP_PLAIN)
			return 0;
		t = &e->g->table[k->table];
		for (uint32_t i = 0; i < t->ntarget; i++, n++)
			if (n < max)
				out[n] = t->target[i];
		return n;
	}
	for (int s = 0; s < 2; s++)
		if (k->succ[s] != AN_NONE) {
			if (n < max)
				out[n] = k->succ[s];
			n++;
		}
	return n;
}

#define SHARED 32 /* jump tables at most that several jumps of a group go by */

/* All successors in one array: from start[b] to stop[b]. */
struct flow {
	uint32_t *to, *start, *stop;
	uint32_t *end; /* unchecked paths go along those edges but for the ones to checked blocks: up to here */
	uint32_t *as; /* the first block with the same successors, if they are a jump table's */
	uint32_t *in; /* bit n: block is in table n of these, which several jumps go by; by one: the number of the table, plus 1 */
	uint8_t *table;
	uint32_t ntable;
	uint8_t *self; /* per block: an edge leads to it itself */
	uint8_t *late; /* one leads to it from itself or a block that is further on */
	bool back; /* there are some of those */
};

/* Interpreters jump from hundreds of places to the same hundreds of targets. */
static bool shared_table(struct em *e, struct flow *f, uint32_t b, uint32_t *first, uint32_t *nfirst)
{
	const struct an_table *t = &e->g->table[e->g->block[b].table];

	for (uint32_t i = 0; i < *nfirst; i++) {
		const struct an_table *o = &e->g->table[e->g->block[first[i]].table];

		if (o->ntarget != t->ntarget || memcmp(o->target, t->target, t->ntarget * sizeof(*t->target)))
			continue;
		f->as[b] = first[i];
		f->start[b] = f->start[first[i]];
		f->stop[b] = f->stop[first[i]];
		if (!f->table[first[i]]) {
			f->table[first[i]] = (uint8_t)++f->ntable;
			for (uint32_t k = 0; k < t->ntarget; k++)
				f->in[t->target[k]] |= 1u << (f->ntable - 1);
		}
		f->table[b] = f->table[first[i]];
		return true;
	}
	if (*nfirst < SHARED)
		first[(*nfirst)++] = b;
	return false;
}

static void flow_build(struct em *e, struct flow *f)
{
	uint32_t nb = e->g->nblock, cap = 2 * nb, n = 0, first[SHARED], nfirst = 0;

	for (uint32_t i = 0; i < e->g->ntable; i++)
		cap += e->g->table[i].ntarget;
	f->start = scratch((5 * nb + cap) * sizeof(*f->start) + 3 * nb);
	if (!f->start)
		abort();
	f->stop = f->start + nb;
	f->end = f->stop + nb;
	f->as = f->end + nb;
	f->in = f->as + nb;
	f->to = f->in + nb;
	f->self = (uint8_t *)(f->to + cap);
	f->late = f->self + nb;
	f->table = f->late + nb;
	memset(f->self, 0, 3 * nb);
	memset(f->in, 0, nb * sizeof(*f->in));
	f->ntable = 0;
	f->back = false;
	for (uint32_t b = 0; b < nb; b++) {
		uint8_t fl = last(e->g, b)->flow;

		f->as[b] = b;
		if (fl != FLOW_IJMP || glue_jump(e->m, e->g, b) != JUMP_PLAIN ||
		    !shared_table(e, f, b, first, &nfirst)) {
			f->start[b] = n;
			f->stop[b] = n += flow_succ(e, b, f->to + n, cap - n);
		}
		f->end[b] = fl == FLOW_SYSCALL ? f->start[b] : f->stop[b];
		for (uint32_t i = f->start[b]; i < f->stop[b]; i++) {
			uint32_t to = f->to[i];

			e->nflow[to] = 1;
			if (to > b)
				continue;
			f->self[b] |= to == b && i < f->end[b];
			f->late[to] = f->back = true;
		}
	}
}

static uint32_t weight(const struct em *e, uint32_t b)
{
	return e->bytes[b] < SPACE_BLOCK_MAX + 1024 ? e->bytes[b] : SPACE_BLOCK_MAX + 1024;
}

/* ---- cycles: Tarjan's algorithm, explicit stack ---- */

struct scc {
	uint32_t *idx, *low, *stk, *call;
	uint32_t *it; /* next edge, by the first block that has them: who comes later need not look at those that were followed */
	uint32_t *seen; /* what an edge to a block finds: 0, it is new; its idx while it is on the stack; NOWAY */
	uint32_t least[SHARED]; /* of what the edges of a shared table find */
	uint32_t *found, nfound; /* blocks to be checked */
	uint32_t sp, next;
};
#define NOWAY 0xffffffffu

static void on_stack(const struct flow *f, struct scc *t, uint32_t v)
{
	t->seen[v] = t->idx[v];
	for (uint32_t in = f->in[v]; in; in &= in - 1) {
		uint32_t *least = &t->least[__builtin_ctz(in)];

		*least = t->idx[v] < *least ? t->idx[v] : *least;
	}
}

/* what has come onto the stack later is taken off at the same time */
static void off_stack(const struct flow *f, struct scc *t, uint32_t v)
{
	t->seen[v] = NOWAY;
	for (uint32_t in = f->in[v]; in; in &= in - 1) {
		uint32_t *least = &t->least[__builtin_ctz(in)];

		*least = *least == t->idx[v] ? NOWAY : *least;
	}
}

static void scc_close(struct em *e, const struct flow *f, struct scc *t, uint32_t v)
{
	uint32_t from = t->sp, best = v, deepest = 0;
	bool need = false;

	do
		off_stack(f, t, t->stk[--from]);
	while (t->stk[from] != v);
	if (t->sp - from == 1 && (!f->self[v] || e->chk_body[v])) {
		t->sp = from;
		return;
	}
	for (uint32_t i = from; i < t->sp; i++) {
		uint32_t w = t->stk[i];
		const struct an_block *k = &e->g->block[w], *o = &e->g->block[best];

		need |= e->bytes[w] || e->tells[w];
		deepest = k->depth > deepest ? k->depth : deepest;
		if (k->depth < o->depth || (k->depth == o->depth && (k->flags & AN_B_LOOPHEAD) &&
					    !(o->flags & AN_B_LOOPHEAD)))
			best = w;
	}
	t->sp = from;
	if (e->m->mapflags & MAP_F_PT)
		need |= deepest > e->g->block[best].depth;
	if (need)
		t->found[t->nfound++] = best; /* checked after this pass */
}

/* the first of the edges from `at` to `end` that leads to a new block; *low: the least of what the others find */
static const uint32_t *scan(const uint32_t *seen, const uint32_t *at, const uint32_t *end, uint32_t *low)
{
	uint32_t l = *low, k;

	for (; at < end && (k = seen[*at]); at++)
		l = k < l ? k : l;
	*low = l;
	return at;
}

static void scc_from(struct em *e, const struct flow *f, struct scc *t, uint32_t root)
{
	uint32_t depth = 0, v = root;

	for (;;) { /* v is new */
		t->idx[v] = t->low[v] = ++t->next;
		if (!e->chk_body[v])
			on_stack(f, t, v);
		t->stk[t->sp++] = v;
		t->call[depth++] = v;
		while (depth) {
			uint32_t *it, low, end;

			v = t->call[depth - 1];
			it = &t->it[f->as[v]];
			low = t->low[v];
			end = f->end[v];
			*it = (uint32_t)(scan(t->seen, f->to + *it, f->to + end, &low) - f->to);
			if (*it < end) {
				t->low[v] = low;
				v = f->to[(*it)++];
				break;
			}
			if (f->table[v] && t->least[f->table[v] - 1] < low)
				low = t->least[f->table[v] - 1];
			if (low == t->idx[v])
				scc_close(e, f, t, v);
			depth--;
			if (depth && low < t->low[t->call[depth - 1]])
				t->low[t->call[depth - 1]] = low;
		}
		if (!depth)
			return;
	}
}

static void cut_cycles(struct em *e, const struct flow *f)
{
	uint32_t nb = e->g->nblock;
	struct scc t = {0};
	uint32_t *mem = f->back ? scratch((size_t)nb * 7 * 4) : NULL;

	if (!f->back)
		return;
	if (!mem)
		abort();
	t.idx = mem;
	t.low = mem + nb;
	t.stk = mem + 2 * nb;
	t.it = mem + 3 * nb;
	t.call = mem + 4 * nb;
	t.seen = mem + 5 * nb;
	t.found = mem + 6 * nb;
	do {
		for (uint32_t b = 0; b < nb; b++)
			t.seen[b] = e->chk_body[b] ? NOWAY : 0;
		memset(t.least, 0xff, sizeof(t.least)); /* NOWAY */
		memcpy(t.it, f->start, nb * sizeof(*t.it));
		t.next = t.sp = t.nfound = 0;
		for (uint32_t b = 0; b < nb; b++)
			if (!t.seen[b] || e->chk_body[b])
				scc_from(e, f, &t, b);
		for (uint32_t i = 0; i < t.nfound; i++)
			e->chk_body[t.found[i]] = 1;
	} while (t.nfound);
}

/* ---- paths ---- */

/* most bytes from the end of b on */
static uint32_t most_behind(const struct em *e, const struct flow *f, const uint32_t *from, uint32_t b)
{
	uint32_t most = 0;

	for (uint32_t s = f->start[b], end = f->end[b]; s < end; s++)
		if (!e->chk_body[f->to[s]] && from[f->to[s]] > most)
			most = from[f->to[s]];
	return most;
}

/* from: most bytes from the start of each block on. look: of those to be looked at again */
static void paths(struct em *e, const struct flow *f, uint32_t *from, uint8_t *look)
{
	uint32_t nb = e->g->nblock;
	bool first = true, again = true;

	memset(from, 0, nb * 4);
	memset(look, f->back, nb);
	for (; again; first = false) {
		again = false;
		for (uint32_t b = nb; b-- > 0;) {
			const struct an_block *k = &e->g->block[b];
			uint32_t most;

			if (!first && !look[b])
				continue;
			look[b] = 0;
			most = most_behind(e, f, from, b) + weight(e, b);
			if (most == from[b])
				continue;
			from[b] = most;
			if (first && !f->late[b])
				continue; /* all that lead to it are still to come */
			for (uint32_t i = 0; i < k->npred; i++) {
				look[k->pred[i]] = 1;
				again |= k->pred[i] >= b;
			}
		}
	}
}

static bool shorten(struct em *e, const struct flow *f, const uint32_t *from)
{
	bool added = false;

	for (uint32_t b = 0; b < e->g->nblock; b++)
		if (from[b] > SPACE_PATH / 2 && !e->chk_body[b] &&
		    most_behind(e, f, from, b) <= SPACE_PATH / 2)
			added = (e->chk_body[b] = 1);
	return added;
}

/* control may leave the copy's static flow at the end of b */
static bool inner_exit(const struct em *e, uint32_t b)
{
	const struct an_block *k = &e->g->block[b];
	uint8_t fl = last(e->g, b)->flow;

	if (fl == FLOW_JCC)
		return k->succ[0] == AN_NONE || k->succ[1] == AN_NONE;
	return !(fl == FLOW_NEXT || fl == FLOW_JMP) || (k->succ[0] == AN_NONE && k->succ[1] == AN_NONE);
}

/* r15 is exact at the end of b */
static bool ends_exact(const struct em *e, uint32_t b)
{
	return inner_exit(e, b) || e->bytes[b] > SPACE_BLOCK_MAX;
}

/* control reaches block `to` with offset off; returns the offset with which it goes on */
static uint32_t meet(struct em *e, uint32_t to, uint32_t off)
{
	if (e->off_in[to] == AN_NONE)
		e->off_in[to] = off <= SPACE_OFF ? off : 0;
	return e->off_in[to];
}

static void offsets(struct em *e, const struct flow *f)
{
	uint32_t nb = e->g->nblock;

	for (uint32_t b = 0; b < nb; b++) {
		bool fixed = e->chk_body[b] || (e->g->block[b].flags & AN_B_ENTRY);
		bool stub = e->stub[b] != STUB_NONE && e->stub[b] != STUB_PLAIN;

		e->off_in[b] = fixed || e->stub[b] != STUB_NONE ? 0 : AN_NONE;
		if (!fixed && stub && !e->nflow[b])
			e->off_in[b] = e->sbytes[b];
	}
	for (uint32_t b = 0; b < nb; b++) {
		uint32_t off = meet(e, b, 0), n = f->stop[b] - f->start[b];

		off = ends_exact(e, b) ? 0 : off + e->bytes[b];
		/* a conditional jump's target first: r15 moves before the jump, or on the way on */
		for (uint32_t i = 0; i < n && i < 2; i++)
			off = meet(e, f->to[f->start[b] + i], off);
	}
}

void space_plan(struct em *e)
{
	uint32_t nb = e->g->nblock;
	struct scratch_mark mark = scratch_mark();
	uint32_t *from = scratch(nb * 5);
	uint8_t *look = (uint8_t *)(from + nb);
	struct flow f;

	if (!from)
		abort();
	flow_build(e, &f);
	cut_cycles(e, &f);
	do
		paths(e, &f, from, look);
	while (shorten(e, &f, from));
	for (uint32_t b = 0; b < nb; b++) {
		if ((e->g->block[b].flags & AN_B_ENTRY) && (from[b] || e->m->mapflags & MAP_F_PT))
			e->chk_body[b] = 1;
		e->chk_stub[b] = e->stub[b] != STUB_NONE && e->stub[b] != STUB_PLAIN && !e->chk_body[b] &&
				 e->sbytes[b] + from[b];
	}
	offsets(e, &f);
	scratch_release(mark);
}

/* ---- code ---- */

/* slot for rax: the other one where a loop keeps r15 in a register (r15_loop.c) */
static unsigned slot(const struct em *e)
{
	return e->cur_rot == NOREG ? 1 : 0;
}

static uint32_t slot_off(const struct em *e)
{
	return slot(e) ? TCB_SPILL1 : TCB_SPILL0;
}

static void flags_back(struct em *e)
{
	struct code *c = &e->c;

	code_insn(c);
	code_bytes(c, "\x04\x7f", 2); /* add $0x7f,%al */
	code_insn(c);
	code_byte(c, 0x9e); /* sahf */
	c->cur.flags &= ~MAP_X_FLAGS_SAVED;
	code_gs(c, 0x8b, X_RAX, slot_off(e), true);
	c->cur.spill[slot(e)] = NOREG;
}

/* at log offset 0 */
void space_check(struct em *e, uint32_t vaddr, uint32_t live)
{
	bool save = live & FLAGS_BIT;
	struct code *c = &e->c;
	struct cold *k;

	e->cold = code_more(e->cold, e->ncold, &e->capcold, sizeof(*e->cold));
	k = &e->cold[e->ncold++];
	*k = (struct cold){code_label(c), code_label(c), vaddr, save, e->cur_rot};
	if (save) {
		code_gs(c, 0x89, X_RAX, slot_off(e), true);
		c->cur.spill[slot(e)] = X_RAX;
		code_insn(c);
		code_byte(c, 0x9f); /* lahf */
		code_bytes(c, "\x0f\x90\xc0", 3); /* seto %al */
		code_gs(c, 0x89, X_RAX, TCB_FLAGS, true);
		c->cur.flags |= MAP_X_FLAGS_SAVED;
	}
	if (e->m->mapflags & MAP_F_PT) {
		code_gs(c, 0x39, R15, TCB_LIMIT, true); /* cmp %r15,%gs:LIMIT; jbe */
		code_jcc(c, 6, k->label);
	} else {
		code_insn(c);
		code_bytes(c, "\x41\xf7\xc7", 3); /* test $bit,%r15d */
		code_u32(c, 1u << RUN_CHUNK_FULL_BIT);
		code_jcc(c, 5, k->label);
	}
	if (save)
		flags_back(e);
	code_here(c, k->resume);
	e->since = 0;
}

void space_cold(struct em *e)
{
	struct code *c = &e->c;

	for (uint32_t i = 0; i < e->ncold; i++) {
		struct cold *k = &e->cold[i];

		e->cur_rot = k->rot;
		state(e, k->vaddr);
		c->off = 0;
		code_here(c, k->label);
		if (k->saved) {
			c->cur.spill[slot(e)] = X_RAX;
			c->cur.flags |= MAP_X_FLAGS_SAVED;
			flags_back(e);
		}
		code_gs(c, 0x89, X_RAX, slot_off(e), true);
		c->cur.spill[slot(e)] = X_RAX;
		code_lea_label(c, X_RAX, k->resume);
		code_gs(c, 0x89, X_RAX, TCB_RESUME, true);
		code_gs(c, 0x8b, X_RAX, slot_off(e), true);
		c->cur.spill[slot(e)] = NOREG;
		code_gs(c, 0xff, 4, TCB_CHUNK_FULL, false);
	}
	e->cur_rot = NOREG;
}
