/* SPDX-License-Identifier: MIT
 *
 * rt_apply.c - patches a module's original text, so that control enters its copy (rt_copy.c); and undoes it
 *
 *   original text ── jmp, rel8 to islands, int3 fill ──▶ copy (within ±2 GiB)
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

/* the executable segment that vaddr is in; s: where to look first */
static const struct map_seg *text_at(const struct rt_module *m, uint32_t vaddr, const struct map_seg *s)
{
	uint64_t n;

	if (s && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
		return s;
	s = rt_map_sect(m->map, MAP_SEGS, &n, sizeof(*s));
	for (uint64_t i = 0; i < n; i++)
		if ((s[i].prot & PF_X) && vaddr >= s[i].vaddr && vaddr - s[i].vaddr < s[i].filesz)
			return &s[i];
	return NULL;
}

uint32_t rt_patch_len(const struct map_patch *p)
{
	switch (MAP_PATCH_KIND(p->kind)) {
	case MAP_PATCH_NEAR:
		return map_near_ok(p->kind) ? MAP_NEAR_BYTES(p->kind) : 0;
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
	uint64_t copy = m->map->sect[MAP_COPY].size;
	const struct map_patch *p = m->patch;
	const struct map_seg *s = NULL;

	for (uint64_t i = 0; i < m->npatch; i++) {
		uint32_t len = rt_patch_len(&p[i]);

		s = text_at(m, p[i].vaddr, s);
		if (!len || !s || p[i].vaddr - s->vaddr + (uint64_t)len > s->filesz)
			return false;
		if ((p[i].kind == MAP_PATCH_JMP || p[i].kind == MAP_PATCH_CALL) && p[i].arg >= copy)
			return false;
		if (p[i].kind == MAP_PATCH_JMP8 &&
		    (int32_t)(p[i].arg - p[i].vaddr - 2) != (int8_t)(p[i].arg - p[i].vaddr - 2))
			return false;
	}
	return true;
}

static void fill(uint8_t *at, uint32_t n)
{
	if (n >= 64)
		memset(at, 0xcc, n);
	else /* most are a few bytes */
		for (uint32_t i = 0; i < n; i++)
			at[i] = 0xcc;
}

static void put(const struct rt_module *m, const struct map_patch *p, uint8_t *at)
{
	uint32_t rel = (uint32_t)(m->copy + p->arg - (m->bias + p->vaddr));

	switch (MAP_PATCH_KIND(p->kind)) {
	case MAP_PATCH_NEAR:
		map_near(p, at);
		break;
	case MAP_PATCH_JMP:
		at[0] = 0xe9;
		*(uint32_t *)(at + 1) = rel - 5;
		break;
	case MAP_PATCH_JMP8:
		at[0] = 0xeb;
		at[1] = (uint8_t)(p->arg - p->vaddr - 2);
		break;
	case MAP_PATCH_CALL:
		*(uint32_t *)at = rel - 4;
		break;
	case MAP_PATCH_INT3:
		fill(at, p->arg);
		break;
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

struct span {
	uint64_t i; /* next patch */
	uint32_t done; /* bytes of it, a long fill, that the last window had */
};

/* the next patches that are near each other, below limit: returns the window's end, *s is moved behind it */
static uint32_t span_next(const struct rt_module *m, struct span *s, uint32_t start, uint32_t limit)
{
	const uint32_t far = 2 * RT_PAGE;
	uint32_t end = start;

	for (; s->i < m->npatch; s->i++, s->done = 0) {
		const struct map_patch *p = &m->patch[s->i];
		uint32_t from = p->vaddr + s->done, to = p->vaddr + rt_patch_len(p);

		if (from < start || to > limit || (from > end && from - end >= far))
			break;
		if (to - start > RT_WINDOW) {
			if (p->kind == MAP_PATCH_INT3 && from - start < RT_WINDOW) {
				end = start + RT_WINDOW;
				s->done = end - p->vaddr;
			}
			break;
		}
		end = to > end ? to : end;
	}
	return end;
}

static void put_span(const struct rt_module *m, struct span a, struct span b, uint32_t start, uint32_t end)
{
	for (uint64_t i = a.i; i < b.i || (i == b.i && b.done); i++) {
		const struct map_patch *p = &m->patch[i];
		uint32_t from = p->vaddr < start ? start : p->vaddr, to = p->vaddr + rt_patch_len(p);

		if (p->kind == MAP_PATCH_INT3)
			fill(m->window + (from - start), (to < end ? to : end) - from);
		else
			put(m, p, m->window + (p->vaddr - start));
	}
}

/* all executable segments: what is in memory of them goes, the file stays */
static void forget(const struct rt_module *m)
{
	uint64_t n;
	const struct map_seg *s = rt_map_sect(m->map, MAP_SEGS, &n, sizeof(*s));

	for (uint64_t i = 0; i < n; i++)
		if (s[i].prot & PF_X)
			rt_sc(__NR_madvise, seg_lo(m, &s[i]), seg_hi(m, &s[i]) - seg_lo(m, &s[i]),
			      MADV_DONTNEED);
}

/* From the file, by the kernel: a page that is not mapped yet is copied and mapped once; one that is must
 * first be taken back from every processor, and one that we touch is mapped for nothing (rt_copy.c). fd:
 * the module's file; mem: what writes, or -1. false: not (or not all) done */
static bool patch_by_kernel(const struct rt_module *m, int fd, int mem)
{
	const struct map_seg *seg = NULL;
	struct span s = {0, 0};

	forget(m);
	while (s.i < m->npatch) {
		uint32_t start = m->patch[s.i].vaddr + s.done;
		struct span was = s;
		long n;

		seg = text_at(m, start, seg);
		n = span_next(m, &s, start, (uint32_t)(seg->vaddr + seg->filesz)) - start;
		if (rt_pread(fd, m->window, n, seg->off + (start - seg->vaddr)) != n)
			return false;
		put_span(m, was, s, start, start + (uint32_t)n);
		if (mem >= 0 ? rt_sc(__NR_pwrite64, mem, m->window, n, m->bias + start) != n
			     : rt_copy_in(m->bias + start, m->window, n) != 0)
			return false;
	}
	return true;
}

/* By way of /proc/self/mem, which writes what is mapped private whatever its protection, as a debugger does: the
 * text stays as it is mapped. Some kernels do not let it (proc_mem.force_override). */
static bool patch_as_is(const struct rt_module *m, int fd)
{
	long mem = m->vdso ? -1 : rt_open("/proc/self/mem", O_RDWR, 0);
	bool ok = !rt_err(mem) && patch_by_kernel(m, fd, (int)mem);

	if (!rt_err(mem))
		rt_close((int)mem);
	return ok;
}

static bool patch(const struct rt_module *m, int fd)
{
	if (patch_as_is(m, fd))
		return true;
	if (rt_err(protect(m, true))) {
		protect(m, false);
		return false;
	}
	if (m->vdso || !patch_by_kernel(m, fd, -1))
		for (uint64_t i = 0; i < m->npatch; i++)
			put(m, &m->patch[i], (uint8_t *)(m->bias + m->patch[i].vaddr));
	protect(m, false);
	return true;
}

int rt_apply(struct rt_module *m, int fd)
{
	int r = patches_ok(m) ? RUN_MOD_OK : RUN_MOD_MISMATCH;

	if (!r && m->vdso) {
		m->saved = rt_alloc(m->hi - m->lo);
		if (m->saved)
			memcpy(m->saved, (void *)m->lo, m->hi - m->lo);
		else
			r = RUN_MOD_NO_ROOM;
	}
	if (!r) {
		m->patched = patch(m, fd);
		r = m->patched ? RUN_MOD_OK : RUN_MOD_REFUSED;
	}
	if (r)
		rt_copy_drop(m);
	return r;
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
