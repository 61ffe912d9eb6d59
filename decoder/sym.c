/* SPDX-License-Identifier: MIT
 *
 * sym.c - names for addresses
 *
 *   ip ─▶ module record ─▶ map: block ─▶ group ─▶ name        always there
 *                     └──▶ the ELF file, when it is still at its path and has the
 *                          same build-id: symbols, file and line (libdw)
 */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dec.h"

struct esym { /* a function in an ELF file's symbol table; run-time address */
	uint64_t addr, size;
	const char *name;
};

struct elf_use { /* an ELF file opened for names */
	const struct modrec *rec;
	Dwfl *dwfl;
	Dwfl_Module *mod;
	struct esym *sym; /* by address */
	uint32_t nsym;
};

struct sym {
	const struct ptrace_run *run;
	struct elf_use *use;
	uint32_t nuse;
};

struct sym *sym_new(const struct ptrace_run *r)
{
	struct sym *s = xcalloc(1, sizeof(*s));

	s->run = r;
	return s;
}

void sym_free(struct sym *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nuse; i++) {
		if (s->use[i].dwfl)
			dwfl_end(s->use[i].dwfl);
		free(s->use[i].sym);
	}
	free(s->use);
	free(s);
}

const struct modrec *sym_module(const struct proc *p, uint64_t ip)
{
	for (; p; p = p->rec)
		for (uint32_t i = p->nmod; i--;) /* the newest at an address wins */
			if (p->mod[i].m.kind && ip >= p->mod[i].m.lo && ip < p->mod[i].m.hi)
				return &p->mod[i];
	return NULL;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static Dwfl_Module *open_elf(const struct modrec *rec, Dwfl **dwfl)
{
	Dwfl_Module *mod = NULL;
	const unsigned char *id;
	GElf_Addr at;
	int n, fd;

	*dwfl = dwfl_begin(&callbacks);
	if (!*dwfl)
		return NULL;
	dwfl_report_begin(*dwfl);
	fd = open(rec->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		mod = dwfl_report_elf(*dwfl, rec->path, rec->path, fd, rec->m.bias, true);
	if (fd >= 0 && !mod)
		close(fd);
	dwfl_report_end(*dwfl, NULL, NULL);
	n = mod ? dwfl_module_build_id(mod, &id, &at) : 0;
	/* another file at the same path would give wrong names */
	if (mod && (n <= 0 || n > 32 || (uint32_t)n != rec->m.key_len || memcmp(id, rec->m.key, n)))
		mod = NULL;
	return mod;
}

static int by_addr(const void *a, const void *b)
{
	const struct esym *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size ? 1 : strcmp(x->name, y->name);
}

/* All functions at once: libdw looks a name up by going through the whole table. */
static void read_symbols(struct elf_use *u)
{
	int n = u->mod ? dwfl_module_getsymtab(u->mod) : 0;

	u->sym = n > 0 ? xcalloc(n, sizeof(*u->sym)) : NULL;
	for (int i = 0; i < n; i++) {
		GElf_Sym sym;
		GElf_Word shndx;
		GElf_Addr addr;
		const char *name = dwfl_module_getsym_info(u->mod, i, &sym, &addr, &shndx, NULL, NULL);
		unsigned type = GELF_ST_TYPE(sym.st_info);

		if (name && *name && sym.st_shndx != SHN_UNDEF &&
		    (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE))
			u->sym[u->nsym++] = (struct esym){addr, sym.st_size, name};
	}
	if (u->nsym)
		qsort(u->sym, u->nsym, sizeof(*u->sym), by_addr);
}

static struct elf_use *elf_of(struct sym *s, const struct modrec *rec)
{
	struct elf_use *u;

	for (uint32_t i = 0; i < s->nuse; i++)
		if (s->use[i].rec == rec)
			return &s->use[i];
	s->use = xrealloc(s->use, s->nuse + 1, sizeof(*s->use));
	u = &s->use[s->nuse++];
	memset(u, 0, sizeof(*u));
	u->rec = rec;
	u->mod = open_elf(rec, &u->dwfl);
	read_symbols(u);
	return u;
}

/* The function that ip is in: the nearest before it whose size says so, else a label without a size that
 * no other function follows. Functions nest at most in each other's aliases and parts, hence NEAR. */
#define NEAR 16
static const char *elf_function(const struct elf_use *u, uint64_t ip, uint64_t *start)
{
	uint32_t lo = 0, hi = u->nsym;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (u->sym[mid].addr <= ip)
			lo = mid + 1;
		else
			hi = mid;
	}
	hi = lo;
	for (uint32_t i = lo; i-- && lo - i <= NEAR;)
		if (ip - u->sym[i].addr < u->sym[i].size) {
			hi = i + 1;
			break;
		}
	if (!hi || (hi == lo && u->sym[hi - 1].size && ip - u->sym[hi - 1].addr >= u->sym[hi - 1].size))
		return NULL;
	*start = u->sym[hi - 1].addr;
	return u->sym[hi - 1].name;
}

/* The map's name, else the ELF's at ip. */
static const char *group_name(struct sym *s, const struct modrec *rec, const struct map_block *b, uint64_t ip,
			      uint64_t *start)
{
	const char *name = NULL;

	*start = 0;
	if (b) {
		name = map_group_name(rec->map, b->group);
		*start = b->group < rec->map->ngroup ? rec->m.bias + rec->map->group[b->group].vaddr : 0;
	}
	return name || !s ? name : elf_function(elf_of(s, rec), ip, start);
}

const char *sym_group(struct sym *s, const struct modrec *rec, uint32_t block, uint64_t *start)
{
	const struct map_block *b = &rec->map->block[block];

	return group_name(s, rec, b, rec->m.bias + b->vaddr, start);
}

const char *sym_function(struct sym *s, const struct proc *p, uint64_t ip, uint64_t *start)
{
	const struct modrec *rec = sym_module(p, ip);
	const struct map_block *b = NULL;

	*start = 0;
	if (!rec)
		return NULL;
	if (rec->map && ip - rec->m.bias <= UINT32_MAX)
		b = map_block_at(rec->map, (uint32_t)(ip - rec->m.bias));
	return group_name(s, rec, b, ip, start);
}

const char *sym_text(struct sym *s, const struct proc *p, uint64_t ip, bool line, char *buf, size_t n)
{
	const struct modrec *rec = sym_module(p, ip);
	const char *base, *fn, *src;
	uint64_t start;
	size_t at;
	int no;

	if (!rec) {
		snprintf(buf, n, "%#llx", (unsigned long long)ip);
		return buf;
	}
	base = strrchr(rec->path, '/');
	base = base ? base + 1 : rec->path;
	at = snprintf(buf, n, "%s+%#llx", *base ? base : "?", (unsigned long long)(ip - rec->m.bias));
	fn = sym_function(s, p, ip, &start);
	if (fn && at < n)
		at += snprintf(buf + at, n - at, " %s+%#llx", fn, (unsigned long long)(ip - start));
	if (line && s && at < n) {
		Dwfl_Module *elf = elf_of(s, rec)->mod;
		Dwfl_Line *l = elf ? dwfl_module_getsrc(elf, ip) : NULL;

		src = l ? dwfl_lineinfo(l, NULL, &no, NULL, NULL, NULL) : NULL;
		if (src)
			snprintf(buf + at, n - at, " %s:%d", src, no);
	}
	return buf;
}
