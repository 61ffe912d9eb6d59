/* SPDX-License-Identifier: MIT
 *
 * rt_vdso.c - the vDSO while a program is recorded for a replay: its functions are system calls
 *
 * They read the clock from memory that the kernel writes whenever it likes. What is recorded in full from some point on has
 * its own functions back, unless a signal has come in one of ours: its handler may still return there.
 */
#include <elf.h>
#include "rt.h"

static struct {
	uint64_t at, size;
	uint8_t *saved;
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
			image[desc] ^= 0xff; /* it is another image now */
		at = desc + ((n->n_descsz + 3) & ~3u);
	}
}

/* The vDSO's image, which begins with its ELF header; its sections are in it (the kernel's vdso.lds). */
static void change_vdso(uint8_t *image)
{
	const Elf64_Ehdr *eh = (void *)image;
	const Elf64_Phdr *ph = (void *)(image + eh->e_phoff);
	const Elf64_Shdr *sh = (void *)(image + eh->e_shoff);
	const Elf64_Sym *sym;
	const char *str;

	for (uint32_t i = 0; i < eh->e_shnum; i++) {
		if (sh[i].sh_type != SHT_DYNSYM)
			continue;
		sym = (void *)(image + sh[i].sh_offset);
		str = (void *)(image + sh[sh[i].sh_link].sh_offset);
		for (uint64_t k = 0; k < sh[i].sh_size / sizeof(*sym); k++) {
			uint32_t nr = sym[k].st_shndx ? vdso_call(str + sym[k].st_name) : 0;

			if (nr == ~0u)
				memcpy(image + sym[k].st_value, no_such, sizeof(no_such));
			else if (nr)
				put_stub(image + sym[k].st_value, nr);
		}
	}
	for (uint32_t i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_NOTE)
			change_id(image, &ph[i]);
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
	if (!vdso.saved)
		return -ENOMEM;
	r = (int)rt_mprotect(span[0], span[1], PROT_READ | PROT_WRITE);
	if (r)
		return r;
	memcpy(vdso.saved, (void *)span[0], span[1]);
	change_vdso((uint8_t *)span[0]);
	rt_mprotect(span[0], span[1], PROT_READ | PROT_EXEC);
	vdso.at = span[0];
	vdso.size = span[1];
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
