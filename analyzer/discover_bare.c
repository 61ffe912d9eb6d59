/* SPDX-License-Identifier: MIT
 *
 * discover_bare.c - functions without unwind tables that only their address names
 *
 *     lea  filter_avx2(%rip),%rax          code in an FDE, or a pointer in data
 *     mov  %rax,8(%rdi)
 *     …
 *     filter_avx2: …                       hand-written, in a gap, its symbol stripped
 *
 * Nothing says that there is code: assembly keeps tables in text, too, and a patch in one of those would be read by the
 * program. So what is there must be a function in every respect that can be checked from its first instruction on:
 *
 * - it is aligned as functions are, or right behind the end of one; no known instruction or datum lies across it, and no
 *   code that takes the address reads through it (discover_read.c);
 * - all that is reached by direct jumps and calls decodes, is what programs contain, and comes to a
 *   return, a jump, a trap, or code that is known;
 * - it reads no general register and no flag that has no value at a function's beginning (psABI, 3.2.3), but to
 *   save it. Numbers and text taken for instructions do so within a few of them.
 *
 * Whatever fails stays opaque. Where code lies behind tables (discover_info.c), there are other rules for registers, more
 * chance hits (any number that a Haskell program knows may be an address in its text), and hardly a byte that is not known by
 * now: what is named must begin right behind the end of known code.
 */
#include <string.h>
#include "decode.h"
#include "disc.h"
#include "disc_head.h"
#include "run.h"
#include "table.h"

/* instructions: less than the first may be chance */
enum { ALIGN = 8, SHORTEST = 4, LONGEST = 20000 };

/* Calls of a module, as found by then: a call's return and what it calls are sites with a mark each, of which a process can have
 * RUN_MARK_IDS (run.h), or none of the module is traced. Beyond that (chromium) what only addresses name stays opaque. */
enum { CALLS_MAX = RUN_MARK_IDS / 10 * 3 };

/* registers, by number, and the flags */
enum {
	FLAGS = 1 << 16,
	ARGS = 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9, /* rdi rsi rdx rcx r8 r9 */
	RSP = 1 << 4,
	ALL = 0x1ffff,
	RESULTS = 1 << 0 | 1 << 2, /* rax rdx */
	/* GHC's own convention (LLVM's manual: ghccc): rbx rbp rsi rdi r8 r9 r12 to r15 */
	JUMPED = 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 0xf300 | RSP,
	CALLED = 1 << 17 /* the instruction before is a call */
};

struct place {
	uint32_t v, have; /* have: what has a value there */
};

enum { SEEN = 1, REFUSED = 2 };

struct bare {
	struct disc *d;
	uint8_t *seen; /* by address: SEEN: an instruction of a function that was accepted, or of this one.
	                  REFUSED: what begins there is none's */
	VEC(uint32_t) trail; /* what is set in it: of the functions before, and of this one, from there on: */
	uint32_t first;
	VEC(struct place) work;
	uint32_t calls; /* in known code, and in the trail */
	bool labels; /* they were for disc_bare_label(), when disc.walked was: */
	uint32_t walked;
};

/* thread-local data, or what guards the stack: through fs, which no other instruction has a use for */
static bool thread_local(const struct dins *x)
{
	for (int k = 0; k < x->in.operand_count_visible; k++)
		if (x->op[k].type == ZYDIS_OPERAND_TYPE_MEMORY && x->op[k].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		    x->op[k].mem.segment == ZYDIS_REGISTER_FS)
			return true;
	return false;
}

/* Where a compiler has control end: at instructions that trap, whatever they name (ud1's operands are a number for the
 * handler). Data has breakpoints, too: they are filler behind a call that does not come back, or stand before a ud2. */
static bool traps(const struct dins *x, const uint8_t *behind, uint32_t have)
{
	switch (x->in.mnemonic) {
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return true;
	case ZYDIS_MNEMONIC_INT3:
		return have & CALLED || (behind && behind[0] == 0x0f && behind[1] == 0x0b);
	default:
		return false;
	}
}

/* What no function of a program contains: data, then, or a kernel's. */
static bool odd(const struct dins *x)
{
	const ZydisDecodedInstruction *in = &x->in;

	switch (in->meta.category) {
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SEGOP:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_VTX:
		return true;
	default:
		break;
	}
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_XLAT:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return true;
	default:
		return in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
		       in->attributes & (ZYDIS_ATTRIB_IS_PRIVILEGED | ZYDIS_ATTRIB_HAS_SEGMENT_GS) ||
		       (in->attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS && !thread_local(x));
	}
}

/* Does it make its result from nothing, whatever its operands held? */
static bool zeroes(const struct dins *x)
{
	return (x->in.mnemonic == ZYDIS_MNEMONIC_XOR || x->in.mnemonic == ZYDIS_MNEMONIC_SUB ||
		x->in.mnemonic == ZYDIS_MNEMONIC_SBB) &&
	       x->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && x->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       x->op[0].reg.value == x->op[1].reg.value;
}

