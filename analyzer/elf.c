/* SPDX-License-Identifier: MIT
 *
 * elf.c - opens an ELF module: headers, segments, key
 *
 * The file may be truncated or hostile: every read goes through elf_off() or elf_at(), which
 * check bounds; nothing else touches the bytes. Section headers are used where they exist, a
 * module without them (sstrip, a dumped vDSO) still opens from its program headers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "elf_priv.h"

bool vec_grow(void **v, uint32_t *cap, size_t size)
{
	uint32_t n = *cap ? *cap * 2 : 64;
	void *p = n > *cap ? realloc(*v, n * size) : NULL;

	if (!p)
		return false;
	*v = p;
	*cap = n;
	return true;
}

const uint8_t *elf_off(const struct module *m, uint64_t off, uint64_t n)
{
	return off <= m->file_size && n <= m->file_size - off ? m->file + off : NULL;
}

/* mov $15,%rax or mov $15,%eax; syscall at v */
bool elf_sigreturn(const struct module *m, uint32_t v)
{
	const uint8_t *p;

	return ((p = elf_at(m, v, 9)) && !memcmp(p, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9)) ||
	       ((p = elf_at(m, v, 7)) && !memcmp(p, "\xb8\x0f\0\0\0\x0f\x05", 7));
}

bool elf_is_text(const struct module *m, uint32_t vaddr)
{
	for (uint32_t i = 0; i < m->nseg; i++) {
		const struct map_seg *s = &m->seg[i];

		if ((s->prot & PF_X) && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return true;
	}
	return false;
}

bool elf_fixed(const struct module *m, uint32_t vaddr, uint32_t n)
{
	const struct elf_range *r = &elf_priv(m)->relro;

	if (vaddr >= r->start && vaddr < r->end && n <= r->end - vaddr)
		return true;
	for (uint32_t i = 0; i < m->nseg; i++) {
		const struct map_seg *s = &m->seg[i];

		if (!(s->prot & PF_W) && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return true;
	}
	return false;
}

static int fail(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (errlen)
		vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return -1;
}

static int add_load(struct module *m, const Elf64_Phdr *p, char *err, size_t errlen)
{
	uint64_t lo = p->p_vaddr & ~4095ull, hi;

	if (p->p_filesz > p->p_memsz || p->p_memsz > UINT32_MAX ||
	    p->p_vaddr > UINT32_MAX - p->p_memsz - 4096)
		return fail(err, errlen, "addresses above 4 GiB or a malformed segment");
	if (!elf_off(m, p->p_offset, p->p_filesz))
		return fail(err, errlen, "the file is truncated: a segment ends beyond it");
	hi = (p->p_vaddr + p->p_memsz + 4095) & ~4095ull;
	m->seg[m->nseg++] = (struct map_seg){p->p_offset, p->p_filesz, p->p_memsz, p->p_vaddr, p->p_flags};
	if ((p->p_flags & PF_X) && !m->code.prot)
		m->code = m->seg[m->nseg - 1];
	if (lo < m->vaddr_lo)
		m->vaddr_lo = lo;
	if (hi > m->vaddr_hi)
		m->vaddr_hi = hi;
	if (!(p->p_flags & PF_W) && p->p_filesz)
		m->ro[m->nro++] = (struct an_ro){p->p_vaddr, p->p_filesz, m->file + p->p_offset, false};
	return 0;
}

/* The build-id note identifies the file's contents (gABI notes; GNU build-id is type 3). */
static void find_build_id(struct module *m, const Elf64_Phdr *p)
{
	uint64_t off = p->p_offset, end = p->p_offset + p->p_filesz;

	if (!elf_off(m, p->p_offset, p->p_filesz))
		return;
	while (end - off >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		uint64_t name, desc;

		memcpy(&n, m->file + off, sizeof(n));
		name = off + sizeof(n);
		desc = name + ((n.n_namesz + 3ull) & ~3ull);
		if (desc > end || n.n_descsz > end - desc)
			return;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(m->file + name, "GNU", 4) &&
		    n.n_descsz >= 8) {
			m->key_len = n.n_descsz < 32 ? n.n_descsz : 32;
			memcpy(m->key, m->file + desc, m->key_len);
			m->key_kind = 1;
			return;
		}
		off = desc + ((n.n_descsz + 3ull) & ~3ull);
		if (off > end)
			return;
	}
}

static int read_phdrs(struct module *m, const Elf64_Ehdr *eh, char *err, size_t errlen)
{
	const uint8_t *ph = elf_off(m, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(Elf64_Phdr));

	if (!ph || !eh->e_phnum || eh->e_phentsize != sizeof(Elf64_Phdr))
		return fail(err, errlen, "no usable program headers");
	m->seg = calloc(eh->e_phnum, sizeof(*m->seg));
	m->ro = calloc(eh->e_phnum, sizeof(*m->ro));
	if (!m->seg || !m->ro)
		return fail(err, errlen, "out of memory");
	m->vaddr_lo = UINT32_MAX;
	for (uint32_t i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr p;

		memcpy(&p, ph + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_LOAD && add_load(m, &p, err, errlen))
			return -1;
		if (p.p_type == PT_NOTE && !m->key_kind)
			find_build_id(m, &p);
		if (p.p_type == PT_GNU_RELRO && p.p_vaddr < UINT32_MAX && p.p_memsz < UINT32_MAX - p.p_vaddr)
			/* the loader protects whole pages inside the range only (glibc dl-reloc.c) */
			elf_priv(m)->relro = (struct elf_range){p.p_vaddr, (p.p_vaddr + p.p_memsz) & ~4095u};
	}
	return m->nseg ? 0 : fail(err, errlen, "nothing to load in it");
}

static bool is_plt(const char *name)
{
	return !strcmp(name, ".plt") || !strcmp(name, ".plt.sec") || !strcmp(name, ".plt.bnd");
}

/* Executable sections, PLTs and rseq descriptors, by section header. */
static int read_sections(struct module *m, const Elf64_Ehdr *eh)
{
	struct elf_priv *x = elf_priv(m);
	const uint8_t *sh = elf_off(m, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(Elf64_Shdr));
	Elf64_Shdr str, s;

	if (!sh || eh->e_shentsize != sizeof(Elf64_Shdr) || eh->e_shstrndx >= eh->e_shnum)
		return 0;
	memcpy(&str, sh + eh->e_shstrndx * sizeof(s), sizeof(s));
	if (!str.sh_size || !elf_off(m, str.sh_offset, str.sh_size) ||
	    m->file[str.sh_offset + str.sh_size - 1])
		return 0;
	for (uint32_t i = 0; i < eh->e_shnum; i++) {
		const char *name;
		struct elf_range r;

		memcpy(&s, sh + i * sizeof(s), sizeof(s));
		if (!(s.sh_flags & SHF_ALLOC) || s.sh_name >= str.sh_size || s.sh_addr >= UINT32_MAX ||
		    s.sh_size >= UINT32_MAX - s.sh_addr || !s.sh_size)
			continue;
		name = (const char *)m->file + str.sh_offset + s.sh_name;
		r = (struct elf_range){s.sh_addr, s.sh_addr + s.sh_size};
		if (!strcmp(name, "__rseq_cs"))
			x->rseq = r;
		if (!strcmp(name, ".eh_frame"))
			x->ehdr = r;
		if (!(s.sh_flags & SHF_EXECINSTR) && elf_is_text(m, r.start) && !VEC_PUSH(&x->data, r))
			return -1;
		if (!(s.sh_flags & SHF_EXECINSTR) || s.sh_type != SHT_PROGBITS ||
		    !elf_at(m, r.start, s.sh_size))
			continue;
		if (!VEC_PUSH(&x->text, r) || (is_plt(name) && !VEC_PUSH(&x->plt, r)))
			return -1;
	}
	return 0;
}

static int cmp_range(const void *a, const void *b)
{
	const struct elf_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Executable ranges, ascending and disjoint; text_lo and text_hi span them. */
static int text_ranges(struct module *m)
{
	struct elf_priv *x = elf_priv(m);
	uint32_t n = 0;

	if (!x->text.n)
		for (uint32_t i = 0; i < m->nseg; i++) {
			const struct map_seg *s = &m->seg[i];

			if ((s->prot & PF_X) && s->filesz &&
			    !VEC_PUSH(&x->text, (struct elf_range){s->vaddr, s->vaddr + (uint32_t)s->filesz}))
				return -1;
		}
	if (x->text.n)
		qsort(x->text.v, x->text.n, sizeof(*x->text.v), cmp_range);
	if (x->plt.n)
		qsort(x->plt.v, x->plt.n, sizeof(*x->plt.v), cmp_range);
	for (uint32_t i = 0; i < x->text.n; i++) {
		if (n && x->text.v[i].start < x->text.v[n - 1].end)
			continue; /* overlapping headers: malformed, the first wins */
		x->text.v[n++] = x->text.v[i];
	}
	x->text.n = n;
	if (n) {
		m->text_lo = x->text.v[0].start;
		m->text_hi = x->text.v[n - 1].end;
	}
	return 0;
}

static int map_file(struct module *m, char *err, size_t errlen)
{
	int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st)) {
		int e = errno;

		if (fd >= 0)
			close(fd);
		return fail(err, errlen, "%s", strerror(e));
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		close(fd);
		return fail(err, errlen, "not an ELF file");
	}
	p = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return fail(err, errlen, "%s", strerror(errno));
	m->file = p;
	m->file_size = st.st_size;
	return 0;
}

