/* SPDX-License-Identifier: MIT
 *
 * rt_apply.c - puts a module's copy in place and patches its original text; and undoes it
 *
 *   original text ── jmp, rel8 to islands, int3 fill ──▶ copy (anonymous, within ±2 GiB, r-x)
 *
 * The original text is a private file mapping: undoing is dropping its modified pages, after
 * which the kernel reads them from the file again (madvise(2), MADV_DONTNEED). The vDSO is no
 * file: its bytes are saved.
 */
#include <elf.h>
#include "rt.h"

static int prot_of(uint32_t pf)
{
	return (pf & PF_R ? PROT_READ : 0) | (pf & PF_W ? PROT_WRITE : 0) | (pf & PF_X ? PROT_EXEC : 0);
}

static uint64_t seg_lo(const struct rt_module *m, const struct map_seg *s)
{
	return (m->bias + s->vaddr) & ~(RT_PAGE - 1);
}

static uint64_t seg_hi(const struct rt_module *m, const struct map_seg *s)
{
	return (m->bias + s->vaddr + s->memsz + RT_PAGE - 1) & ~(RT_PAGE - 1);
}

static bool fix(struct rt_module *m)
{
	uint64_t n;
	const struct map_fixup *f = rt_map_sect(m->map, MAP_FIXUPS, &n, sizeof(*f));
	uint64_t size = m->map->sect[MAP_COPY].size;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t p = m->copy + f[i].copy_off;
		uint32_t width = f[i].kind == MAP_FIX_ABS64 ? 8 : 4;

		if (size < width || f[i].copy_off > size - width)
			return false;
		switch (f[i].kind) {
		case MAP_FIX_MOD32:
			*(uint32_t *)p += (uint32_t)(m->bias - m->copy);
			break;
		case MAP_FIX_ABS64:
			*(uint64_t *)p += m->bias;
			break;
		case MAP_FIX_LO32:
			*(uint32_t *)p += (uint32_t)m->bias;
			break;
		case MAP_FIX_HI32:
			*(uint32_t *)p = (m->bias + *(uint32_t *)p) >> 32;
			break;
		case MAP_FIX_MARK:
			*(uint32_t *)p += m->site_base << RUN_MARK_ID_SHIFT;
			break;
		default:
			return false;
		}
	}
	return true;
}

static bool in_text(const struct rt_module *m, uint32_t vaddr, uint32_t len)
{
	uint64_t n;
	const struct map_seg *s = rt_map_sect(m->map, MAP_SEGS, &n, sizeof(*s));

	for (uint64_t i = 0; i < n; i++)
		if ((s[i].prot & PF_X) && vaddr >= s[i].vaddr &&
		    vaddr - s[i].vaddr + (uint64_t)len <= s[i].filesz)
			return true;
	return false;
}

static uint32_t patch_len(const struct map_patch *p)
{
	switch (p->kind) {
	case MAP_PATCH_JMP:
		return 5;
	case MAP_PATCH_JMP8:
		return 2;
	case MAP_PATCH_CALL:
		return 4;
	case MAP_PATCH_INT3:
		return p->arg;
	default:
		return 0;
	}
}

/* everything that could fail is found before the first byte is written */
static bool patches_ok(const struct rt_module *m)
{
	uint64_t n, copy = m->map->sect[MAP_COPY].size;
	const struct map_patch *p = rt_map_sect(m->map, MAP_PATCHES, &n, sizeof(*p));

	for (uint64_t i = 0; i < n; i++) {
		uint32_t len = patch_len(&p[i]);

		if (!len || !in_text(m, p[i].vaddr, len))
			return false;
		if ((p[i].kind == MAP_PATCH_JMP || p[i].kind == MAP_PATCH_CALL) && p[i].arg >= copy)
			return false;
		if (p[i].kind == MAP_PATCH_JMP8 &&
		    (int32_t)(p[i].arg - p[i].vaddr - 2) != (int8_t)(p[i].arg - p[i].vaddr - 2))
			return false;
	}
	return true;
}

static void patch(const struct rt_module *m)
{
	uint64_t n;
	const struct map_patch *p = rt_map_sect(m->map, MAP_PATCHES, &n, sizeof(*p));

	for (uint64_t i = 0; i < n; i++) {
		uint8_t *at = (uint8_t *)(m->bias + p[i].vaddr);
		uint32_t rel = (uint32_t)(m->copy + p[i].arg - (uint64_t)at);

		switch (p[i].kind) {
		case MAP_PATCH_JMP:
			at[0] = 0xe9;
			*(uint32_t *)(at + 1) = rel - 5;
			break;
		case MAP_PATCH_JMP8:
			at[0] = 0xeb;
			at[1] = (uint8_t)(p[i].arg - p[i].vaddr - 2);
			break;
		case MAP_PATCH_CALL:
			*(uint32_t *)at = rel - 4;
			break;
		case MAP_PATCH_INT3:
			memset(at, 0xcc, p[i].arg);
			break;
		}
	}
}

