/* SPDX-License-Identifier: MIT
 *
 * rt_vdso.c - the vDSO while a program is recorded for a replay: its functions are system calls
 *
 * They read the clock from memory that the kernel writes whenever it likes. (The hook need not ask the kernel:
 * rt_clock.c.) What is recorded in full from some point on has its own functions back, unless a signal has come in one of
 * ours: its handler may still return there.
 */
#include <elf.h>
#include "rt.h"

#define INT3 0xcc

static struct {
	uint64_t at, size;
	uint8_t *saved, *file;
	bool entered;
} vdso;

/* b8 nr; 0f 05; c3: mov $nr,%eax; syscall; ret */
static void put_stub(uint8_t *at, uint32_t nr)
{
	at[0] = 0xb8;
	memcpy(at + 1, &nr, 4);
	at[5] = 0x0f;
	at[6] = 0x05;
	at[7] = 0xc3;
}

static uint32_t vdso_call(const char *name)
{
	static const struct {
		const char *name;
		uint32_t nr;
	} call[] = {{"__vdso_clock_gettime", __NR_clock_gettime},
		    {"__vdso_gettimeofday", __NR_gettimeofday},
		    {"__vdso_time", __NR_time},
		    {"__vdso_getcpu", __NR_getcpu},
		    {"__vdso_clock_getres", __NR_clock_getres},
		    {"__vdso_getrandom", ~0u}};

	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++)
		if (rt_streq(name, call[i].name))
			return call[i].nr;
	return 0;
}

/* mov $-38,%eax (ENOSYS); ret */
static const uint8_t no_such[6] = {0xb8, 0xda, 0xff, 0xff, 0xff, 0xc3};

static void change_id(uint8_t *image, const Elf64_Phdr *ph)
{
	uint64_t at = ph->p_offset, end = at + ph->p_filesz;

	while (at + sizeof(Elf64_Nhdr) <= end) {
		const Elf64_Nhdr *n = (void *)(image + at);
		uint64_t desc = at + sizeof(*n) + ((n->n_namesz + 3) & ~3u);

		if (n->n_type == NT_GNU_BUILD_ID && n->n_descsz && desc + n->n_descsz <= end)
			image[desc] ^= 0x5a; /* it is another image now */
		at = desc + ((n->n_descsz + 3) & ~3u);
	}
}

struct symbols {
	const Elf64_Sym *at;
	const char *str;
	uint64_t n;
};

static struct symbols symbols(const uint8_t *image)
{
	const Elf64_Ehdr *eh = (const void *)image;
	const Elf64_Shdr *sh = (const void *)(image + eh->e_shoff);
	struct symbols s = {0};

	for (uint32_t i = 0; i < eh->e_shnum; i++)
		if (sh[i].sh_type == SHT_DYNSYM)
			s = (struct symbols){(const void *)(image + sh[i].sh_offset),
					     (const void *)(image + sh[sh[i].sh_link].sh_offset),
					     sh[i].sh_size / sizeof(Elf64_Sym)};
	return s;
}

static uint32_t call_of(const struct symbols *s, uint64_t k)
{
	return s->at[k].st_shndx ? vdso_call(s->str + s->at[k].st_name) : 0;
}

/* A stub has no frame of its own: nothing of what the unwind table says behind the beginning of its function is true any more
 * (LSB Core, 10.6: .eh_frame; what the CIE says is: the return address is on top). Its instructions become DW_CFA_nop.
 * Only CIEs as the kernel's vDSO has them are known: "zR", addresses relative to where they stand. */
static void plain_frames(uint8_t *eh, uint64_t size, const uint8_t *entry)
{
	static const uint8_t cie[] = {0, 0, 0, 0, 1, 'z', 'R', 0};
	uint32_t len, id;
	int32_t rel;

	for (uint64_t at = 0; at + 16 < size; at += 4 + len) {
		uint8_t *p = eh + at;

		memcpy(&len, p, 4);
		if (len < 13 || len > size - at - 4)
			return;
		memcpy(&id, p + 4, 4);
		memcpy(&rel, p + 8, 4);
		if (!id || p + 8 + rel != entry || id > at + 4 || memcmp(p + 4 - id + 4, cie, sizeof(cie)) ||
		    p[16])
			continue;
		memset(p + 17, 0, len + 4 - 17);
	}
}

