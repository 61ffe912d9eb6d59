/* SPDX-License-Identifier: MIT
 *
 * emit_code.c - a growing buffer of machine code
 *
 * Branches to labels are appended in their two-byte form. code_relax() then lets those grow
 * whose target is out of reach, until nothing changes (growth only, so it ends), and moves the
 * bytes apart. Everything that names a position (labels, fix-ups, references, address map) is
 * kept in positions of the short form and translated at the end:
 *
 *   short   |..|eb xx|......|74 xx|...|        position p
 *   final   |..|eb xx|......|0f 84 xx xx xx xx|...|   p + growth of all branches before p
 *
 * The state of the program's registers (struct map_xlat) is noted where an instruction starts
 * and the state differs from the one before. With it, how much of the stream was stored by then.
 */
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "scratch.h"

void *grow(void *p, uint32_t n, uint32_t *cap, size_t size)
{
	void *q;

	if (n < *cap)
		return p;
	*cap = *cap ? *cap * 2 : 64;
	if (*cap <= n)
		*cap = n + 64;
	q = realloc(p, *cap * size);
	if (!q)
		abort(); /* out of memory: nothing was written yet */
	return q;
}

void *code_more(void *p, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t was = *cap;

	if (n < was)
		return p;
	*cap = was ? was * 2 : 16;
	if (*cap <= n)
		*cap = n + 16;
	p = scratch_more(p, was * size, *cap * size);
	if (!p)
		abort(); /* out of memory: nothing was written yet */
	return p;
}

void code_init(struct code *c, uint32_t insns, uint32_t blocks)
{
	c->b = code_more(NULL, 12 * insns + 32 * blocks, &c->cap, 1);
	c->xl = code_more(NULL, insns + 4 * blocks, &c->capxl, sizeof(*c->xl));
	c->label = code_more(NULL, 3 * blocks, &c->caplabel, sizeof(*c->label));
	c->br = code_more(NULL, blocks, &c->capbr, sizeof(*c->br));
}

void code_bytes(struct code *c, const void *p, uint32_t n)
{
	if (c->cap - c->n < n)
		c->b = code_more(c->b, c->n + n, &c->cap, 1);
	memcpy(c->b + c->n, p, n);
	c->n += n;
}

/* a state, but for where it is and of what instruction, is one number */
_Static_assert(offsetof(struct map_xlat, off) == offsetof(struct map_xlat, flags) + 4 &&
		       offsetof(struct map_xlat, ahead) == offsetof(struct map_xlat, flags) + 6 &&
		       sizeof(struct map_xlat) == offsetof(struct map_xlat, flags) + 8,
	       "flags and registers, bytes, bytes");

void code_insn(struct code *c)
{
	struct map_xlat *x = c->xl + c->nxl;
	uint32_t regs;
	uint64_t now, was;

	if (c->off > UINT16_MAX || c->ahead > MAP_AHEAD_MAX)
		c->fail = "too much is logged at once";
	memcpy(&regs, &c->cur.flags, sizeof(regs));
	now = regs | (uint64_t)c->off << 32 | (uint64_t)c->ahead << 48;
	if (c->nxl) {
		memcpy(&was, &x[-1].flags, sizeof(was));
		if (!c->start && x[-1].vaddr == c->cur.vaddr && (was & ~(uint64_t)MAP_X_START) == now)
			return;
		if (x[-1].copy_off == c->n) {
			x--;
			c->nxl--;
		}
	}
	if (c->nxl == c->capxl) {
		c->xl = code_more(c->xl, c->nxl, &c->capxl, sizeof(*c->xl));
		x = c->xl + c->nxl;
	}
	now |= c->start ? MAP_X_START : 0;
	x->copy_off = c->n;
	x->vaddr = c->cur.vaddr;
	memcpy(&x->flags, &now, sizeof(now));
	c->nxl++;
	c->start = false;
}

void code_reserve(struct code *c, uint32_t n)
{
	if (c->capxl - c->nxl < n)
		c->xl = code_more(c->xl, c->nxl + n, &c->capxl, sizeof(*c->xl));
	if ((c->cap - c->n) / CODE_ROOM < n)
		c->b = code_more(c->b, c->n + n * CODE_ROOM, &c->cap, 1);
}

