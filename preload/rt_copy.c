/* SPDX-License-Identifier: MIT
 *
 * rt_copy.c - a module's copy: placed near it, read from its map, checked, fixed up
 *
 *   map file ── pread ──▶ copy (anonymous, huge pages where they fit, r-x)
 *            ── pread ──▶ scratch: fix-ups, patches
 *
 * What start-up costs is pages touched, not bytes: each is a fault, or several where a hypervisor keeps page
 * tables of its own. So what is used as a whole is read into memory of few pages (the kernel's side of
 * it is in huge ones), and the map's own mapping stays untouched until somebody needs its tables.
 */
#include "rt.h"

#define READ_MAX (1u << 30)

static uint64_t scratch, scratch_size;

void rt_scratch_drop(void)
{
	if (scratch)
		rt_munmap(scratch, scratch_size);
	scratch = 0;
}

uint8_t *rt_scratch(uint64_t size)
{
	size = (size + RT_HUGE - 1) & ~(RT_HUGE - 1);
	if (scratch && scratch_size >= size)
		return (uint8_t *)scratch;
	rt_scratch_drop();
	scratch = rt_place_far(size, RT_HUGE, -1, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (!scratch)
		return NULL;
	scratch_size = size;
	rt_sc(__NR_madvise, scratch, size, MADV_HUGEPAGE);
	return (uint8_t *)scratch;
}

/* what is executed or patched must be what was written: a damaged copy would crash the program. The rest is
 * not read here at all (a map is many times its text): the decoder checks what it uses */
static bool read_section(const struct map_head *h, int fd, int s, void *to)
{
	uint64_t n = h->sect[s].size, at = 0;

	while (at < n) {
		long r = rt_pread(fd, (uint8_t *)to + at, n - at < READ_MAX ? n - at : READ_MAX,
				  h->sect[s].off + at);

		if (r == -EINTR)
			continue;
		if (rt_err(r) || r == 0)
			return false;
		at += r;
	}
	return rt_xxh3(to, n) == h->sect[s].xxh3;
}

static bool fix(struct rt_module *m, const struct map_fixup *f, uint64_t n)
{
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

/* the copy, writable; m->patch is what to do to the text. The fix-ups' room becomes rt_apply.c's window */
static bool read_all(struct rt_module *m, int fd)
{
	const struct map_head *h = m->map;
	uint64_t size = h->sect[MAP_COPY].size, fixes = h->sect[MAP_FIXUPS].size;
	uint64_t room = (fixes > RT_WINDOW ? fixes + 7 : RT_WINDOW) & ~7ull;
	uint8_t *buf = rt_scratch(room + h->sect[MAP_PATCHES].size);

	if (!buf || !read_section(h, fd, MAP_COPY, (void *)m->copy))
		return false;
	memset((void *)(m->copy + size), 0xcc, m->copy_size - size);
	if (!read_section(h, fd, MAP_FIXUPS, buf) ||
	    !fix(m, (const void *)buf, fixes / sizeof(struct map_fixup)))
		return false;
	m->window = buf;
	m->patch = (const void *)(buf + room);
	m->npatch = h->sect[MAP_PATCHES].size / sizeof(struct map_patch);
	return read_section(h, fd, MAP_PATCHES, (void *)m->patch);
}

/* ---- places ---- */

#define POOL_LEAST (64u << 10) /* a copy that a pool is made for */

/* What is touched in small pages is dear, so the copies of small modules that are loaded with the program share a
 * huge page. It becomes executable when all of them are there: in parts, it would be no huge page any more. */
static struct {
	uint64_t at, top, end;
} pool;

static bool in_pool(const struct rt_module *m)
{
	return m->copy >= pool.at && m->copy < pool.end;
}

static bool from_pool(struct rt_module *m)
{
	if (rt.active || m->copy_size > RT_HUGE / 2)
		return false;
	if (!pool.at && m->copy_size >= POOL_LEAST) {
		pool.at = pool.top = rt_place_near(m->lo, m->hi, RT_HUGE);
		pool.end = pool.at ? pool.at + RT_HUGE : 0;
		if (pool.at)
			rt_sc(__NR_madvise, pool.at, RT_HUGE, MADV_HUGEPAGE);
	}
	if (m->copy_size > pool.end - pool.top || !rt_place_reaches(m->lo, m->hi, pool.at, pool.end))
		return false;
	m->copy = pool.top;
	pool.top += m->copy_size;
	return true;
}

static bool own_place(struct rt_module *m)
{
	uint64_t page = m->copy_size < RT_HUGE / 4 ? RT_PAGE : RT_HUGE;

	m->copy_size = (m->copy_size + page - 1) & ~(page - 1);
	m->copy = rt_place_near(m->lo, m->hi, m->copy_size);
	if (m->copy && page == RT_HUGE)
		rt_sc(__NR_madvise, m->copy, m->copy_size, MADV_HUGEPAGE);
	return m->copy;
}

/* the pool's end belongs to the module before it, so that all of it is known to be ours */
int rt_copy_seal(void)
{
	uint64_t at = pool.at;
	struct rt_module *last = NULL;

	for (uint32_t i = 0; i < rt.nmod; i++)
		if (rt.mod[i].copy && in_pool(&rt.mod[i]) && (!last || rt.mod[i].copy > last->copy))
			last = &rt.mod[i];
	pool.at = pool.top = pool.end = 0;
	if (!at)
		return 0;
	if (!last) {
		rt_munmap(at, RT_HUGE);
		return 0;
	}
	last->copy_size = at + RT_HUGE - last->copy;
	return (int)rt_mprotect(at, RT_HUGE, PROT_READ | PROT_EXEC);
}

/* enum run_module_reason. m->map's head and the bounds of its sections are checked; fd: the map's file.
 * m->patch stays until the next use of the scratch memory */
int rt_copy_make(struct rt_module *m, int fd)
{
	uint64_t size = m->map->sect[MAP_COPY].size;

	if (!size)
		return m->map->flags & MAP_F_SPARSE ? RUN_MOD_NOTHING : RUN_MOD_REFUSED;
	if (!rt_mod_ids(m))
		return RUN_MOD_NO_ROOM;
	m->copy_size = (size + RT_PAGE - 1) & ~(RT_PAGE - 1);
	if (!from_pool(m) && !own_place(m))
		return RUN_MOD_NO_ROOM;
	rt_sc(__NR_madvise, m->copy, m->copy_size, MADV_POPULATE_WRITE); /* where it fails, the faults come */
	if (!read_all(m, fd)) {
		rt_copy_drop(m);
		return RUN_MOD_MISMATCH;
	}
	if (!in_pool(m) && rt_err(rt_mprotect(m->copy, m->copy_size, PROT_READ | PROT_EXEC))) {
		rt_copy_drop(m);
		return RUN_MOD_REFUSED;
	}
	return RUN_MOD_OK;
}

void rt_copy_drop(struct rt_module *m)
{
	if (m->copy && in_pool(m))
		pool.top = m->copy; /* it was the last */
	else if (m->copy)
		rt_munmap(m->copy, m->copy_size);
	m->copy = 0;
}