static void stub_frames(uint8_t *image, const uint8_t *entry)
{
	const Elf64_Ehdr *eh = (void *)image;
	const Elf64_Shdr *sh = (void *)(image + eh->e_shoff);
	const char *name = (void *)(image + sh[eh->e_shstrndx].sh_offset);

	for (uint32_t i = 0; i < eh->e_shnum; i++)
		if (rt_streq(name + sh[i].sh_name, ".eh_frame"))
			plain_frames(image + sh[i].sh_offset, sh[i].sh_size, entry);
}

/* The vDSO's image, which begins with its ELF header; its sections are in it (the kernel's vdso.lds). */
static void change_vdso(uint8_t *image, uint64_t size)
{
	const Elf64_Ehdr *eh = (void *)image;
	const Elf64_Phdr *ph = (void *)(image + eh->e_phoff);
	const struct symbols s = symbols(image);

	for (uint64_t k = 0; k < s.n; k++) {
		uint32_t nr = call_of(&s, k);

		if (nr == ~0u)
			memcpy(image + s.at[k].st_value, no_such, sizeof(no_such));
		if (nr == __NR_clock_gettime)
			rt_clock_move(image, size, s.at[k].st_value);
		if (nr && nr != ~0u)
			put_stub(image + s.at[k].st_value, nr);
		if (nr)
			stub_frames(image, image + s.at[k].st_value);
	}
	for (uint32_t i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_NOTE)
			change_id(image, &ph[i]);
}

/* In the file, of which the map is made, there is nothing of the functions but the stubs: rt_clock.c executes what is left of
 * one, which must not be patched. */
static void bury(uint8_t *file, const uint8_t *image)
{
	const Elf64_Ehdr *eh = (const void *)image;
	const Elf64_Shdr *sh = (const void *)(image + eh->e_shoff);
	const struct symbols s = symbols(image);

	memcpy(file, image, vdso.size);
	for (uint32_t i = 0; i < eh->e_shnum; i++)
		if (sh[i].sh_flags & SHF_EXECINSTR)
			memset(file + sh[i].sh_offset, INT3, sh[i].sh_size);
	for (int stubs = 0; stubs < 2; stubs++) /* functions have several names */
		for (uint64_t k = 0; k < s.n; k++) {
			const Elf64_Sym *y = &s.at[k];

			if (!y->st_shndx || ELF64_ST_TYPE(y->st_info) != STT_FUNC ||
			    (call_of(&s, k) != 0) != stubs)
				continue;
			memset(file + y->st_value, INT3, y->st_size);
			memcpy(file + y->st_value, image + y->st_value, stubs ? RT_VDSO_STUB : y->st_size);
		}
}

const void *rt_vdso_file(void)
{
	return vdso.file;
}

static bool find_vdso(const struct rt_vma *v, void *arg)
{
	uint64_t *span = arg;

	if (!rt_streq(v->path, "[vdso]"))
		return true;
	span[0] = v->lo;
	span[1] = v->hi - v->lo;
	return false;
}

/* 0 or a negative errno */
int rt_vdso_change(void)
{
	uint64_t span[2] = {0, 0};
	int r = rt_maps(find_vdso, span);

	if (r || !span[0])
		return r;
	vdso.saved = rt_alloc(span[1]);
	vdso.file = rt_alloc(span[1]);
	if (!vdso.saved || !vdso.file)
		return -ENOMEM;
	r = (int)rt_mprotect(span[0], span[1], PROT_READ | PROT_WRITE);
	if (r)
		return r;
	memcpy(vdso.saved, (void *)span[0], span[1]);
	change_vdso((uint8_t *)span[0], span[1]);
	rt_mprotect(span[0], span[1], PROT_READ | PROT_EXEC);
	vdso.at = span[0];
	vdso.size = span[1];
	bury(vdso.file, (uint8_t *)span[0]);
	return 0;
}

/* a signal has come there, or something else, and the program goes on from there some time */
void rt_vdso_signal(uint64_t rip)
{
	vdso.entered |= rip - vdso.at < vdso.size;
}

/* no recording any more */
void rt_vdso_back(void)
{
	if (vdso.entered || !vdso.size || rt_err(rt_mprotect(vdso.at, vdso.size, PROT_READ | PROT_WRITE)))
		return;
	memcpy((void *)vdso.at, vdso.saved, vdso.size);
	rt_mprotect(vdso.at, vdso.size, PROT_READ | PROT_EXEC);
	vdso.size = 0;
}
