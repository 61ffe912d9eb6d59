/* SPDX-License-Identifier: MIT
 *
 * elf_eh.c - function ranges from .eh_frame and landing pads from the LSDAs
 *
 * .eh_frame is found by its section header and by PT_GNU_EH_FRAME's pointer; its records give
 * [start, start + length) of each function part and, with augmentation "L", the address of its
 * language-specific data (LSB core, Exception Frames; Itanium C++ ABI level II, LSDA header and
 * call-site table). Malformed records end the parse of what contains them; what was read stays.
 */
#include <string.h>
#include "elf_priv.h"
#include "sort.h"

enum { PE_OMIT = 0xff, PE_INDIRECT = 0x80, PE_PCREL = 0x10, PE_DATAREL = 0x30 };

/* A bounded reader over image bytes; `at` is the vaddr of *p. */
struct rd {
	const uint8_t *p, *end;
	uint32_t at;
	bool bad;
};

static uint64_t rd_int(struct rd *r, unsigned n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		r->p = r->end;
		return 0;
	}
	memcpy(&v, r->p, n);
	r->p += n;
	r->at += n;
	return v;
}

static uint64_t rd_leb(struct rd *r, bool sign)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = rd_int(r, 1);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while ((b & 0x80) && !r->bad);
	if (sign && (b & 0x40) && shift < 64)
		v |= ~0ull << shift;
	return v;
}

/* DW_EH_PE-encoded value; zero stays zero (a null pointer) whatever the base */
static uint64_t rd_enc(struct rd *r, uint8_t enc, bool base)
{
	uint32_t at = r->at;
	uint64_t v;

	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		v = rd_int(r, 8);
		break;
	case 0x01:
		v = rd_leb(r, false);
		break;
	case 0x09:
		v = rd_leb(r, true);
		break;
	case 0x02:
		v = rd_int(r, 2);
		break;
	case 0x0a:
		v = (uint64_t)(int16_t)rd_int(r, 2);
		break;
	case 0x03:
		v = rd_int(r, 4);
		break;
	case 0x0b:
		v = (uint64_t)(int32_t)rd_int(r, 4);
		break;
	default:
		r->bad = true;
		return 0;
	}
	if (!base || !v)
		return v;
	if ((enc & 0x70) == PE_PCREL)
		return v + at;
	if ((enc & 0x70) != 0)
		r->bad = true; /* textrel, datarel, funcrel, aligned: not used for code on x86-64 */
	return v;
}

struct cie {
	uint8_t fde_enc, lsda_enc;
	bool aug;
};

static bool parse_cie(struct rd r, struct cie *c)
{
	char aug[8] = "";
	uint8_t version = rd_int(&r, 1);
	unsigned i;

	*c = (struct cie){0, PE_OMIT, false};
	for (i = 0; i < sizeof(aug); i++)
		if (!(aug[i] = rd_int(&r, 1)))
			break;
	if (i == sizeof(aug) || (version != 1 && version != 3))
		return false;
	rd_leb(&r, false);
	rd_leb(&r, true);
	if (version == 1)
		rd_int(&r, 1);
	else
		rd_leb(&r, false);
	if (aug[0] != 'z')
		return !aug[0] && !r.bad;
	c->aug = true;
	rd_leb(&r, false);
	for (i = 1; aug[i]; i++) {
		if (aug[i] == 'R')
			c->fde_enc = rd_int(&r, 1);
		else if (aug[i] == 'L')
			c->lsda_enc = rd_int(&r, 1);
		else if (aug[i] == 'P') {
			uint8_t enc = rd_int(&r, 1);

			rd_enc(&r, enc & 0x0f, false);
		} else if (aug[i] != 'S' && aug[i] != 'B')
			return false;
	}
	return !r.bad;
}

static bool parse_fde(struct module *m, struct rd r, const struct cie *c)
{
	uint64_t start = rd_enc(&r, c->fde_enc & ~PE_INDIRECT, true);
	uint64_t len = rd_enc(&r, c->fde_enc & 0x0f, false);
	uint64_t lsda = 0;

	if (c->aug) {
		uint64_t n = rd_leb(&r, false);

		if (c->lsda_enc != PE_OMIT && n && n <= (uint64_t)(r.end - r.p))
			lsda = rd_enc(&r, c->lsda_enc & ~PE_INDIRECT, true);
	}
	/* a function the linker discarded has start 0; one outside the text is not ours to judge */
	if (r.bad || !len || start >= UINT32_MAX || len >= UINT32_MAX - start || start < m->text_lo ||
	    start + len > m->text_hi)
		return true;
	return VEC_PUSH(&elf_priv(m)->fde,
			(struct elf_fde){start, start + len, lsda && lsda < UINT32_MAX ? lsda : AN_NONE});
}

