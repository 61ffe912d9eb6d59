/* SPDX-License-Identifier: MIT
 *
 * cfi.c - one unwinding step from a module's .eh_frame, without the ELF file
 *
 * A map carries the read-only bytes of its module but no section headers. The binary search
 * table .eh_frame_hdr is recognised by its four encoding bytes, as every linker writes them,
 * and by consistency: its table must be ascending and its entries lie in read-only bytes.
 * Formats: LSB Core 5.0, 10.6; DWARF 4, 6.4.2; register numbers: psABI, figure 3.36.
 */
#include <string.h>
#include "dec.h"

enum { R_SAME, R_UNDEF, R_CFA_OFF, R_REG, R_OTHER };
#define NDW 17 /* 16 general registers, return address */

struct rules {
	uint64_t cfa_off; /* offsets wrap: what a damaged table says is used only where memory is known */
	uint32_t cfa_reg;
	uint8_t how[NDW];
	uint64_t off[NDW];
};

struct cur {
	const uint8_t *p, *end;
	bool bad;
};

static const uint8_t dw_to_hw[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

static uint64_t get(struct cur *c, unsigned n)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		c->p = c->end;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static uint64_t uleb(struct cur *c)
{
	uint64_t v = 0;

	for (unsigned s = 0; s < 64; s += 7) {
		uint8_t b = get(c, 1);

		v |= (uint64_t)(b & 0x7f) << s;
		if (!(b & 0x80))
			return v;
	}
	c->bad = true;
	return v;
}

static int64_t sleb(struct cur *c)
{
	uint64_t v = 0;

	for (unsigned s = 0; s < 64; s += 7) {
		uint8_t b = get(c, 1);

		v |= (uint64_t)(b & 0x7f) << s;
		if (!(b & 0x80))
			return s + 7 < 64 && (b & 0x40) ? (int64_t)(v | ~0ull << (s + 7)) : (int64_t)v;
	}
	c->bad = true;
	return (int64_t)v;
}

struct entry {
	int32_t loc, fde;
};

/* vaddr of the FDE that may hold vaddr ip, by a header at vaddr hdr; 0 if it is none */
static uint64_t search_hdr(const struct map *m, uint64_t hdr, uint64_t ip)
{
	const uint8_t *h = map_rodata(m, hdr, 12, NULL), *t;
	uint32_t n, lo = 0, hi;
	struct entry e;

	memcpy(&n, h + 8, 4);
	if (!n || n > (1u << 26))
		return 0;
	t = map_rodata(m, hdr + 12, (size_t)n * 8, NULL);
	if (!t)
		return 0;
	for (hi = n; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		memcpy(&e, t + 8 * (size_t)mid, 8);
		if (hdr + (int64_t)e.loc <= ip)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return 0;
	memcpy(&e, t + 8 * (size_t)(lo - 1), 8);
	return map_rodata(m, hdr + (int64_t)e.fde, 16, NULL) ? hdr + (int64_t)e.fde : 0;
}

static uint64_t find_fde(struct map *m, uint64_t ip)
{
	uint64_t known = m->eh_hdr ? search_hdr(m, m->eh_hdr, ip) : 0;
	static const uint8_t enc[4] = {1, 0x1b, 3, 0x3b};

	for (uint32_t i = 0; i < m->nro && !known; i++) {
		const struct map_rodata *r = &m->ro[i];
		const uint8_t *b = m->robytes + r->off;

		for (uint64_t at = -(uint64_t)r->vaddr & 3; at + 12 <= r->size; at += 4) {
			uint64_t fde = memcmp(b + at, enc, 4) ? 0 : search_hdr(m, r->vaddr + at, ip);

			if (fde) {
				m->eh_hdr = r->vaddr + at;
				return fde;
			}
		}
	}
	return known;
}

/* Runs call frame instructions up to vaddr ip. */
static void run(struct cur *c, struct rules *r, const struct rules *init, uint64_t pc, uint64_t ip,
		uint64_t calign, uint64_t dalign)
{
	struct rules saved[8];
	unsigned nsaved = 0;
	uint64_t reg, op;

	while (c->p < c->end && !c->bad && pc <= ip) {
		op = get(c, 1);
		reg = op & 0x3f;
		switch (op & 0xc0) {
		case 0x40: /* advance_loc */
			pc += reg * calign;
			continue;
		case 0x80: /* offset */
			goto offset;
		case 0xc0: /* restore */
			goto restore;
		}
		switch (op) {
		case 0x00:
			break; /* nop */
		case 0x02:
			pc += get(c, 1) * calign;
			break;
		case 0x03:
			pc += get(c, 2) * calign;
			break;
		case 0x04:
			pc += get(c, 4) * calign;
			break;
		case 0x05:
			reg = uleb(c);
		offset:
			if (reg >= NDW) {
				uleb(c);
				break;
			}
			r->how[reg] = R_CFA_OFF;
			r->off[reg] = uleb(c) * dalign;
			break;
		case 0x06:
			reg = uleb(c);
		restore:
			if (reg < NDW) {
				r->how[reg] = init->how[reg];
				r->off[reg] = init->off[reg];
			}
			break;
		case 0x07:
		case 0x08: /* undefined, same_value */
			reg = uleb(c);
			if (reg < NDW)
				r->how[reg] = op == 7 ? R_UNDEF : R_SAME;
			break;
		case 0x09: /* register */
			reg = uleb(c);
			op = uleb(c);
			if (reg < NDW) {
				r->how[reg] = op < 16 ? R_REG : R_OTHER;
				r->off[reg] = op;
			}
			break;
		case 0x0a: /* remember_state */
			if (nsaved < 8)
				saved[nsaved++] = *r;
			else
				c->bad = true;
			break;
		case 0x0b: /* restore_state */
			if (nsaved)
				*r = saved[--nsaved];
			else
				c->bad = true;
			break;
		case 0x0c:
			r->cfa_reg = uleb(c);
			r->cfa_off = uleb(c);
			break;
		case 0x0d:
			r->cfa_reg = uleb(c);
			break;
		case 0x0e:
			r->cfa_off = uleb(c);
			break;
		case 0x0f: /* def_cfa_expression */
			r->cfa_reg = NDW;
			reg = uleb(c);
			c->p += reg < (uint64_t)(c->end - c->p) ? reg : (uint64_t)(c->end - c->p);
			break;
		case 0x10:
		case 0x16: /* expression, val_expression */
			reg = uleb(c);
			if (reg < NDW)
				r->how[reg] = R_OTHER;
			reg = uleb(c);
			c->p += reg < (uint64_t)(c->end - c->p) ? reg : (uint64_t)(c->end - c->p);
			break;
		case 0x11: /* offset_extended_sf */
			reg = uleb(c);
			if (reg < NDW) {
				r->how[reg] = R_CFA_OFF;
				r->off[reg] = (uint64_t)sleb(c) * dalign;
			} else {
				sleb(c);
			}
			break;
		case 0x12:
			r->cfa_reg = uleb(c);
			r->cfa_off = (uint64_t)sleb(c) * dalign;
			break;
		case 0x13:
			r->cfa_off = (uint64_t)sleb(c) * dalign;
			break;
		case 0x2e:
			uleb(c);
			break; /* GNU_args_size */
		default:
			c->bad = true;
		}
	}
}

/* length field and body of the entry at vaddr; false if it is not all there */
static bool entry_at(const struct map *m, uint64_t vaddr, struct cur *c)
{
	const uint8_t *b = map_rodata(m, vaddr, 4, NULL);
	uint32_t len;

	if (!b)
		return false;
	memcpy(&len, b, 4);
	b = len < 0xfffffff0 ? map_rodata(m, vaddr + 4, len, NULL) : NULL;
	if (!b)
		return false;
	*c = (struct cur){b, b + len, false};
	return true;
}

/* Rules at ip. */
static bool rules_at(const struct map *m, uint64_t fde, uint64_t ip, struct rules *r)
{
	struct cur f, c;
	uint64_t cie, pc, range, calign;
	uint64_t dalign;
	struct rules init;
	char aug[8] = "";
	unsigned n = 0, enc = 0;

	if (!entry_at(m, fde, &f))
		return false;
	cie = fde + 4 - get(&f, 4);
	if (!entry_at(m, cie, &c) || get(&c, 4) != 0)
		return false;
	get(&c, 1);
	for (char ch; (ch = (char)get(&c, 1)) && n < sizeof(aug) - 1;)
		aug[n++] = ch;
	calign = uleb(&c);
	dalign = (uint64_t)sleb(&c);
	if (uleb(&c) != 16)
		return false;
	if (aug[0] == 'z')
		uleb(&c);
	for (unsigned i = 1; aug[0] == 'z' && i < n; i++) {
		if (aug[i] == 'R')
			enc = get(&c, 1);
		else if (aug[i] == 'P')
			get(&c, (get(&c, 1) & 7) == 4 ? 8 : 4);
		else if (aug[i] == 'L')
			get(&c, 1);
	}
	if (enc != 0x1b) /* pc-relative signed 4 bytes */
		return false;
	pc = fde + 8 + (int64_t)(int32_t)get(&f, 4);
	range = get(&f, 4);
	if (ip < pc || ip - pc >= range)
		return false;
	if (aug[0] == 'z') {
		uint64_t skip = uleb(&f);

		if (skip > (uint64_t)(f.end - f.p))
			return false;
		f.p += skip;
	}
	memset(r, 0, sizeof(*r));
	memset(&init, 0, sizeof(init));
	run(&c, r, &init, pc, ip, calign, dalign);
	init = *r;
	run(&f, r, &init, pc, ip, calign, dalign);
	return !c.bad && !f.bad;
}

int cfi_step(struct map *m, uint64_t bias, uint64_t *ip, uint64_t reg[16], struct mem *mem)
{
	uint64_t vip = *ip - 1 - bias; /* of the call, not after it */
	uint64_t fde = find_fde(m, vip), cfa, next[16];
	struct rules r;

	if (!fde || !rules_at(m, fde, vip, &r))
		return -1;
	if (r.how[16] == R_UNDEF)
		return 0;
	if (r.cfa_reg >= 16)
		return -1;
	cfa = reg[dw_to_hw[r.cfa_reg]] + r.cfa_off;
	memcpy(next, reg, sizeof(next));
	next[SEM_RSP] = cfa;
	for (int i = 0; i < NDW; i++) {
		uint64_t *to = i < 16 ? &next[dw_to_hw[i]] : ip;

		if (r.how[i] == R_OTHER || (i == 16 && r.how[i] == R_SAME))
			return -1;
		if (r.how[i] == R_REG) /* vfork(2) has its return address in rdi */
			*to = reg[dw_to_hw[r.off[i]]];
		else if (r.how[i] == R_CFA_OFF && !mem_read(mem, cfa + r.off[i], to, 8))
			return -1;
	}
	memcpy(reg, next, sizeof(next));
	return 1;
}
