/* SPDX-License-Identifier: MIT
 *
 * rt_elf.c - the little the runtime reads from an ELF file: key, span, text relocations
 *
 * Key: the GNU build-id from the PT_NOTE segments, else XXH3-128 of the file, both exactly as
 * ptrace-analyze makes it (analyzer/elf.c): a map with another key is refused.
 */
#include <elf.h>
#include "rt.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0 /* scalar: no vector registers in the runtime */
#define XXH_NO_STREAM
/* plain loads: the default is a memcpy of 8 bytes, which is a call here (-fno-builtin), and slow: rep movsb */
#define XXH_FORCE_MEMORY_ACCESS 1
#pragma GCC diagnostic ignored "-Wunused-function"
#include <xxhash.h>

#define MAX_PHDR 64
#define DF_TEXTREL_BIT 4

uint64_t rt_xxh3(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

static bool note_id(const uint8_t *p, size_t n, struct rt_elf *e)
{
	while (n >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *h = (const void *)p;
		size_t name = (h->n_namesz + 3ull) & ~3ull, desc = (h->n_descsz + 3ull) & ~3ull;

		if (sizeof(*h) + name + h->n_descsz > n)
			return false;
		if (h->n_type == NT_GNU_BUILD_ID && h->n_namesz == 4 && h->n_descsz >= 8 &&
		    !memcmp(p + sizeof(*h), "GNU", 4)) {
			e->key_len = h->n_descsz > 32 ? 32 : h->n_descsz;
			e->key_kind = 1;
			memcpy(e->key, p + sizeof(*h) + name, e->key_len);
			return true;
		}
		if (sizeof(*h) + name + desc > n)
			return false;
		p += sizeof(*h) + name + desc;
		n -= sizeof(*h) + name + desc;
	}
	return false;
}

static int hash_file(int fd, struct rt_elf *e)
{
	struct stat st;
	XXH128_hash_t h;
	long r = rt_fstat(fd, &st);
	uint64_t at;

	if (rt_err(r) || st.st_size <= 0)
		return RUN_MOD_REFUSED;
	at = rt_place_far(st.st_size, RT_PAGE, fd, PROT_READ, MAP_PRIVATE);
	if (!at)
		return RUN_MOD_NO_ROOM;
	h = XXH3_128bits((const void *)at, st.st_size);
	rt_munmap(at, (st.st_size + RT_PAGE - 1) & ~(RT_PAGE - 1));
	h.high64 = __builtin_bswap64(h.high64); /* XXH128_canonicalFromHash: big endian, high half first */
	h.low64 = __builtin_bswap64(h.low64);
	memcpy(e->key, &h.high64, 8);
	memcpy(e->key + 8, &h.low64, 8);
	e->key_len = 16;
	e->key_kind = 2;
	return RUN_MOD_OK;
}

static void read_dynamic(int fd, const Elf64_Phdr *ph, struct rt_elf *e)
{
	Elf64_Dyn d[64];
	uint64_t off = ph->p_offset, left = ph->p_filesz;

	while (left >= sizeof(d[0])) {
		long n = rt_pread(fd, d, left < sizeof(d) ? left : sizeof(d), off);

		if (n < (long)sizeof(d[0]))
			return;
		for (size_t i = 0; i < n / sizeof(d[0]); i++) {
			if (d[i].d_tag == DT_NULL)
				return;
			if (d[i].d_tag == DT_TEXTREL ||
			    (d[i].d_tag == DT_FLAGS && (d[i].d_un.d_val & DF_TEXTREL_BIT)))
				e->textrel = true;
		}
		n -= n % sizeof(d[0]);
		off += n;
		left -= n;
	}
}

int rt_elf_read(int fd, struct rt_elf *e)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[MAX_PHDR];
	uint8_t notes[2048] __attribute__((aligned(8)));
	bool first = true;

	memset(e, 0, sizeof(*e));
	if (rt_pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != EM_X86_64 ||
	    eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > MAX_PHDR)
		return RUN_MOD_REFUSED;
	if (rt_pread(fd, ph, eh.e_phnum * sizeof(ph[0]), eh.e_phoff) != (long)(eh.e_phnum * sizeof(ph[0])))
		return RUN_MOD_REFUSED;
	for (int i = 0; i < eh.e_phnum; i++) {
		uint64_t lo = ph[i].p_vaddr & ~(RT_PAGE - 1);
		uint64_t hi = (ph[i].p_vaddr + ph[i].p_memsz + RT_PAGE - 1) & ~(RT_PAGE - 1);
		long n;

		switch (ph[i].p_type) {
		case PT_LOAD:
			if (first) {
				e->lo = lo;
				e->vaddr0 = lo - (ph[i].p_offset & ~(RT_PAGE - 1));
			}
			first = false;
			e->hi = hi;
			break;
		case PT_NOTE:
			n = rt_pread(fd, notes,
				     ph[i].p_filesz < sizeof(notes) ? ph[i].p_filesz : sizeof(notes),
				     ph[i].p_offset);
			if (n > 0 && !e->key_len)
				note_id(notes, n, e);
			break;
		case PT_DYNAMIC:
			read_dynamic(fd, &ph[i], e);
			break;
		}
	}
	if (first)
		return RUN_MOD_REFUSED;
	return e->key_len ? RUN_MOD_OK : hash_file(fd, e);
}
