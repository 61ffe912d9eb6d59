/* SPDX-License-Identifier: MIT
 *
 * rt_mkmap.c - stands in for ptrace-analyze: makes the map of rt_prog (rt_prog.S) by hand
 *
 * usage: rt_mkmap [--verify] -o MAP FILE. Any other file is refused, so it stays opaque.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>
#include "map.h"

static uint8_t *file;
static const Elf64_Sym *sym;
static size_t nsym;
static const char *str;

static uint64_t value(const char *pre, const char *name)
{
	char want[64];

	snprintf(want, sizeof(want), "%s%s", pre, name);
	for (size_t i = 0; i < nsym; i++)
		if (!strcmp(str + sym[i].st_name, want))
			return sym[i].st_value;
	return 0;
}

static uint8_t *at(uint64_t vaddr)
{
	const Elf64_Ehdr *eh = (void *)file;
	const Elf64_Phdr *ph = (void *)(file + eh->e_phoff);

	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && vaddr - ph[i].p_vaddr < ph[i].p_filesz)
			return file + ph[i].p_offset + (vaddr - ph[i].p_vaddr);
	exit(1);
}

static void read_elf(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	const Elf64_Ehdr *eh;
	const Elf64_Shdr *sh;

	if (!f || stat(path, &st) || !(file = malloc(st.st_size)) || fread(file, st.st_size, 1, f) != 1)
		exit(1);
	eh = (void *)file;
	sh = (void *)(file + eh->e_shoff);
	for (int i = 0; i < eh->e_shnum; i++) {
		if (sh[i].sh_type != SHT_SYMTAB)
			continue;
		sym = (void *)(file + sh[i].sh_offset);
		nsym = sh[i].sh_size / sizeof(*sym);
		str = (char *)file + sh[sh[i].sh_link].sh_offset;
	}
}

static struct map_head head;
static uint8_t out[1 << 20];
static uint64_t top = (sizeof(struct map_head) + 63) & ~63ull;

static void *section(int s, const void *p, size_t n)
{
	void *q = out + top;

	memcpy(q, p, n);
	head.sect[s].off = top;
	head.sect[s].size = n;
	head.sect[s].xxh3 = XXH3_64bits(p, n);
	top = (top + n + 63) & ~63ull;
	return q;
}

static void key_and_segs(void)
{
	const Elf64_Ehdr *eh = (void *)file;
	const Elf64_Phdr *ph = (void *)(file + eh->e_phoff);
	struct map_seg seg[16];
	int n = 0;

	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_NOTE) {
			const Elf64_Nhdr *h = (void *)(file + ph[i].p_offset);

			if (h->n_type == NT_GNU_BUILD_ID) {
				memcpy(head.key, (uint8_t *)(h + 1) + 4, h->n_descsz);
				head.key_len = h->n_descsz;
				head.key_kind = 1;
			}
		}
		if (ph[i].p_type != PT_LOAD)
			continue;
		if (!n)
			head.vaddr_lo = ph[i].p_vaddr & ~4095;
		head.vaddr_hi = (ph[i].p_vaddr + ph[i].p_memsz + 4095) & ~4095;
		seg[n++] = (struct map_seg){ph[i].p_offset, ph[i].p_filesz, ph[i].p_memsz, ph[i].p_vaddr,
					    ph[i].p_flags};
	}
	section(MAP_SEGS, seg, n * sizeof(seg[0]));
}

static int cmp(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void tables(void)
{
	static const char *const fn[] = {"call", "vfork", "log", "wait"};
	uint64_t copy = value("", "ptcopy"), end = value("", "ptcopy_end"), trap = value("", "t_trap");
	struct map_fixup fix[16];
	struct map_patch patch[8];
	struct map_xlat x[8];
	struct map_range range = {value("", "t_call"), value("", "t_end")};
	uint8_t *text = malloc(end - copy);
	int nf = 0, np = 0, nx = 0;

	memcpy(text, at(copy), end - copy);
	for (int i = 0; i < 4; i++) {
		uint64_t f = value("fx_", fn[i]);

		patch[np++] =
			(struct map_patch){value("pj_", fn[i]), MAP_PATCH_JMP, value("cj_", fn[i]) - copy};
		fix[nf++] = (struct map_fixup){value("mk_", fn[i]) - copy, MAP_FIX_MARK};
		*(uint32_t *)(text + (value("mk_", fn[i]) - copy)) += i << 3;
		if (!f)
			continue;
		*(uint32_t *)(text + (f - copy)) += copy; /* the linker had the copy at `copy`, we at 0 */
		fix[nf++] = (struct map_fixup){f - copy, MAP_FIX_MOD32};
	}
	patch[np++] = (struct map_patch){trap, MAP_PATCH_INT3, 6};
	for (int i = 3; i <= 5; i++) {
		char n[4];

		snprintf(n, sizeof(n), "%d", i);
		x[nx++] = (struct map_xlat){
			value("xc_", n) - copy, value("xo_", n), 0, 0xff, {0xff, 0xff}, 0, 0};
	}
	/* t_log has one entry for its whole body: the count in rdi is all its state */
	x[nx++] =
		(struct map_xlat){value("cj_", "log") - copy, value("xo_", "3"), 0, 0xff, {0xff, 0xff}, 0, 0};
	qsort(fix, nf, sizeof(fix[0]), cmp);
	qsort(patch, np, sizeof(patch[0]), cmp);
	qsort(x, nx, sizeof(x[0]), cmp);
	section(MAP_COPY, text, end - copy);
	section(MAP_FIXUPS, fix, nf * sizeof(fix[0]));
	section(MAP_PATCHES, patch, np * sizeof(patch[0]));
	section(MAP_XLAT, x, nx * sizeof(x[0]));
	section(MAP_RANGES, &range, sizeof(range));
}

int main(int argc, char **argv)
{
	const char *to = NULL, *from = NULL;
	FILE *f;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--verify"))
			head.flags = MAP_F_VERIFY;
		else if (!strcmp(argv[i], "-o") && i + 1 < argc)
			to = argv[++i];
		else
			from = argv[i];
	}
	if (!to || !from)
		return 2;
	read_elf(from);
	if (!value("", "ptcopy"))
		return 1;
	for (int i = 0; i < MAP_NSECTIONS; i++)
		head.sect[i].off = top;
	head.magic = MAP_MAGIC;
	head.version = MAP_VERSION;
	head.nsites = 4;
	key_and_segs();
	tables();
	head.head_xxh3 = XXH3_64bits(&head, offsetof(struct map_head, head_xxh3));
	memcpy(out, &head, sizeof(head));
	f = fopen(to, "wb");
	return !f || fwrite(out, top, 1, f) != 1 || fclose(f);
}
