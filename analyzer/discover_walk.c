/* SPDX-License-Identifier: MIT
 *
 * discover_walk.c - recursive descent: which bytes are instructions
 *
 * Starts from the work list and follows fall-through, direct jumps and direct calls. What an
 * instruction mentions on the way (addresses of code and data) is noted for the stages that
 * come after. Whatever is found wrong marks the piece it is in with a reason: such code stays
 * opaque, the walk goes on elsewhere.
 */
#include <string.h>
#include "decode.h"
#include "disc.h"
#include "disc_head.h"

/* The first reason stands, but that some instruction cannot be moved says less than that there are none: it is data's, too. */
static void blame(struct disc *d, uint32_t v, uint8_t reason)
{
	uint32_t p = disc_piece(d, v);
	uint8_t was = p == AN_NONE ? 0 : d->piece.v[p].reason;

	if (p != AN_NONE && (!was || (was == MAP_R_UNRELOCATABLE && reason == MAP_R_DECODE)))
		d->piece.v[p].reason = reason;
}

void disc_push(struct disc *d, uint32_t v, uint8_t flags)
{
	if (!disc_in(d, v))
		return;
	d->st[v - d->lo] |= flags;
	if (!IL_START(d->il[v - d->lo]) && !VEC_PUSH(&d->work, v))
		d->nomem = true;
}

/* Sets of image addresses, one bit each. */
static void bit_set(const struct disc *d, uint64_t *set, uint64_t v)
{
	v -= d->m->vaddr_lo;
	if (v < d->m->vaddr_hi - d->m->vaddr_lo)
		set[v / 64] |= 1ull << (v % 64);
}

static bool bit_get(const struct disc *d, const uint64_t *set, uint64_t v)
{
	v -= d->m->vaddr_lo;
	return v < d->m->vaddr_hi - d->m->vaddr_lo && (set[v / 64] >> (v % 64) & 1);
}

void disc_label(struct disc *d, uint64_t v)
{
	bit_set(d, d->lab, v);
}
bool disc_labelled(const struct disc *d, uint32_t v)
{
	return bit_get(d, d->lab, v);
}
void disc_in_table(struct disc *d, uint32_t v)
{
	bit_set(d, d->tab, v);
}
bool disc_tabled(const struct disc *d, uint32_t v)
{
	return bit_get(d, d->tab, v);
}

/* Direct target of an instruction by its end, bytes and length. */
static uint32_t target_of(uint32_t end, const uint8_t *p, unsigned len, bool near)
{
	return end + (near ? (int8_t)p[len - 1] : disc_word(p + len - 4));
}

uint32_t disc_target(const struct disc *d, uint32_t v)
{
	uint8_t b = d->il[v - d->lo];
	const uint8_t *p;

	switch (IL_KIND(b)) {
	case K_JMP8:
	case K_JCC8:
		p = elf_at(d->m, v, IL_LEN(b));
		return target_of(v + IL_LEN(b), p, IL_LEN(b), true);
	case K_JMP32:
	case K_JCC32:
	case K_CALL:
		p = elf_at(d->m, v, IL_LEN(b));
		return target_of(v + IL_LEN(b), p, IL_LEN(b), false);
	}
	return AN_NONE;
}

/* An address in text that code or data names: an entry if a function starts there. */
void disc_named(struct disc *d, uint32_t from, uint64_t v)
{
	uint32_t p;

	if (v >= UINT32_MAX || !disc_in(d, v) || (p = disc_piece(d, v)) == AN_NONE) {
		disc_label(d, v);
		return;
	}
	if (d->piece.v[p].start == v && d->piece.v[p].kind != PC_GAP) {
		disc_push(d, v, ST_ENTRY | ST_TAKEN);
		if (disc_in(d, from) && !VEC_PUSH(&d->fn, (struct edge){from, v}))
			d->nomem = true;
		return;
	}
	d->st[v - d->lo] |= ST_TAKEN;
	if (!VEC_PUSH(&d->lea, (struct edge){from, v}))
		d->nomem = true;
}