/* all executable segments writable, or back to what they were; -errno at the first failure */
static long protect(const struct rt_module *m, bool writable)
{
	uint64_t n;
	const struct map_seg *s = rt_map_sect(m->map, MAP_SEGS, &n, sizeof(*s));
	long first = 0;

	for (uint64_t i = 0; i < n; i++) {
		long r;

		if (!(s[i].prot & PF_X))
			continue;
		r = rt_mprotect(seg_lo(m, &s[i]), seg_hi(m, &s[i]) - seg_lo(m, &s[i]),
				writable ? PROT_READ | PROT_WRITE : prot_of(s[i].prot));
		if (rt_err(r) && !first)
			first = r;
	}
	return first;
}

/* Every page of these sections, the copy and the patched text is going to be touched: have them all at
 * once, a fault each costs more than the work on it. Where the kernel cannot, the faults come. */
static void have(uint64_t lo, uint64_t hi, int advice)
{
	lo &= ~(RT_PAGE - 1);
	rt_sc(__NR_madvise, lo, ((hi + RT_PAGE - 1) & ~(RT_PAGE - 1)) - lo, advice);
}

static void have_sections(const struct rt_module *m)
{
	static const uint8_t used[] = {MAP_COPY, MAP_FIXUPS, MAP_PATCHES};

	for (size_t i = 0; i < sizeof(used); i++) {
		uint64_t at = (uint64_t)m->map + m->map->sect[used[i]].off;

		have(at, at + m->map->sect[used[i]].size, MADV_POPULATE_READ);
	}
}

/* the text between patches that are near each other */
static void have_text(const struct rt_module *m)
{
	const uint32_t far = 8 * RT_PAGE;
	uint64_t n;
	const struct map_patch *p = rt_map_sect(m->map, MAP_PATCHES, &n, sizeof(*p));

	for (uint64_t i = 0, first = 0; i < n; i++) {
		if (i + 1 < n && p[i + 1].vaddr - p[i].vaddr < far)
			continue;
		have(m->bias + p[first].vaddr, m->bias + p[i].vaddr + patch_len(&p[i]), MADV_POPULATE_WRITE);
		first = i + 1;
	}
}

static int place(struct rt_module *m)
{
	uint64_t size = m->map->sect[MAP_COPY].size;

	m->copy_size = (size + RT_PAGE - 1) & ~(RT_PAGE - 1);
	if (!size)
		return RUN_MOD_REFUSED;
	m->copy = rt_place_near(m->lo, m->hi, m->copy_size);
	if (!m->copy)
		return RUN_MOD_NO_ROOM;
	if (size >= RT_HUGE)
		rt_sc(__NR_madvise, m->copy, m->copy_size, MADV_HUGEPAGE);
	have(m->copy, m->copy + m->copy_size, MADV_POPULATE_WRITE);
	have_sections(m);
	memcpy((void *)m->copy, (const uint8_t *)m->map + m->map->sect[MAP_COPY].off, size);
	memset((void *)(m->copy + size), 0xcc, m->copy_size - size);
	if (!fix(m) || !patches_ok(m))
		return RUN_MOD_MISMATCH;
	if (rt_err(rt_mprotect(m->copy, m->copy_size, PROT_READ | PROT_EXEC)))
		return RUN_MOD_REFUSED;
	return RUN_MOD_OK;
}

int rt_apply(struct rt_module *m)
{
	int r = place(m);

	if (!r && m->vdso) {
		m->saved = rt_alloc(m->hi - m->lo);
		if (m->saved)
			memcpy(m->saved, (void *)m->lo, m->hi - m->lo);
		else
			r = RUN_MOD_NO_ROOM;
	}
	if (!r && rt_err(protect(m, true))) {
		protect(m, false);
		r = RUN_MOD_REFUSED;
	}
	if (r) {
		if (m->copy)
			rt_munmap(m->copy, m->copy_size);
		m->copy = 0;
		return r;
	}
	have_text(m);
	patch(m);
	m->patched = true;
	protect(m, false);
	return RUN_MOD_OK;
}

/* mlock'ed pages cannot be dropped: write the file's bytes over them */
static void rewrite(const struct rt_module *m, const struct map_seg *s)
{
	long fd = rt_open(m->path, O_RDONLY, 0);

	if (rt_err(fd))
		return;
	protect(m, true);
	rt_pread((int)fd, (void *)(m->bias + s->vaddr), s->filesz, s->off);
	protect(m, false);
	rt_close((int)fd);
}

void rt_unapply(struct rt_module *m)
{
	uint64_t n;
	const struct map_seg *s;

	if (!m->patched)
		return;
	m->patched = false;
	if (m->vdso) {
		protect(m, true);
		memcpy((void *)m->lo, m->saved, m->hi - m->lo);
		protect(m, false);
		return;
	}
	s = rt_map_sect(m->map, MAP_SEGS, &n, sizeof(*s));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t lo = seg_lo(m, &s[i]);

		if ((s[i].prot & PF_X) &&
		    rt_err(rt_sc(__NR_madvise, lo, seg_hi(m, &s[i]) - lo, MADV_DONTNEED)))
			rewrite(m, &s[i]);
	}
}

void rt_unapply_all(void)
{
	for (uint32_t i = 0; i < rt.nmod; i++)
		rt_unapply(&rt.mod[i]);
}
