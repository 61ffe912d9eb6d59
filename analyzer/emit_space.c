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
 *   - every cycle of the copy's flow graph in which bytes are logged has a checked block (emit_cycle.c);
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
#include "emit_cycle.h"
#include "scratch.h"

#define SPACE_PATH 32768u
#define SPACE_OFF 100u

static uint32_t weight(const struct em *e, uint32_t b)
{
	return e->bytes[b] < SPACE_BLOCK_MAX + 1024 ? e->bytes[b] : SPACE_BLOCK_MAX + 1024;
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