/* A read of text as data: its size needs the operands. */
static void text_read(struct disc *d, uint32_t pc, uint32_t t)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint32_t n = 8;

	if (decode_full(elf_at(d->m, pc, IL_LEN(d->il[pc - d->lo])), IL_LEN(d->il[pc - d->lo]), &in, op))
		for (int i = 0; i < in.operand_count; i++)
			if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && op[i].size / 8 > n)
				n = op[i].size / 8;
	for (uint32_t i = 0; i < n && disc_in(d, t + i); i++)
		d->st[t + i - d->lo] |= ST_DATA;
}

/* Addresses the instruction at pc mentions: rip-relative, absolute, and immediates where the
 * module is not position independent. b: its bytes */
static void note_refs(struct disc *d, uint32_t pc, const struct head *h, const uint8_t *b)
{
	bool rip = (h->flags & H_RIP) && !(h->flags & H_HINT);
	uint64_t t = 0;

	if (!(h->flags & (H_RIP | H_ABS | H_IMM32)))
		return;
	if (rip)
		t = pc + h->len + (int64_t)disc_word(b + h->disp);
	else if (!d->m->pie && (h->flags & H_ABS) && !(h->flags & H_HINT) && disc_word(b + h->disp) > 0)
		t = (uint32_t)disc_word(b + h->disp);
	if (t && ((h->flags & H_LEA) || t >= UINT32_MAX || !disc_in(d, t) || disc_piece(d, t) == AN_NONE))
		disc_named(d, pc, t);
	else if (t && rip)
		text_read(d, pc, t);
	else if (t)
		disc_named(d, pc, t);
	if (!d->m->pie && (h->flags & H_IMM32)) {
		uint64_t v = h->flags & H_SIGNED ? (uint64_t)(int64_t)disc_word(b + h->imm)
						 : (uint32_t)disc_word(b + h->imm);

		if (v >= d->m->vaddr_lo && v < d->m->vaddr_hi)
			disc_named(d, pc, v);
	}
}

static bool is_prefix(uint8_t b)
{
	return b == 0xf0 || b == 0xf2 || b == 0xf3;
}

/* Does the instruction at `pc` equal the one at `start` without its leading prefixes? glibc jumps
 * over `lock` when there is one thread. Both forms are then instructions of the group. */
static bool prefix_variant(struct disc *d, uint32_t start, uint32_t pc, unsigned len)
{
	const uint8_t *p = elf_at(d->m, start, pc - start);

	if (start + IL_LEN(d->il[start - d->lo]) != pc + len)
		return false;
	for (uint32_t i = 0; i < pc - start; i++)
		if (!is_prefix(p[i]))
			return false;
	d->nalt++;
	return true;
}

/* Marks n bytes of il, at most 14, as inside an instruction if they are of none: eight at a time, there is slack. */
static bool claim_free(uint8_t *il, unsigned n)
{
	const uint64_t in = 0x0101010101010101u * IL_IN;
	uint64_t a, b = 0;

	if (!n)
		return true;
	memcpy(&a, il, 8);
	if (n > 8)
		memcpy(&b, il + 8, 8);
	if (a << (n < 8 ? 64 - 8 * n : 0) || (n > 8 && b << (128 - 8 * n)))
		return false;
	a |= in >> (n < 8 ? 64 - 8 * n : 0);
	memcpy(il, &a, 8);
	if (n > 8) {
		b |= in >> (128 - 8 * n);
		memcpy(il + 8, &b, 8);
	}
	return true;
}

/* Marks the bytes of the instruction at pc; false if it overlaps another one. */
static bool claim(struct disc *d, uint32_t pc, unsigned len, unsigned kind)
{
	uint8_t *il = d->il + (pc - d->lo);
	bool ok = true;

	if (il[0] == IL_IN) {
		uint32_t s = pc;

		while (d->il[s - d->lo] == IL_IN)
			s--;
		if (!prefix_variant(d, s, pc, len)) {
			blame(d, s, MAP_R_OVERLAP);
			return false;
		}
		il[0] = len | kind << 4;
		return true;
	}
	il[0] = len | kind << 4;
	if (claim_free(il + 1, len - 1))
		return true;
	for (unsigned i = 1; i < len; i++) {
		if (IL_START(il[i])) {
			/* the form without prefix was found first */
			if (!prefix_variant(d, pc, pc + i, IL_LEN(il[i]))) {
				blame(d, pc + i, MAP_R_OVERLAP);
				ok = false;
			}
			break;
		}
		il[i] = IL_IN;
	}
	return ok;
}

