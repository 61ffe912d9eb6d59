/* SPDX-License-Identifier: MIT
 *
 * rt_map.c - finds the map of a module in the cache, has it made, checks it, maps it
 *
 *   cache/KEY-VERSION[-FLAGS].ptmap     as made by ptrace-analyze (MAP_F_LETTERS)
 *   cache/KEY-VERSION[-FLAGS].ptmap.avoid
 *                                        link-time addresses (hex, a line each) entered unexpectedly
 *   run.dir/maps/KEY.ptmap              link to (or copy of) the one used
 *
 * All processes of a run use the map in its directory, whatever happens to the cache meanwhile. One
 * that does not check out, or is older than its avoid list, is made once more.
 */
#include "rt.h"

static void put_key(struct rt_str *s, const struct rt_module *m)
{
	for (uint32_t i = 0; i < m->key_len; i++)
		rt_putx(s, m->key[i], 2);
}

static void put_flags(struct rt_str *s)
{
	static const char letter[] = MAP_F_LETTERS;
	char c[2] = "-";

	if (rt.mapflags)
		rt_put(s, c);
	for (uint32_t i = 0; i < sizeof(letter) - 1; i++)
		if (rt.mapflags >> i & 1) {
			c[0] = letter[i];
			rt_put(s, c);
		}
	if (rt.mapflags & MAP_F_PTW)
		rt_putu(s, MAP_BUDGET(rt.mapflags));
}

static bool cache_path(const struct rt_module *m, char *buf)
{
	struct rt_str s = rt_str(buf, RT_PATH);

	rt_put(&s, rt.cache);
	rt_put(&s, "/");
	put_key(&s, m);
	rt_put(&s, "-");
	rt_putu(&s, MAP_VERSION);
	put_flags(&s);
	rt_put(&s, ".ptmap");
	return !s.cut;
}

static bool check(const struct map_head *h, uint64_t size, const struct rt_module *m, const struct rt_elf *e)
{
	static const uint16_t unit[MAP_NSECTIONS] = {
		[MAP_COPY] = 1,
		[MAP_FIXUPS] = sizeof(struct map_fixup),
		[MAP_PATCHES] = sizeof(struct map_patch),
		[MAP_RANGES] = sizeof(struct map_range),
		[MAP_XLAT] = sizeof(struct map_xlat),
		[MAP_SEGS] = sizeof(struct map_seg),
	};

	if (size < sizeof(*h) || h->magic != MAP_MAGIC || h->version != MAP_VERSION ||
	    h->head_xxh3 != rt_xxh3(h, offsetof(struct map_head, head_xxh3)))
		return false;
	if (h->key_len != m->key_len || memcmp(h->key, m->key, m->key_len) || h->key_kind != e->key_kind ||
	    (h->flags & ~MAP_F_FOUND) != rt.mapflags)
		return false;
	for (int i = 0; i < MAP_NSECTIONS; i++) {
		const struct map_sect *s = &h->sect[i];

		if (s->off > size || s->size > size - s->off || (unit[i] && s->off % 8))
			return false;
	}
	return h->vaddr_lo <= h->vaddr_hi && h->vaddr_lo == e->lo;
}

static void unload(struct rt_module *m)
{
	rt_copy_drop(m);
	rt_munmap((uint64_t)m->map, (m->map_size + RT_PAGE - 1) & ~(RT_PAGE - 1));
	m->map = NULL;
}

/* RUN_MOD_OK with m->map and the copy set, or why not */
static int load(struct rt_module *m, const struct rt_elf *e, const char *path)
{
	long fd = rt_open(path, O_RDONLY, 0);
	struct stat st;
	uint64_t at;
	int r;

	if (rt_err(fd))
		return RUN_MOD_NO_MAP;
	if (rt_err(rt_fstat((int)fd, &st)) || st.st_size < (long)sizeof(struct map_head)) {
		rt_close((int)fd);
		return RUN_MOD_MISMATCH;
	}
	at = rt_place_far(st.st_size, RT_PAGE, (int)fd, PROT_READ, MAP_PRIVATE);
	m->map = (const void *)at;
	m->map_size = st.st_size;
	if (!at)
		r = RUN_MOD_NO_ROOM;
	else
		r = check(m->map, st.st_size, m, e) ? RUN_MOD_OK : RUN_MOD_MISMATCH;
	if (!r) {
		m->hidden = m->map->flags & MAP_F_HIDDEN;
		rt.bases |= m->map->flags & MAP_F_BASES;
		r = rt_copy_make(m, (int)fd);
	}
	rt_close((int)fd);
	if (r && at)
		unload(m);
	return r;
}

static bool avoid_path(char *buf, const char *path)
{
	struct rt_str s = rt_str(buf, RT_PATH);

	rt_put(&s, path);
	rt_put(&s, ".avoid");
	return !s.cut;
}

/* time of last change in ns, 0 if there is no such file */
static uint64_t changed(const char *path)
{
	long fd = rt_open(path, O_RDONLY, 0);
	uint64_t t = 0;
	struct stat st;

	if (rt_err(fd))
		return 0;
	if (!rt_err(rt_fstat((int)fd, &st)))
		t = st.st_mtime * 1000000000ull + st.st_mtime_nsec;
	rt_close((int)fd);
	return t;
}