uint32_t code_labels(struct code *c, uint32_t n)
{
	c->label = code_more(c->label, c->nlabel + n, &c->caplabel, sizeof(*c->label));
	for (uint32_t i = 0; i < n; i++)
		c->label[c->nlabel + i].pos = AN_NONE;
	c->nlabel += n;
	return c->nlabel - n;
}

void code_here(struct code *c, uint32_t label)
{
	c->label[label] = (struct label){c->n, c->nbr};
}

static void branch(struct code *c, uint8_t op, uint32_t label)
{
	code_insn(c);
	c->br = code_more(c->br, c->nbr, &c->capbr, sizeof(*c->br));
	c->br[c->nbr++] = (struct branch){c->n, label, op, false};
	code_byte(c, op);
	code_byte(c, 0);
}

void code_jmp(struct code *c, uint32_t label)
{
	branch(c, 0xeb, label);
}

void code_jcc(struct code *c, unsigned cc, uint32_t label)
{
	branch(c, 0x70 | cc, label);
}

void code_mod32(struct code *c, uint32_t vaddr, uint32_t tail)
{
	c->fix = code_more(c->fix, c->nfix, &c->capfix, sizeof(*c->fix));
	c->fix[c->nfix++] = (struct map_fixup){c->n, MAP_FIX_MOD32};
	/* the end of the instruction is subtracted when positions are final: tail is kept in the kind */
	c->fix[c->nfix - 1].kind |= tail << 8;
	code_u32(c, vaddr);
}

void code_jmp_mod(struct code *c, uint32_t vaddr)
{
	code_insn(c);
	code_byte(c, 0xe9);
	code_mod32(c, vaddr, 0);
}

void code_ref(struct code *c, int cc, uint32_t group, uint32_t block)
{
	code_insn(c);
	if (cc < 0) {
		code_byte(c, 0xe9);
	} else {
		code_byte(c, 0x0f);
		code_byte(c, 0x80 | cc);
	}
	c->ref = code_more(c->ref, c->nref, &c->capref, sizeof(*c->ref));
	c->ref[c->nref++] = (struct emit_ref){c->n, group, block};
	code_u32(c, 0);
}

/* 65 [REX] op modrm sib disp32: an absolute address of 32 bits, segment gs */
void code_gs(struct code *c, unsigned op, unsigned reg, uint32_t tcb, bool w)
{
	unsigned rex = (w ? 0x48 : 0) | (reg & 8 ? 0x44 : 0), n = rex ? 2 : 1;
	uint32_t head = op | (0x04u | (reg & 7) << 3) << 8 | 0x25u << 16;
	uint8_t *p;

	code_insn(c);
	p = code_room(c);
	p[0] = 0x65;
	p[1] = (uint8_t)rex;
	memcpy(p + n, &head, 4);
	memcpy(p + n + 3, &tcb, 4);
	c->n += n + 7;
}

void code_lea_label(struct code *c, unsigned reg, uint32_t label)
{
	code_insn(c);
	code_byte(c, 0x48 | (reg & 8 ? 4 : 0));
	code_byte(c, 0x8d);
	code_byte(c, 0x05 | (reg & 7) << 3);
	c->lr = code_more(c->lr, c->nlr, &c->caplr, sizeof(*c->lr));
	c->lr[c->nlr++] = (struct lref){c->n, label, false};
	code_u32(c, 0);
}

void code_r15mem(struct code *c, unsigned reg, uint32_t off)
{
	unsigned r = (reg & 7) << 3 | 7;

	if (!off) {
		code_byte(c, r);
	} else if (off < 128) {
		code_byte(c, 0x40 | r);
		code_byte(c, off);
	} else {
		code_byte(c, 0x80 | r);
		code_u32(c, off);
	}
}

void code_advance(struct code *c, int32_t n)
{
	if (!n)
		return;
	code_insn(c);
	code_bytes(c, "\x4d\x8d", 2); /* lea n(%r15),%r15 */
	if (n == (int8_t)n) {
		code_byte(c, 0x7f);
		code_byte(c, n);
	} else {
		code_byte(c, 0xbf);
		code_u32(c, n);
	}
}

static uint32_t growth(const struct branch *b)
{
	return !b->rel32 ? 0 : b->op == 0xeb ? 3 : 4;
}

/* cum[i]: growth of the first i branches. Offsets that come one after the other, ascending, as all that is appended with the
 * code does: *i is where the last was found, 0 at first. */
