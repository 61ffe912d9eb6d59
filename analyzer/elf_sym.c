/* SPDX-License-Identifier: MIT
 *
 * elf_sym.c - symbols, relocations and loader entry points of an ELF module
 *
 * Two symbol tables are read: .dynsym through the dynamic section (what the loader itself
 * uses, present in stripped files) and .symtab through its section header. Relocations come
 * from DT_RELA, DT_JMPREL and DT_RELR (gABI, RELR proposal). Only what discovery asks about
 * is kept: symbols inside text, words that will hold addresses of this module, GOT slots
 * with their symbol's name.
 */
#include <string.h>
#include "elf_priv.h"

/* the dynamic section's tables, as vaddrs and sizes */
struct dyn {
	uint64_t sym, str, strsz, rela, relasz, jmprel, pltrelsz, relr, relrsz, hash, gnuhash;
	uint64_t init, fini, soname, arr[2], arrsz[2]; /* init_array, fini_array */
	bool has_soname;
};

static void read_dyn(struct module *m, struct dyn *d)
{
	Elf64_Ehdr eh;
	const uint8_t *ph;

	memcpy(&eh, m->file, sizeof(eh));
	ph = elf_off(m, eh.e_phoff, (uint64_t)eh.e_phnum * sizeof(Elf64_Phdr));
	for (uint32_t i = 0; ph && i < eh.e_phnum; i++) {
		Elf64_Phdr p;

		memcpy(&p, ph + i * sizeof(p), sizeof(p));
		if (p.p_type != PT_DYNAMIC || !elf_off(m, p.p_offset, p.p_filesz))
			continue;
		for (uint64_t o = 0; o + sizeof(Elf64_Dyn) <= p.p_filesz; o += sizeof(Elf64_Dyn)) {
			Elf64_Dyn e;

			memcpy(&e, m->file + p.p_offset + o, sizeof(e));
			switch (e.d_tag) {
			case DT_NULL:
				return;
			case DT_SYMTAB:
				d->sym = e.d_un.d_val;
				break;
			case DT_STRTAB:
				d->str = e.d_un.d_val;
				break;
			case DT_STRSZ:
				d->strsz = e.d_un.d_val;
				break;
			case DT_RELA:
				d->rela = e.d_un.d_val;
				break;
			case DT_RELASZ:
				d->relasz = e.d_un.d_val;
				break;
			case DT_JMPREL:
				d->jmprel = e.d_un.d_val;
				break;
			case DT_PLTRELSZ:
				d->pltrelsz = e.d_un.d_val;
				break;
			case 36 /* DT_RELR */:
				d->relr = e.d_un.d_val;
				break;
			case 35 /* DT_RELRSZ */:
				d->relrsz = e.d_un.d_val;
				break;
			case DT_HASH:
				d->hash = e.d_un.d_val;
				break;
			case DT_GNU_HASH:
				d->gnuhash = e.d_un.d_val;
				break;
			case DT_INIT:
				d->init = e.d_un.d_val;
				break;
			case DT_FINI:
				d->fini = e.d_un.d_val;
				break;
			case DT_INIT_ARRAY:
				d->arr[0] = e.d_un.d_val;
				break;
			case DT_INIT_ARRAYSZ:
				d->arrsz[0] = e.d_un.d_val;
				break;
			case DT_FINI_ARRAY:
				d->arr[1] = e.d_un.d_val;
				break;
			case DT_FINI_ARRAYSZ:
				d->arrsz[1] = e.d_un.d_val;
				break;
			case DT_SONAME:
				d->soname = e.d_un.d_val;
				d->has_soname = true;
				break;
			}
		}
	}
}

static const uint8_t *at64(const struct module *m, uint64_t vaddr, uint64_t n)
{
	return vaddr < UINT32_MAX ? elf_at(m, vaddr, n) : NULL;
}

/* A string of a table, NULL when it does not end inside it. */
static const char *str_in(const uint8_t *tab, uint64_t size, uint64_t off)
{
	return tab && off < size && memchr(tab + off, 0, size - off) ? (const char *)tab + off : NULL;
}

