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

struct elf_use { /* an ELF file opened for names */
	const struct modrec *rec;
	Dwfl *dwfl;
	Dwfl_Module *mod;
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
	for (uint32_t i = 0; i < s->nuse; i++)
		if (s->use[i].dwfl)
			dwfl_end(s->use[i].dwfl);
	free(s->use);
	free(s);
}

const struct modrec *sym_module(const struct proc *p, uint64_t ip)
{
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

static Dwfl_Module *elf_of(struct sym *s, const struct modrec *rec)
{
	struct elf_use *u;

	for (uint32_t i = 0; i < s->nuse; i++)
		if (s->use[i].rec == rec)
			return s->use[i].mod;
	s->use = xrealloc(s->use, s->nuse + 1, sizeof(*s->use));
	u = &s->use[s->nuse++];
	u->rec = rec;
	u->mod = open_elf(rec, &u->dwfl);
	return u->mod;
}

const char *sym_function(struct sym *s, const struct proc *p, uint64_t ip, uint64_t *start)
{
	const struct modrec *rec = sym_module(p, ip);
	const char *name = NULL;
	Dwfl_Module *elf;
	GElf_Off off;
	GElf_Sym sym;

	*start = 0;
	if (!rec)
		return NULL;
	if (rec->map && ip - rec->m.bias <= UINT32_MAX) {
		const struct map_block *b = map_block_at(rec->map, (uint32_t)(ip - rec->m.bias));

		if (b) {
			name = map_group_name(rec->map, b->group);
			*start = b->group < rec->map->ngroup ? rec->m.bias + rec->map->group[b->group].vaddr
							     : 0;
		}
	}
	if (name || !s)
		return name;
	elf = elf_of(s, rec);
	if (elf)
		name = dwfl_module_addrinfo(elf, ip, &off, &sym, NULL, NULL, NULL);
	if (name)
		*start = ip - off;
	return name;
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
		Dwfl_Module *elf = elf_of(s, rec);
		Dwfl_Line *l = elf ? dwfl_module_getsrc(elf, ip) : NULL;

		src = l ? dwfl_lineinfo(l, NULL, &no, NULL, NULL, NULL) : NULL;
		if (src)
			snprintf(buf + at, n - at, " %s:%d", src, no);
	}
	return buf;
}