static int parse_eh_frame(struct module *m, uint32_t vaddr, uint32_t size)
{
	const uint8_t *base = elf_at(m, vaddr, size);
	struct rd r = {base, base ? base + size : NULL, vaddr, false};
	const uint8_t *cie_at = NULL;
	struct cie cie = {0};
	bool ok = false;

	if (!base)
		return 0;
	while (r.end - r.p >= 4) {
		uint64_t len = rd_int(&r, 4);
		struct rd rec = r;
		uint32_t id;

		if (!len || len == 0xffffffff || len < 4 || len > (uint64_t)(r.end - r.p))
			break; /* terminator; 64-bit records do not occur on x86-64 */
		rec.end = r.p + len;
		id = rd_int(&rec, 4);
		if (id) {
			const uint8_t *p = id <= (uint64_t)(r.p - base) ? r.p - id : NULL;

			if (p && p != cie_at) {
				struct rd cr = {p, r.end, vaddr + (uint32_t)(p - base), false};
				uint64_t cl;

				cie_at = p;
				ok = (cl = rd_int(&cr, 4)) >= 4 && cl <= (uint64_t)(cr.end - cr.p) &&
				     (cr.end = cr.p + cl, !rd_int(&cr, 4)) && parse_cie(cr, &cie);
			}
			if (p && p == cie_at && ok && !parse_fde(m, rec, &cie))
				return -1;
		}
		r.p += len;
		r.at += len;
	}
	return 0;
}

/* Landing pads of one function part. */
static int parse_lsda(struct module *m, const struct elf_fde *f)
{
	const struct map_seg *s = NULL;
	struct rd r;
	uint64_t base = f->start;
	uint64_t n;
	uint8_t enc;

	for (uint32_t i = 0; i < m->nseg; i++)
		if (f->lsda >= m->seg[i].vaddr && f->lsda - m->seg[i].vaddr < m->seg[i].filesz)
			s = &m->seg[i];
	if (!s)
		return 0;
	r = (struct rd){m->file + s->off + (f->lsda - s->vaddr), m->file + s->off + s->filesz, f->lsda,
			false};
	enc = rd_int(&r, 1);
	if (enc != PE_OMIT)
		base = rd_enc(&r, enc & ~PE_INDIRECT, true);
	if (rd_int(&r, 1) != PE_OMIT)
		rd_leb(&r, false);
	enc = rd_int(&r, 1);
	n = rd_leb(&r, false);
	if (r.bad || n > (uint64_t)(r.end - r.p))
		return 0;
	r.end = r.p + n;
	while (r.p < r.end && !r.bad) {
		uint64_t pad;

		rd_enc(&r, enc & 0x0f, false);
		rd_enc(&r, enc & 0x0f, false);
		pad = rd_enc(&r, enc & 0x0f, false);
		rd_leb(&r, false);
		if (r.bad || !pad)
			continue;
		pad += base;
		if (pad >= m->text_lo && pad < m->text_hi && !VEC_PUSH(&elf_priv(m)->pad, (uint32_t)pad))
			return -1;
	}
	return 0;
}

/* PT_GNU_EH_FRAME's header: version 1, three encodings, then the encoded address of .eh_frame. */
static uint32_t frame_from_hdr(struct module *m, const Elf64_Phdr *p)
{
	const uint8_t *b = p->p_vaddr < UINT32_MAX && p->p_filesz >= 8 ? elf_at(m, p->p_vaddr, 8) : NULL;
	struct rd r = {b ? b + 4 : NULL, b ? b + 8 : NULL, (uint32_t)p->p_vaddr + 4, false};
	uint64_t v;

	if (!b || b[0] != 1 || (b[1] & 0x0f) == 0)
		return AN_NONE;
	v = rd_enc(&r, b[1], true);
	return r.bad || v >= UINT32_MAX ? AN_NONE : v;
}

/* .eh_frame has no length but its terminator: read to the end of its segment. */
static int eh_from_phdr(struct module *m, const Elf64_Ehdr *eh)
{
	const uint8_t *ph = elf_off(m, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(Elf64_Phdr));

	for (uint32_t i = 0; ph && i < eh->e_phnum; i++) {
		Elf64_Phdr p;
		uint32_t at;

		memcpy(&p, ph + i * sizeof(p), sizeof(p));
		if (p.p_type != PT_GNU_EH_FRAME || (at = frame_from_hdr(m, &p)) == AN_NONE)
			continue;
		for (uint32_t k = 0; k < m->nseg; k++) {
			const struct map_seg *s = &m->seg[k];

			if (at >= s->vaddr && at - s->vaddr < s->filesz)
				return parse_eh_frame(m, at, s->filesz - (at - s->vaddr));
		}
	}
	return 0;
}

int elf_read_eh(struct module *m)
{
	struct elf_priv *x = elf_priv(m);
	Elf64_Ehdr eh;
	uint32_t n = 0;

	memcpy(&eh, m->file, sizeof(eh));
	if (x->ehdr.end > x->ehdr.start && parse_eh_frame(m, x->ehdr.start, x->ehdr.end - x->ehdr.start))
		return -1;
	if (!x->fde.n && eh_from_phdr(m, &eh))
		return -1;
	sort_first(x->fde.v, x->fde.n, sizeof(*x->fde.v));
	for (uint32_t i = 0; i < x->fde.n; i++) {
		const struct elf_fde f = x->fde.v[i];

		if (f.lsda != AN_NONE && parse_lsda(m, &x->fde.v[i]))
			return -1;
		if (!n || x->fde.v[n - 1].start != f.start)
			x->fde.v[n++] = f;
		else if (x->fde.v[n - 1].end < f.end) /* of those with the same start the largest */
			x->fde.v[n - 1] = f;
	}
	x->fde.n = n;
	return 0;
}