static bool outdated(const char *path)
{
	char avoid[RT_PATH];
	uint64_t t = avoid_path(avoid, path) ? changed(avoid) : 0;

	return t && t > changed(path);
}

/* cached: whose list of unexpected entries it is; place: for --place, ~0 none */
static int make(const struct rt_module *m, const char *path, const char *cached, const char *file,
		uint32_t place)
{
	char avoid[RT_PATH];

	if (!rt.analyze[0])
		return -ENOENT;
	if (!avoid_path(avoid, cached))
		return -ENAMETOOLONG;
	/* it gives the file its name when it is complete: should this process be killed meanwhile, the next has it */
	return rt_spawn_analyzer(file, path, m->path, changed(avoid) ? avoid : NULL, place);
}

static int copy_file(const struct rt_module *m, const char *to)
{
	long fd = rt_open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
	int r;

	if (fd == -EEXIST)
		return 0;
	if (rt_err(fd))
		return (int)fd;
	r = rt_write_all((int)fd, m->map, m->map_size);
	rt_close((int)fd);
	if (r)
		rt_sc(__NR_unlink, to);
	return r;
}

static bool kept_path(const struct rt_module *m, char *buf)
{
	struct rt_str s = rt_str(buf, RT_PATH);

	rt_put(&s, rt.run);
	rt_put(&s, "/maps/");
	put_key(&s, m);
	/* images of one run need not agree */
	rt_put(&s, rt.mapflags & MAP_F_PTW	? "-w.ptmap"
		   : rt.mapflags & MAP_F_PT	? "-p.ptmap"
		   : rt.mapflags & MAP_F_SPARSE ? "-s.ptmap"
						: ".ptmap");
	return !s.cut;
}

/* The run directory must hold every map used: it is self-contained. 1: there is one already. */
static int keep(const struct rt_module *m, const char *path, const char *to)
{
	char tmp[RT_PATH];
	struct rt_str s = rt_str(tmp, sizeof(tmp));
	long r = rt_sc(__NR_link, path, to);

	if (!r || r == -EEXIST)
		return r != 0;
	rt_put(&s, to);
	rt_put(&s, ".");
	rt_putu(&s, rt.pid);
	r = s.cut ? -ENAMETOOLONG : copy_file(m, tmp);
	if (!r)
		r = rt_sc(__NR_link, tmp, to);
	if (r && r != -EEXIST)
		r = rt_sc(__NR_rename, tmp, to);
	else
		rt_sc(__NR_unlink, tmp);
	return r == -EEXIST ? 1 : (int)r;
}

/* In it a replay ends: its map is made for that, and for no other run. The analysis is the same otherwise. */
static bool get_placed(struct rt_module *m, const struct rt_elf *e, const char *kept, const char *cached,
		       const char *file)
{
	uint32_t place = rt.how == RT_REPLAY ? rt_reach_in(m) : ~0u;

	return place != ~0u && !make(m, kept, cached, file, place) && load(m, e, kept) == RUN_MOD_OK;
}

int rt_map_get(struct rt_module *m, const struct rt_elf *e, const char *file)
{
	char path[RT_PATH], kept[RT_PATH];
	int r, k;

	if (!cache_path(m, path) || !kept_path(m, kept))
		return RUN_MOD_NO_MAP;
	if (get_placed(m, e, kept, path, file))
		return RUN_MOD_OK;
	if (load(m, e, kept) == RUN_MOD_OK)
		return RUN_MOD_OK;
	r = load(m, e, path);
	if (r == RUN_MOD_NO_MAP || r == RUN_MOD_MISMATCH) {
		if (make(m, path, path, file, ~0u))
			return RUN_MOD_NO_MAP;
		r = load(m, e, path);
	} else if (!r && outdated(path) && !make(m, path, path, file, ~0u)) {
		unload(m);
		r = load(m, e, path);
	}
	if (r)
		return r;
	k = keep(m, path, kept);
	if (k)
		unload(m);
	/* another process of this run was faster: its map is the run's */
	return k > 0 ? load(m, e, kept) : k < 0 ? RUN_MOD_NO_ROOM : RUN_MOD_OK;
}

void rt_map_avoid(const struct rt_module *m, uint32_t vaddr)
{
	char path[RT_PATH], avoid[RT_PATH], line[16];
	struct rt_str l = rt_str(line, sizeof(line));
	long fd;

	/* once: twice on the list means that being on it did not help (analyzer/avoid.c) */
	for (uint32_t i = 0; i < rt.nseen; i++)
		if (rt.seen[i].module == m->index && rt.seen[i].vaddr == vaddr)
			return;
	if (rt.nseen == sizeof(rt.seen) / sizeof(rt.seen[0]))
		return; /* another run */
	rt.seen[rt.nseen].module = m->index;
	rt.seen[rt.nseen++].vaddr = vaddr;
	if (!cache_path(m, path) || !avoid_path(avoid, path))
		return;
	rt_putx(&l, vaddr, 8);
	rt_put(&l, "\n");
	fd = rt_open(avoid, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (rt_err(fd))
		return;
	rt_write_all((int)fd, line, l.n);
	rt_close((int)fd);
}
