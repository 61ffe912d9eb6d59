/* SPDX-License-Identifier: MIT
 *
 * discover_info.c - code directly behind the table that describes it: what GHC makes
 *
 *            .quad layout                 info table, for the garbage collector, which has the address
 *            .long type, offset           of the code behind it
 *     f:     lea  -24(%rbp),%rax          no symbol, no unwind table; entered by jumps through closures
 *            …                            and its own stack (jmp *(%rbx), jmp *(%rbp)), with
 *            movq $r,-24(%rbp)            values in any register
 *            jmp  *(%rbx)
 *            .quad layout
 *            .long type, offset
 *     r:     …                            and goes on here, likewise
 *
 * The address of such code is stored: in data (closures), or by code, as where to go on. A number may look like one, though,
 * where a file has no relocations. It is taken for one if
 *
 * - what lies before it looks like the end of a table: a small number, then another one or the distance of something in data;
 * - it is code in what discover_bare.c checks, with registers as GHC uses them.
 *
 * The table's last words are data then (never a patch, no padding); what lies before them is nobody's (mark_padding()).
 */
#include <string.h>
#include "disc.h"

enum {
	TABLE = 16, /* bytes that every table has at its end */
	TYPES = 128, /* more than there are types of closures */
	TAGS = 1 << 16, /* and alternatives of a data type */
	CASES = 1 << 8, /* words looked at of a jump table, */
	NEAR = 1 << 16, /* which leads no further */
};

static bool any_insn(const struct disc *d, uint32_t v, uint32_t end)
{
	while (v < end && !d->il[v - d->lo])
		v++;
	return v < end;
}

static bool in_data(const struct disc *d, uint64_t v)
{
	return v >= d->m->vaddr_lo && v < d->m->vaddr_hi && !elf_is_text(d->m, (uint32_t)v);
}

static bool has_table(const struct disc *d, uint32_t v)
{
	const uint8_t *b = v % 8 || v < d->lo + TABLE ? NULL : elf_at(d->m, v - TABLE, TABLE);
	uint32_t type;
	int32_t offset;

	if (!b)
		return false;
	memcpy(&type, b + 8, 4);
	memcpy(&offset, b + 12, 4);
	return type && type < TYPES && ((offset >= 0 && offset < TAGS) || in_data(d, v + (int64_t)offset));
}

/* Is v, which is named, the beginning of code behind a table? If it was not known, it is checked. */
static bool is_behind(struct disc *d, uint32_t v)
{
	uint32_t p = disc_piece(d, v);
	bool own = false;

	if (p == AN_NONE || d->piece.v[p].kind != PC_GAP || v - d->piece.v[p].start < TABLE ||
	    d->il[v - d->lo] == IL_IN || d->st[v - 1 - d->lo] & ST_DATA || !has_table(d, v) ||
	    any_insn(d, v - TABLE, v) || (!d->il[v - d->lo] && !disc_bare_jumped(d, v, &own)))
		return false;
	d->jumped |= own;
	return true;
}

static void set_data(struct disc *d, uint32_t v, uint32_t n, bool data)
{
	for (uint32_t k = v - d->lo; k < v - d->lo + n && k < d->size; k++)
		d->st[k] = data ? d->st[k] | ST_DATA : d->st[k] & ~ST_DATA;
}

/* Symbols of such code say that it is an object: names it, if it is code. True: there was some */
static bool objects(struct disc *d)
{
	bool any = false, own;

	for (uint32_t i = 0; i < d->x->sym.n; i++) {
		const struct elf_sym *s = &d->x->sym.v[i];

		if (s->kind != ELF_S_OBJECT || !disc_in(d, s->vaddr) || d->il[s->vaddr - d->lo] ||
		    !has_table(d, s->vaddr))
			continue;
		set_data(d, s->vaddr, s->size, false);
		if (disc_bare_jumped(d, s->vaddr, &own)) {
			disc_named(d, AN_NONE, s->vaddr);
			any = true;
		} else {
			set_data(d, s->vaddr, s->size, true);
		}
	}
	return any;
}

/* Adds the code that is named by now to the walk's work. False: there was none */
bool disc_info(struct disc *d)
{
	bool any = false;

	if (d->jumped && !d->behind_objects) {
		d->behind_objects = true;
		if (objects(d))
			return !d->nomem;
	}
	for (uint32_t i = 0; i < d->lea.n && !d->nomem; i++) {
		uint32_t v = d->lea.v[i].to;

		if ((i && d->lea.v[i - 1].to == v) || !is_behind(d, v))
			continue;
		set_data(d, v - TABLE, TABLE, true);
		any |= !d->il[v - d->lo];
		disc_push(d, v, ST_ENTRY | ST_TAKEN);
		if (!VEC_PUSH(&d->behind, v))
			d->nomem = true;
	}
	return any && !d->nomem;
}

/* The table of the jump at v, if it is `jmp *T(,%index,8)`; AN_NONE */
static uint32_t table_of(const struct disc *d, uint32_t v)
{
	const uint8_t *b = elf_at(d->m, v, IL_LEN(d->il[v - d->lo]));
	uint32_t rex = b && (b[0] & 0xf0) == 0x40, t;

	if (!b || IL_LEN(d->il[v - d->lo]) != 7 + rex || b[rex] != 0xff || b[rex + 1] != 0x24 ||
	    (b[rex + 2] & 0xc7) != 0xc5)
		return AN_NONE;
	memcpy(&t, b + rex + 3, 4);
	return t;
}

/* GHC's jump tables have holes (an evaluated closure's tag is not 0), and nothing shows their bound. So their words, and those of
 * what lies behind them, if they are a table's, too, become entries: the jump leaves to any of them. */
static bool cases(struct disc *d, uint32_t jump)
{
	uint32_t t = table_of(d, jump);
	bool any = false, fixed;
	uint64_t to;

	for (uint32_t k = 0; t != AN_NONE && k < CASES && elf_word(d->m, t + 8 * k, &to, &fixed); k++) {
		uint32_t v = (uint32_t)to;

		if (!to)
			continue;
		if (to + NEAR < jump || to > (uint64_t)jump + NEAR || !disc_in(d, v) ||
		    d->il[v - d->lo] == IL_IN || (d->st[v - d->lo] & ST_DATA) ||
		    (!d->il[v - d->lo] && !disc_bare_label(d, v)))
			break;
		any |= !(d->st[v - d->lo] & ST_ENTRY);
		disc_push(d, v, ST_ENTRY | ST_TAKEN);
	}
	return any;
}

bool disc_cases(struct disc *d)
{
	bool any = false;

	for (uint32_t i = 0; d->jumped && i < d->ijmp.n && !d->nomem; i++)
		if (!d->ijmp.v[i].exact)
			any |= cases(d, d->ijmp.v[i].vaddr);
	return any && !d->nomem;
}

/* Code that control was taken to fall from into a table: a call that does not come back was its end. */
void disc_info_check(struct disc *d)
{
	for (uint32_t i = 0; i < d->behind.n; i++)
		for (uint32_t v = d->behind.v[i] - TABLE; v < d->behind.v[i]; v++)
			if (d->il[v - d->lo])
				d->piece.v[disc_piece(d, v)].reason = MAP_R_OVERLAP;
}