static int open_checked(struct module *m, char *err, size_t errlen)
{
	Elf64_Ehdr eh;

	if (map_file(m, err, errlen))
		return -1;
	memcpy(&eh, m->file, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return fail(err, errlen, "not an ELF file");
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh.e_machine != EM_X86_64)
		return fail(err, errlen, "not an x86-64 ELF file");
	if (eh.e_type != ET_EXEC && eh.e_type != ET_DYN)
		return fail(err, errlen, "neither an executable nor a shared object");
	m->pie = eh.e_type == ET_DYN;
	if (read_phdrs(m, &eh, err, errlen))
		return -1;
	if (!m->key_kind) {
		XXH128_canonical_t c;

		XXH128_canonicalFromHash(&c, XXH3_128bits(m->file, m->file_size));
		memcpy(m->key, c.digest, 16);
		m->key_len = 16;
		m->key_kind = 2;
	}
	if (eh.e_entry && eh.e_entry < UINT32_MAX && !VEC_PUSH(&elf_priv(m)->root, (uint32_t)eh.e_entry))
		return fail(err, errlen, "out of memory");
	if (read_sections(m, &eh) || text_ranges(m) || elf_read_syms(m) || elf_read_eh(m))
		return fail(err, errlen, "out of memory");
	return 0;
}

struct module *elf_open(const char *path, char *err, size_t errlen)
{
	struct module *m = calloc(1, sizeof(*m));

	if (m)
		m->place = AN_NONE;
	if (m)
		m->priv = calloc(1, sizeof(struct elf_priv));
	if (!m || !m->priv || !(m->path = strdup(path))) {
		fail(err, errlen, "out of memory");
		if (m)
			free(m->priv);
		free(m);
		return NULL;
	}
	if (open_checked(m, err, errlen)) {
		elf_close(m);
		return NULL;
	}
	return m;
}