/* a register stored to the stack: its value is nobody's business */
static bool saves(const struct dins *x)
{
	if (x->in.mnemonic == ZYDIS_MNEMONIC_PUSH)
		return x->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
	return x->in.mnemonic == ZYDIS_MNEMONIC_MOV && x->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       x->op[0].mem.base == ZYDIS_REGISTER_RSP && x->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static uint32_t bit(ZydisRegister r)
{
	int n = tv_gpr(r);

	return n < 0 ? 0 : 1u << n;
}

/* What the instruction needs, and what has a value behind it. */
static uint32_t needs(const struct dins *x, uint32_t *gives)
{
	const ZydisAccessedFlags *f = x->in.cpu_flags;
	bool nothing = zeroes(x), saved = saves(x), nop = x->in.mnemonic == ZYDIS_MNEMONIC_NOP;
	uint32_t n = f && f->tested ? FLAGS : 0;

	*gives = f && (f->modified | f->set_0 | f->set_1) ? FLAGS : 0;
	for (int k = 0; k < x->in.operand_count && !nop; k++) {
		const ZydisDecodedOperand *o = &x->op[k];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			n |= bit(o->mem.base) | bit(o->mem.index);
		} else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if ((o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) && !nothing && !saved)
				n |= bit(o->reg.value);
			if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				*gives |= bit(o->reg.value);
		}
	}
	return n;
}

static bool go(struct bare *b, uint32_t v, uint32_t have)
{
	if (!VEC_PUSH(&b->work, (struct place){v, have}))
		b->d->nomem = true;
	return true;
}

/* The instruction at v, its head in h: true if it may be one; where it goes on is in the work list */
static bool one(struct bare *b, uint32_t v, const struct head *h, const uint8_t *p, uint32_t have)
{
	uint32_t next = v + h->len, gives;
	struct dins x;

	if (!decode_full(p, h->len, &x.in, x.op))
		return false;
	if (traps(&x, elf_at(b->d->m, next, 2), have))
		return true;
	if (odd(&x) || needs(&x, &gives) & ~have)
		return false;
	have = (have | gives) & ~CALLED;
	b->calls += h->kind == K_CALL || h->kind == K_ICALL;
	switch (h->kind) {
	case K_RET:
	case K_IJMP:
		return true;
	case K_HALT:
		return false;
	case K_JMP8:
		return go(b, next + (int8_t)p[h->len - 1], have);
	case K_JCC8:
		return go(b, next + (int8_t)p[h->len - 1], have) && go(b, next, have);
	case K_JMP32:
	case K_JCC32:
		return go(b, next + disc_word(p + h->len - 4), have) &&
		       (h->kind == K_JMP32 || go(b, next, have));
	case K_CALL: /* hand-written code knows what its own functions leave alone, and gives them what it likes */
		return go(b, next + disc_word(p + h->len - 4), ALL) && go(b, next, have | RESULTS | CALLED);
	case K_ICALL:
		return go(b, next, have | RESULTS | CALLED);
	}
	return go(b, next, have);
}

static bool on_data(const struct disc *d, uint32_t v, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (d->st[v + i - d->lo] & ST_DATA || (i && IL_START(d->il[v + i - d->lo])))
			return true;
	return false;
}

static void set(struct bare *b, uint32_t v, uint8_t what)
{
	b->seen[v - b->d->lo] |= what;
	if (!VEC_PUSH(&b->trail, v))
		b->d->nomem = true;
}

/* false: what is reached from the work list is no function's */
static bool all(struct bare *b)
{
	struct disc *d = b->d;

	while (b->work.n && !d->nomem) {
		struct place w = b->work.v[--b->work.n];
		struct head h;
		const uint8_t *p;

		if (!disc_in(d, w.v) || d->il[w.v - d->lo] == IL_IN)
			return false;
		if (b->seen[w.v - d->lo] & SEEN || IL_START(d->il[w.v - d->lo]))
			continue;
		p = elf_at(d->m, w.v, 1);
		if (!p || b->trail.n - b->first == LONGEST ||
		    !disc_head(d->memo, &d->fast, p, d->m->text_hi - w.v, &h) || !elf_at(d->m, w.v, h.len) ||
		    h.kind < 0 || on_data(d, w.v, h.len))
			return false;
		set(b, w.v, SEEN);
		if (!one(b, w.v, &h, p, w.have))
			return false;
	}
	return true;
}

static void forget(struct bare *b, uint32_t first)
{
	while (b->trail.n > first)
		b->seen[b->trail.v[--b->trail.n] - b->d->lo] = 0;
}

static bool is_code(struct bare *b, uint32_t v, uint32_t have)
{
	uint32_t ncall = b->calls;
	bool ok;

	b->work.n = 0;
	b->first = b->trail.n;
	go(b, v, have);
	ok = all(b) && (b->trail.n - b->first >= SHORTEST || have == ALL || have == JUMPED);
	if (!ok) {
		forget(b, b->first);
		b->calls = ncall;
	}
	return ok;
}