static inline uint32_t shift(const struct branch *br, const uint32_t *cum, uint32_t *i, uint32_t off)
{
	while (br[*i].pos < off) /* the one behind the last is nowhere */
		++*i;
	return off + cum[*i];
}

static inline uint32_t shift_label(const struct code *c, const uint32_t *cum, uint32_t label)
{
	const struct label *l = &c->label[label];

	return l->pos + cum[l->nbr];
}

static void sum(const struct code *c, uint32_t *cum)
{
	cum[0] = 0;
	for (uint32_t i = 0; i < c->nbr; i++)
		cum[i + 1] = cum[i] + growth(&c->br[i]);
}

static inline int32_t distance(const struct code *c, const uint32_t *cum, uint32_t i)
{
	return (int32_t)(shift_label(c, cum, c->br[i].label) - (c->br[i].pos + 2 + cum[i + 1]));
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void spread(struct code *c, const uint32_t *cum, uint8_t *out)
{
	uint32_t from = 0, to = 0;

	for (uint32_t i = 0; i < c->nbr; i++) {
		const struct branch *b = &c->br[i];
		int32_t d = distance(c, cum, i);

		memcpy(out + to, c->b + from, b->pos - from);
		to += b->pos - from;
		from = b->pos + 2;
		if (!b->rel32) {
			out[to++] = b->op;
			out[to++] = d;
			continue;
		}
		if (b->op == 0xeb) {
			out[to++] = 0xe9;
		} else {
			out[to++] = 0x0f;
			out[to++] = b->op + 0x10;
		}
		put32(out + to, d);
		to += 4;
	}
	memcpy(out + to, c->b + from, c->n - from);
}

static void translate(struct code *c, const uint32_t *cum, uint8_t *out)
{
	const struct branch *br = c->br;
	uint32_t at = 0;

	for (uint32_t i = 0; i < c->nlr; i++) {
		uint32_t pos = shift(br, cum, &at, c->lr[i].pos);
		int32_t d = shift_label(c, cum, c->lr[i].label) - pos - (c->lr[i].rel8 ? 1 : 4);

		if (!c->lr[i].rel8)
			put32(out + pos, d);
		else if (d == (int8_t)d)
			out[pos] = d;
		else
			c->fail = "a short branch does not reach";
	}
	at = 0;
	for (uint32_t i = 0; i < c->nfix; i++) {
		struct map_fixup *f = &c->fix[i];
		uint32_t v, tail = f->kind >> 8;

		f->copy_off = shift(br, cum, &at, f->copy_off);
		f->kind &= 0xff;
		if (f->kind != MAP_FIX_MOD32)
			continue;
		memcpy(&v, out + f->copy_off, 4);
		put32(out + f->copy_off, v - (f->copy_off + 4 + tail));
	}
	at = 0;
	for (uint32_t i = 0; i < c->nref; i++)
		c->ref[i].text_off = shift(br, cum, &at, c->ref[i].text_off);
	at = 0;
	for (uint32_t i = 0; i < c->nxl; i++)
		c->xl[i].copy_off = shift(br, cum, &at, c->xl[i].copy_off);
	for (uint32_t i = 0; i < c->nlabel; i++)
		if (c->label[i].pos != AN_NONE)
			c->label[i].pos += cum[c->label[i].nbr];
}

int code_relax(struct code *c)
{
	uint32_t *cum = scratch((c->nbr + 1) * sizeof(*cum));
	uint8_t *out;
	bool again;

	for (uint32_t i = 0; i < c->nbr; i++)
		if (code_at(c, c->br[i].label) == AN_NONE)
			c->fail = "branch to a block that was not emitted";
	c->br = code_more(c->br, c->nbr, &c->capbr, sizeof(*c->br));
	c->br[c->nbr].pos = UINT32_MAX;
	if (!cum)
		abort();
	if (c->fail)
		return -1;
	do {
		again = false;
		sum(c, cum);
		for (uint32_t i = 0; i < c->nbr; i++) {
			int32_t d = distance(c, cum, i);

			if (!c->br[i].rel32 && d != (int8_t)d)
				c->br[i].rel32 = again = true;
		}
	} while (again);
	out = scratch(c->n + cum[c->nbr]);
	if (!out)
		abort();
	spread(c, cum, out);
	translate(c, cum, out);
	c->b = out;
	c->cap = c->n += cum[c->nbr];
	c->nbr = 0;
	return c->fail ? -1 : 0;
}