static bool add_edge(struct disc *d, struct edge e, bool fall)
{
	if (fall ? !VEC_PUSH(&d->fall, e) : !VEC_PUSH(&d->cross, e))
		d->nomem = true;
	return true;
}

static void jump_to(struct disc *d, const struct piece *p, uint32_t pc, uint32_t t)
{
	if (!disc_in(d, t) || disc_piece(d, t) == AN_NONE)
		return; /* leaves the text: nobody's business but the tail call's */
	if (p->kind == PC_GAP || t < p->start || t >= p->end)
		add_edge(d, (struct edge){pc, t}, false);
	disc_push(d, t, ST_LEAD);
}

/* Does the call at pc come back? */
static bool call_returns(struct disc *d, const struct piece *p, uint32_t pc, uint32_t next, uint32_t t)
{
	int c = t == AN_NONE ? NAME_PLAIN : disc_name_class(d, t);

	if (c == NAME_TWICE)
		d->st[pc - d->lo] |= ST_TWICE;
	if (c == NAME_NORET || next >= p->end || disc_is_pad(d, next, p->end) ||
	    (p->kind == PC_GAP && (d->st[next - d->lo] & ST_ENTRY))) {
		d->st[pc - d->lo] |= ST_NORET;
		return false;
	}
	if (t == next)
		blame(d, pc, MAP_R_ESCAPE); /* get-pc: the pushed address is used as a value */
	return true;
}

/* the name of the GOT slot an indirect call through memory uses */
static void icall_name(struct disc *d, uint32_t pc, const struct head *h, const uint8_t *b)
{
	if (!(h->flags & H_RIP))
		return;
	switch (disc_name_class(d, pc + h->len + disc_word(b + h->disp))) {
	case NAME_TWICE:
		d->st[pc - d->lo] |= ST_TWICE;
		break;
	case NAME_NORET:
		d->st[pc - d->lo] |= ST_NORET;
		break;
	}
}

/* The system call that ends a signal handler: the kernel made the handler return to its mov. Unwinders and
 * debuggers that meet that address look at the bytes: what the jump at the mov leaves stays as it is. */
static void sigreturn(struct disc *d, uint32_t pc)
{
	uint32_t mov = elf_sigreturn(d->m, pc - 7) ? pc - 7 : pc - 5;

	if (!disc_in(d, mov))
		return;
	disc_push(d, mov, ST_ENTRY | ST_TAKEN);
	memset(d->st + (mov + 5 - d->lo), ST_DATA, pc + 2 - (mov + 5));
}

/* Code without unwind tables is compiled by rules of its own: what it calls may have taken arguments off the stack when
 * it comes back (V8's builtins). So the log says where the stack is then, as after what returns twice. */
static uint8_t own_rules(const struct piece *p)
{
	return p->kind == PC_GAP ? ST_TWICE : 0;
}