/* The map is as large as the text, and labels are many: it is made once, and left clean. */
static struct bare *start(struct disc *d)
{
	struct bare *b = d->bare;

	if (!b && (b = d->bare = calloc(1, sizeof(*b)))) {
		b->d = d;
		b->seen = calloc(d->size + 16ull, 1);
	}
	if (!b || !b->seen) {
		d->nomem = true;
		return NULL;
	}
	forget(b, 0);
	b->walked = d->walked;
	return b;
}

void disc_bare_free(struct disc *d)
{
	if (!d->bare)
		return;
	free(d->bare->seen);
	free(d->bare->trail.v);
	free(d->bare->work.v);
	free(d->bare);
}

/* Could a jump go to v, in a gap? A group's jumps ask for the same labels one after the other: what was found holds until
 * more is known of the text, and for all that was reached. */
bool disc_bare_label(struct disc *d, uint32_t v)
{
	struct bare *b = d->bare && d->bare->labels && d->bare->walked == d->walked ? d->bare : start(d);

	if (!b)
		return false;
	b->labels = true;
	if (!b->seen[v - d->lo] && !is_code(b, v, ALL))
		set(b, v, REFUSED);
	return b->seen[v - d->lo] & SEEN;
}

/* Does known code end at v, and control does not go on there? */
static bool ends(const struct disc *d, const struct piece *p, uint32_t v)
{
	uint32_t last = v;

	while (--last > p->start && d->il[last - d->lo] == IL_IN)
		;
	return IL_START(d->il[last - d->lo]) && last + IL_LEN(d->il[last - d->lo]) == v &&
	       !disc_falls(d, last);
}

static bool begins(const struct disc *d, const struct piece *p, uint32_t v)
{
	return v % ALIGN == 0 || v == p->start || ends(d, p, v);
}

/* the same, with no more than padding between */
static bool follows(const struct disc *d, const struct piece *p, uint32_t v)
{
	uint32_t end = v;

	while (end > p->start && !d->il[end - 1 - d->lo] && v - end < 15)
		end--;
	return v == p->start || (end > p->start && ends(d, p, end) && (end == v || disc_is_pad(d, end, v)));
}

/* Does code read through one of these n, which all name the same address? */
static bool is_read(const struct disc *d, const struct edge *e, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (disc_in(d, e[k].from) && disc_read_through(d, e[k].from, e[k].to))
			return true;
	return false;
}

static bool begins_bare(struct bare *b, uint32_t p, uint32_t v, const struct edge *e, uint32_t n)
{
	return !b->d->il[v - b->d->lo] && begins(b->d, &b->d->piece.v[p], v) && !is_read(b->d, e, n) &&
	       is_code(b, v, ARGS | RSP);
}

/* among code behind tables: known code, too, is a function's of its own where it is named */
static bool begins_behind(struct bare *b, uint32_t p, uint32_t v, const struct edge *e, uint32_t n)
{
	uint8_t il = b->d->il[v - b->d->lo];
	bool table = true; /* all of them words of a jump table: that jump's business */

	for (uint32_t k = 0; k < n; k++)
		table &= disc_tabled(b->d, e[k].from);
	if (table)
		return false;
	return IL_START(il) || (!il && follows(b->d, &b->d->piece.v[p], v) && !is_read(b->d, e, n) &&
				(is_code(b, v, ARGS | RSP) || is_code(b, v, JUMPED)));
}

/* Is v, behind a table, code that is jumped to? *own is set if that is not by the psABI */
bool disc_bare_jumped(struct disc *d, uint32_t v, bool *own)
{
	struct bare *b = d->bare && !d->bare->labels && d->bare->walked == d->walked ? d->bare : start(d);

	if (!b)
		return false;
	b->labels = false;
	if (is_code(b, v, ARGS | RSP))
		return true;
	if (!is_code(b, v, JUMPED))
		return false;
	*own |= b->trail.n - b->first >= SHORTEST;
	return true;
}

/* Adds those that are named by now to the walk's work. False: there was none */
bool disc_bare(struct disc *d)
{
	struct bare *b = start(d);
	bool any = false;

	if (b) {
		b->labels = false;
		b->calls = d->ncall;
	}
	for (uint32_t i = 0, n; i < d->lea.n && !d->nomem && b->calls < CALLS_MAX; i += n) {
		uint32_t v = d->lea.v[i].to, p = disc_piece(d, v);

		for (n = 1; i + n < d->lea.n && d->lea.v[i + n].to == v; n++)
			;
		if (p == AN_NONE || d->piece.v[p].kind != PC_GAP ||
		    (d->st[v - d->lo] & ST_ENTRY && IL_START(d->il[v - d->lo])) ||
		    !(d->jumped ? begins_behind(b, p, v, &d->lea.v[i], n)
				: begins_bare(b, p, v, &d->lea.v[i], n)))
			continue;
		disc_push(d, v, ST_ENTRY | ST_TAKEN);
		any = true;
	}
	return any && !d->nomem;
}