/* How many symbols the loader's hash tables know; there is no count in the dynamic section. */
static uint32_t dynsym_count(const struct module *m, const struct dyn *d)
{
	const uint8_t *h = at64(m, d->hash, 8);
	uint32_t w[4], n = 0;

	if (h && d->hash) {
		memcpy(w, h, 8);
		return w[1];
	}
	if (!d->gnuhash || !(h = at64(m, d->gnuhash, 16)))
		return 0;
	memcpy(w, h, 16); /* nbuckets, symoffset, bloom words, shift */
	for (uint32_t b = 0; b < w[0]; b++) {
		uint64_t buckets = d->gnuhash + 16 + 8ull * w[2];
		uint32_t s, chain;

		if (!(h = at64(m, buckets + 4ull * b, 4)))
			return n;
		memcpy(&s, h, 4);
		if (s < w[1] || s < n)
			continue;
		for (;; s++) {
			if (!(h = at64(m, buckets + 4ull * w[0] + 4ull * (s - w[1]), 4)))
				return n;
			memcpy(&chain, h, 4);
			if (chain & 1)
				break;
		}
		n = s + 1;
	}
	return n;
}

static bool add_sym(struct module *m, const Elf64_Sym *s, const char *name)
{
	struct elf_sym e = {.name = name, .global = ELF64_ST_BIND(s->st_info) != STB_LOCAL};

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_value < m->text_lo ||
	    s->st_value >= m->text_hi || !elf_is_text(m, s->st_value))
		return true;
	switch (ELF64_ST_TYPE(s->st_info)) {
	case STT_FUNC:
		e.kind = ELF_S_FUNC;
		break;
	case STT_GNU_IFUNC:
		e.kind = ELF_S_IFUNC;
		break;
	case STT_NOTYPE:
		e.kind = ELF_S_LABEL;
		break;
	case STT_OBJECT:
		e.kind = ELF_S_OBJECT;
		break;
	default:
		return true;
	}
	e.vaddr = s->st_value;
	e.size = s->st_size < UINT32_MAX ? s->st_size : 0;
	return VEC_PUSH(&elf_priv(m)->sym, e);
}

/* whoever asks where it is reads what the kernel writes at any time */
static bool rseq_area(const char *name)
{
	return name && !strcmp(name, "__rseq_offset");
}