/* Handles the end of one instruction. Returns the address to go on at, AN_NONE to stop. */
static uint32_t step(struct disc *d, const struct piece *p, uint32_t pc, const struct head *h,
		     const uint8_t *b, int kind)
{
	uint32_t next = pc + h->len, t;

	switch (kind) {
	case K_NEXT:
		return next;
	case K_JMP8:
	case K_JMP32:
		jump_to(d, p, pc, target_of(next, b, h->len, kind == K_JMP8));
		return AN_NONE;
	case K_JCC8:
	case K_JCC32:
		jump_to(d, p, pc, target_of(next, b, h->len, kind == K_JCC8));
		return next;
	case K_CALL:
		d->ncall++;
		t = target_of(next, b, h->len, false);
		d->st[pc - d->lo] |= own_rules(p);
		if (!call_returns(d, p, pc, next, t))
			next = AN_NONE;
		if (disc_in(d, t) && disc_piece(d, t) != AN_NONE && t != pc + h->len)
			disc_push(d, t, ST_ENTRY);
		else if (t == pc + h->len && next == AN_NONE)
			disc_push(d, t, ST_ENTRY);
		return next;
	case K_ICALL:
		d->ncall++;
		icall_name(d, pc, h, b);
		d->st[pc - d->lo] |= own_rules(p);
		if ((d->st[pc - d->lo] & ST_NORET) || !call_returns(d, p, pc, next, AN_NONE))
			return AN_NONE;
		return next;
	case K_IJMP:
		if (!VEC_PUSH(&d->ijmp, (struct ijmp){.vaddr = pc, .table = AN_NONE}))
			d->nomem = true;
		return AN_NONE;
	case K_RET:
	case K_HALT:
		return AN_NONE;
	case K_SYSCALL:
		if (!elf_sigreturn(d->m, pc - 7) && !elf_sigreturn(d->m, pc - 5))
			return next;
		sigreturn(d, pc);
		return AN_NONE;
	}
	return next;
}

/* as it is kept */
static unsigned kept_kind(int kind, const struct head *h)
{
	if (kind != K_NEXT || !(h->flags & H_RIP))
		return kind;
	switch (h->len - h->disp) {
	case 4:
		return K_RIP;
	case 5:
		return K_RIP1;
	case 6:
		return K_RIP2;
	case 8:
		return K_RIP4;
	}
	return kind;
}

/* One straight line of code, from v to the first unconditional transfer. */
static void walk_line(struct disc *d, uint32_t v)
{
	struct head h;
	uint32_t pi = disc_piece(d, v), last = AN_NONE, from = v;
	const uint8_t *whole = NULL; /* the bytes of p from `from` on, where the file has all of them */
	struct piece *p = NULL;

	for (uint32_t pc = v; pc != AN_NONE;) {
		const uint8_t *b;
		int kind;

		if (!p || pc >= p->end) {
			uint32_t q = p ? disc_piece(d, pc) : pi;

			if (q == AN_NONE) { /* runs out of the text */
				if (p)
					blame(d, last, MAP_R_DECODE);
				return;
			}
			if (p)
				add_edge(d, (struct edge){last, pc}, true);
			p = &d->piece.v[q];
			whole = elf_at(d->m, pc, p->end - pc);
			from = pc;
		}
		if (IL_START(d->il[pc - d->lo]))
			return;
		b = whole ? whole + (pc - from) : elf_at(d->m, pc, 1);
		if (!b || !disc_head(d->memo, &d->fast, b, d->m->text_hi - pc, &h) || h.len > p->end - pc ||
		    !(whole || elf_at(d->m, pc, h.len))) {
			blame(d, pc, MAP_R_DECODE);
			return;
		}
		kind = h.kind;
		if (kind < 0) {
			blame(d, pc, MAP_R_UNRELOCATABLE);
			kind = h.flags & H_GOES_ON ? K_NEXT : K_HALT;
		}
		/* a program's own breakpoint: its handler returns behind it, and may look whether it is one. At the end, before a
		 * function's place, or in a row: filler */
		if ((h.flags & H_INT3) && pc + 1 < p->end && !disc_is_pad(d, pc + 1, p->end) &&
		    b[1] != 0xcc && (pc + 1) % 16) {
			kind = K_NEXT;
			d->st[pc - d->lo] |= ST_DATA;
		}
		p->bases |= (h.flags & H_BASE) != 0;
		if (!claim(d, pc, h.len, kept_kind(kind, &h))) {
			blame(d, pc, MAP_R_OVERLAP);
			return;
		}
		note_refs(d, pc, &h, b);
		last = pc;
		pc = step(d, p, pc, &h, b, kind);
	}
}

void disc_walk(struct disc *d)
{
	d->walked++;
	while (d->work.n && !d->nomem) {
		uint32_t v = d->work.v[--d->work.n];

		if (disc_piece(d, v) != AN_NONE && !IL_START(d->il[v - d->lo]))
			walk_line(d, v);
	}
}
