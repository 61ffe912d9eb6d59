/* SPDX-License-Identifier: MIT
 *
 * replay_lib.c - loads libptrace_rt.so into the area, as ld.so would
 *
 * It needs no other library, no symbol and no TLS, and has relative relocations only (preload/README.md). The one that the
 * recorded program was started with lies elsewhere, as bytes of its start state, and is never entered.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "replay_in.h"

#define PAGE 4096ull

struct lib {
	const char *path;
	const uint8_t *file;
	size_t size;
	int fd;
	const Elf64_Ehdr *eh;
	const Elf64_Phdr *ph;
	uint8_t *base; /* of virtual address 0 */
	uint64_t span;
};

static int bad(const struct lib *l, const char *why, struct ptrace_error *e)
{
	return err_set(e, PTRACE_BAD, "%s is not the runtime that this ptrace-replay needs: %s", l->path,
		       why);
}

static int check(struct lib *l, struct ptrace_error *e)
{
	l->eh = (const void *)l->file;
	if (l->size < sizeof(*l->eh) || memcmp(l->eh->e_ident, ELFMAG, SELFMAG) ||
	    l->eh->e_ident[EI_CLASS] != ELFCLASS64 || l->eh->e_machine != EM_X86_64 ||
	    l->eh->e_type != ET_DYN || l->eh->e_phentsize != sizeof(*l->ph))
		return bad(l, "no shared library", e);
	if (l->eh->e_phoff > l->size || l->eh->e_phnum > (l->size - l->eh->e_phoff) / sizeof(*l->ph))
		return bad(l, "it is cut", e);
	l->ph = (const void *)(l->file + l->eh->e_phoff);
	for (int i = 0; i < l->eh->e_phnum; i++) {
		const Elf64_Phdr *p = &l->ph[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_offset > l->size || p->p_filesz > l->size - p->p_offset || p->p_memsz > 1u << 30 ||
		    p->p_filesz > p->p_memsz || p->p_vaddr < l->span || p->p_vaddr > 1u << 30 ||
		    (p->p_vaddr - p->p_offset) % PAGE)
			return bad(l, "it is cut", e);
		l->span = p->p_vaddr + p->p_memsz;
	}
	if (!l->eh->e_entry || l->eh->e_entry >= l->span)
		return bad(l, "it has no entry point", e);
	return 0;
}

static int prot_of(const Elf64_Phdr *p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
	       (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/* What is behind the file's bytes in the last page is zero, as is all that follows: it is anonymous already. */
static int map_segment(const struct lib *l, const Elf64_Phdr *p, struct ptrace_error *e)
{
	uint64_t lo = p->p_vaddr & ~(PAGE - 1), at = p->p_vaddr + p->p_filesz,
		 hi = (at + PAGE - 1) & ~(PAGE - 1);
	int prot = prot_of(p);

	if (hi > lo && mmap(l->base + lo, hi - lo, prot, MAP_PRIVATE | MAP_FIXED, l->fd,
			    (off_t)(p->p_offset - (p->p_vaddr - lo))) == MAP_FAILED)
		return err_set(e, PTRACE_IO, "cannot map %s: %s", l->path, strerror(errno));
	if (prot & PROT_WRITE)
		memset(l->base + at, 0, hi - at);
	return 0;
}

static int relocate(const struct lib *l, struct ptrace_error *e)
{
	const Elf64_Dyn *d = NULL;
	uint64_t n = 0, rela = 0, size = 0;

	for (int i = 0; i < l->eh->e_phnum; i++)
		if (l->ph[i].p_type == PT_DYNAMIC && l->ph[i].p_offset <= l->size &&
		    l->ph[i].p_filesz <= l->size - l->ph[i].p_offset) {
			d = (const void *)(l->file + l->ph[i].p_offset);
			n = l->ph[i].p_filesz / sizeof(*d);
		}
	for (; n && d->d_tag != DT_NULL; d++, n--) {
		rela = d->d_tag == DT_RELA ? d->d_un.d_ptr : rela;
		size = d->d_tag == DT_RELASZ ? d->d_un.d_val : size;
		if (d->d_tag == DT_NEEDED || (d->d_tag == DT_PLTRELSZ && d->d_un.d_val))
			return bad(l, "it needs other libraries", e);
	}
	if (rela > l->span || size > l->span - rela)
		return bad(l, "its relocations are cut", e);
	for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); i++) {
		const Elf64_Rela *r = (const Elf64_Rela *)(l->base + rela) + i;

		if (ELF64_R_TYPE(r->r_info) != R_X86_64_RELATIVE || r->r_offset > l->span - 8)
			return bad(l, "it has other relocations than relative ones", e);
		*(uint64_t *)(l->base + r->r_offset) = (uint64_t)(l->base + r->r_addend);
	}
	return 0;
}

static int load(struct lib *l, struct ptrace_error *e)
{
	if (check(l, e))
		return -1;
	l->base = area_map(l->span, PROT_READ | PROT_WRITE, -1, 0, e);
	if (!l->base)
		return -1;
	for (int i = 0; i < l->eh->e_phnum; i++)
		if (l->ph[i].p_type == PT_LOAD && map_segment(l, &l->ph[i], e))
			return -1;
	return relocate(l, e);
}

uint64_t lib_load(const char *path, struct ptrace_error *e)
{
	struct lib l = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
	uint64_t entry = 0;

	l.file = file_map(path, &l.size, e);
	if (l.file && l.fd >= 0 && !load(&l, e))
		entry = (uint64_t)l.base + l.eh->e_entry;
	file_unmap(l.file, l.size);
	if (l.fd >= 0)
		close(l.fd);
	return entry;
}