static int read_dynsym(struct module *m, const struct dyn *d)
{
	uint32_t n = d->sym ? dynsym_count(m, d) : 0;
	const uint8_t *str = at64(m, d->str, d->strsz);

	for (uint32_t i = 1; i < n; i++) {
		const uint8_t *p = at64(m, d->sym + (uint64_t)i * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
		Elf64_Sym s;
		const char *name;

		if (!p)
			break;
		memcpy(&s, p, sizeof(s));
		name = str_in(str, d->strsz, s.st_name);
		if (name && !add_sym(m, &s, name))
			return -1;
		m->hidden |= s.st_shndx == SHN_UNDEF && rseq_area(name);
	}
	return 0;
}

static int read_symtab(struct module *m)
{
	Elf64_Ehdr eh;
	const uint8_t *sh;

	memcpy(&eh, m->file, sizeof(eh));
	sh = elf_off(m, eh.e_shoff, (uint64_t)eh.e_shnum * sizeof(Elf64_Shdr));
	if (!sh || eh.e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	for (uint32_t i = 0; i < eh.e_shnum; i++) {
		Elf64_Shdr h, hs;
		const uint8_t *tab, *str;

		memcpy(&h, sh + i * sizeof(h), sizeof(h));
		if (h.sh_type != SHT_SYMTAB || h.sh_link >= eh.e_shnum)
			continue;
		memcpy(&hs, sh + h.sh_link * sizeof(hs), sizeof(hs));
		tab = elf_off(m, h.sh_offset, h.sh_size);
		str = elf_off(m, hs.sh_offset, hs.sh_size);
		for (uint64_t o = 0; tab && str && o + sizeof(Elf64_Sym) <= h.sh_size;
		     o += sizeof(Elf64_Sym)) {
			Elf64_Sym s;
			const char *name;

			memcpy(&s, tab + o, sizeof(s));
			name = str_in(str, hs.sh_size, s.st_name);
			if (name && !add_sym(m, &s, name))
				return -1;
		}
	}
	return 0;
}

static bool add_ptr(struct module *m, uint64_t place, uint64_t target, bool relative)
{
	if (place >= UINT32_MAX || target >= UINT32_MAX)
		return true;
	return VEC_PUSH(&elf_priv(m)->ptr, (struct elf_ptr){place, target, relative});
}

static bool add_rela(struct module *m, const struct dyn *d, const Elf64_Rela *r)
{
	struct elf_priv *x = elf_priv(m);
	const uint8_t *p;
	const char *name;
	Elf64_Sym s;

	switch (ELF64_R_TYPE(r->r_info)) {
	case R_X86_64_RELATIVE:
		return add_ptr(m, r->r_offset, r->r_addend, true);
	case R_X86_64_IRELATIVE: /* the addend is the resolver: called by the loader */
		return r->r_addend < 0 || r->r_addend >= UINT32_MAX ||
		       VEC_PUSH(&x->root, (uint32_t)r->r_addend);
	case R_X86_64_64:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_COPY:
		break;
	default:
		return true;
	}
	p = at64(m, d->sym + ELF64_R_SYM(r->r_info) * sizeof(s), sizeof(s));
	if (!p || r->r_offset >= UINT32_MAX)
		return true;
	memcpy(&s, p, sizeof(s));
	name = str_in(at64(m, d->str, d->strsz), d->strsz, s.st_name);
	if (ELF64_R_TYPE(r->r_info) == R_X86_64_COPY) {
		m->hidden |= rseq_area(name);
		return true;
	}
	if (name && *name && ELF64_R_TYPE(r->r_info) != R_X86_64_64 &&
	    !VEC_PUSH(&x->slot, (struct elf_slot){r->r_offset, name}))
		return false;
	/* what is called through a slot is code, whatever its symbol says (coroutine_transfer of ruby: of no type, without
	 * unwind tables) */
	if (ELF64_R_TYPE(r->r_info) == R_X86_64_JUMP_SLOT && s.st_shndx != SHN_UNDEF &&
	    s.st_shndx != SHN_ABS && s.st_value < UINT32_MAX && !VEC_PUSH(&x->root, (uint32_t)s.st_value))
		return false;
	/* a preemptible symbol may resolve elsewhere: its own address is only a possible value */
	if (s.st_shndx != SHN_UNDEF)
		return add_ptr(m, r->r_offset, s.st_value + r->r_addend, false);
	return true;
}

static int read_relocs(struct module *m, const struct dyn *d)
{
	const uint64_t tab[2][2] = {{d->rela, d->relasz}, {d->jmprel, d->pltrelsz}};

	for (int t = 0; t < 2; t++)
		for (uint64_t o = 0; tab[t][0] && o + sizeof(Elf64_Rela) <= tab[t][1];
		     o += sizeof(Elf64_Rela)) {
			const uint8_t *p = at64(m, tab[t][0] + o, sizeof(Elf64_Rela));
			Elf64_Rela r;

			if (!p)
				break;
			memcpy(&r, p, sizeof(r));
			if (!add_rela(m, d, &r))
				return -1;
		}
	return 0;
}

static bool add_relr(struct module *m, uint64_t place)
{
	const uint8_t *p = at64(m, place, 8);
	uint64_t v;

	if (!p)
		return true;
	memcpy(&v, p, 8);
	return add_ptr(m, place, v, true);
}

/* RELR: an even word is an address to relocate, an odd word a bitmap of the 63 words after it. */
static int read_relr(struct module *m, const struct dyn *d)
{
	uint64_t where = 0;

	for (uint64_t o = 0; d->relr && o + 8 <= d->relrsz; o += 8) {
		const uint8_t *p = at64(m, d->relr + o, 8);
		uint64_t w;

		if (!p)
			break;
		memcpy(&w, p, 8);
		if (!(w & 1)) {
			if (!add_relr(m, w))
				return -1;
			where = w + 8;
			continue;
		}
		for (unsigned b = 0; b < 63; b++)
			if ((w >> (b + 1) & 1) && !add_relr(m, where + 8ull * b))
				return -1;
		where += 63 * 8;
	}
	return 0;
}

#define CMP_BY(name, type, field)                                                                            \
	static int name(const void *a, const void *b)                                                        \
	{                                                                                                    \
		uint32_t x = ((const type *)a)->field, y = ((const type *)b)->field;                         \
		return x < y ? -1 : x > y;                                                                   \
	}
CMP_BY(cmp_ptr, struct elf_ptr, place)
CMP_BY(cmp_slot, struct elf_slot, place)

/* functions before labels, global before local: the first at an address names it */
static int cmp_sym(const void *a, const void *b)
{
	const struct elf_sym *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->global != y->global ? (x->global ? -1 : 1) : strcmp(x->name, y->name);
}

/* The loader calls what the arrays point to. */
static bool array_roots(struct module *m, const struct dyn *d)
{
	for (int a = 0; a < 2; a++)
		for (uint64_t o = 0; o + 8 <= d->arrsz[a] && at64(m, d->arr[a] + o, 8); o += 8) {
			uint64_t v;
			bool fixed;

			if (elf_word(m, d->arr[a] + o, &v, &fixed) && v && v < UINT32_MAX &&
			    !VEC_PUSH(&elf_priv(m)->root, (uint32_t)v))
				return false;
		}
	return true;
}

int elf_read_syms(struct module *m)
{
	struct elf_priv *x = elf_priv(m);
	struct dyn d = {0};

	read_dyn(m, &d);
	if (d.has_soname)
		m->soname = str_in(at64(m, d.str, d.strsz), d.strsz, d.soname);
	if (!m->soname)
		m->soname = strrchr(m->path, '/') ? strrchr(m->path, '/') + 1 : m->path;
	if (read_dynsym(m, &d) || read_symtab(m) || read_relocs(m, &d) || read_relr(m, &d))
		return -1;
	if (d.init && d.init < UINT32_MAX && !VEC_PUSH(&x->root, (uint32_t)d.init))
		return -1;
	if (d.fini && d.fini < UINT32_MAX && !VEC_PUSH(&x->root, (uint32_t)d.fini))
		return -1;
	if (x->sym.n)
		qsort(x->sym.v, x->sym.n, sizeof(*x->sym.v), cmp_sym);
	if (x->ptr.n)
		qsort(x->ptr.v, x->ptr.n, sizeof(*x->ptr.v), cmp_ptr);
	if (x->slot.n)
		qsort(x->slot.v, x->slot.n, sizeof(*x->slot.v), cmp_slot);
	return array_roots(m, &d) ? elf_ro_words(m) : -1;
}

/* first index of a sorted table whose key is not below vaddr */
#define LOWER(vec, field, key)                                                                               \
	({                                                                                                   \
		uint32_t lo_ = 0, hi_ = (vec)->n;                                                            \
		while (lo_ < hi_) {                                                                          \
			uint32_t mid_ = lo_ + (hi_ - lo_) / 2;                                               \
			if ((vec)->v[mid_].field < (key))                                                    \
				lo_ = mid_ + 1;                                                              \
			else                                                                                 \
				hi_ = mid_;                                                                  \
		}                                                                                            \
		lo_;                                                                                         \
	})

bool elf_word(const struct module *m, uint32_t vaddr, uint64_t *val, bool *fixed)
{
	const struct elf_priv *x = elf_priv(m);
	uint32_t i = LOWER(&x->ptr, place, vaddr);
	const uint8_t *p;

	*fixed = elf_fixed(m, vaddr, 8);
	if (i < x->ptr.n && x->ptr.v[i].place == vaddr) {
		*val = x->ptr.v[i].target;
		return true;
	}
	if (m->pie || !(p = elf_at(m, vaddr, 8)))
		return false; /* in a PIE an address without a relocation is not one */
	memcpy(val, p, 8);
	return true;
}

const char *elf_slot_name(const struct module *m, uint32_t vaddr)
{
	const struct elf_priv *x = elf_priv(m);
	uint32_t i = LOWER(&x->slot, place, vaddr);

	return i < x->slot.n && x->slot.v[i].place == vaddr ? x->slot.v[i].name : NULL;
}

const struct elf_sym *elf_sym_at(const struct module *m, uint32_t vaddr)
{
	const struct elf_priv *x = elf_priv(m);
	uint32_t i = LOWER(&x->sym, vaddr, vaddr);

	return i < x->sym.n && x->sym.v[i].vaddr == vaddr ? &x->sym.v[i] : NULL;
}
