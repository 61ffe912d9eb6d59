/* SPDX-License-Identifier: MIT
 *
 * rt_mod.c - the modules of the process: found, traced or left opaque, recorded in modules.bin
 *
 * A module is a run of mappings of one file in /proc/self/maps with an executable one among
 * them. This needs nothing of ld.so's data and finds what other loaders mapped as well. Its
 * bias is the address of file offset 0 less that offset's link-time address.
 */
#include "rt.h"

#define MAX_CAND 256

struct cand {
	uint64_t lo, hi; /* mapping of offset 0; end of the last mapping seen */
	uint64_t ino;
	uint32_t major, minor;
	bool exec;
	char path[RT_PATH];
};
struct scan {
	struct cand *c;
	uint32_t n;
	uint64_t want; /* only the candidate that maps this address executable, 0: all */
};

static bool scan_vma(const struct rt_vma *v, void *arg)
{
	struct scan *s = arg;
	struct cand *c = s->n ? &s->c[s->n - 1] : NULL;
	bool vdso = rt_streq(v->path, "[vdso]");

	if ((v->path[0] != '/' && !vdso) || rt_ours(v->lo))
		return true;
	if (!c || v->off == 0 || c->ino != v->ino || c->major != v->dev_major || c->minor != v->dev_minor) {
		if (c && !c->exec)
			s->n--; /* no code in it */
		if (v->off || s->n >= MAX_CAND)
			return true;
		c = &s->c[s->n++];
		c->lo = v->lo;
		c->ino = v->ino;
		c->major = v->dev_major;
		c->minor = v->dev_minor;
		c->exec = false;
		rt_dir_path(c->path, v->path, "");
	}
	c->hi = v->hi;
	if (v->prot & PROT_EXEC) {
		c->exec = true;
		if (s->want >= v->lo && s->want < v->hi)
			return false;
	}
	return true;
}

static struct scan *scan(uint64_t want)
{
	static struct scan s;

	if (!s.c)
		s.c = rt_alloc(MAX_CAND * sizeof(struct cand));
	s.n = 0;
	s.want = want;
	if (!s.c || rt_maps(scan_vma, &s))
		return NULL;
	if (s.n && !s.c[s.n - 1].exec)
		s.n--;
	return &s;
}

static int record(const struct rt_module *m, uint32_t kind, uint32_t index)
{
	uint64_t buf[(sizeof(struct run_module) + RT_PATH + 16) / 8];
	struct run_module *r = (void *)buf;
	char path[RT_PATH];
	size_t n = rt_strlen(m->path) + 1;
	long fd;
	int err;

	memset(buf, 0, sizeof(buf));
	r->magic = RUN_MODULE_MAGIC;
	r->size = (sizeof(*r) + n + 7) & ~7u;
	r->index = index;
	r->kind = kind;
	r->bias = m->bias;
	r->copy_base = kind == 1 ? m->copy : 0;
	r->lo = m->lo;
	r->hi = m->hi;
	r->site_base = m->site_base;
	r->reason = m->reason;
	memcpy(r->key, m->key, sizeof(r->key));
	r->key_len = m->key_len;
	r->path_len = n;
	r->map_flags = rt.mapflags;
	memcpy(r + 1, m->path, n);
	r->xxh3 = rt_xxh3(r, r->size);
	if (rt.active) /* what has become of the path, of us, of our rights? */
		return rt_ring_message(RING_MODULES, r, r->size);
	rt_dir_path(path, rt.proc, "modules.bin");
	fd = rt_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (rt_err(fd))
		return (int)fd;
	err = rt_write_all((int)fd, r, r->size);
	rt_close((int)fd);
	return err;
}

/* the vDSO is no file: its image goes into the run directory and is analysed there */
static int vdso_file(const struct cand *c, char *file)
{
	long fd;
	int r;

	/* for a replay it is another one: rt_vdso.c */
	rt_dir_path(file, rt.run, rt.how == RT_RECORD ? "maps/vdso-replay.so" : "maps/vdso.so");
	fd = rt_open(file, O_RDONLY, 0);
	if (!rt_err(fd))
		return (int)fd;
	fd = rt_open(file, O_RDWR | O_CREAT | O_EXCL, 0666);
	if (rt_err(fd))
		return (int)fd;
	r = rt_write_all((int)fd, rt.how == RT_RECORD ? rt_vdso_file() : (void *)c->lo, c->hi - c->lo);
	if (!r)
		return (int)fd;
	rt_close((int)fd);
	return r;
}

/* A loaded module that has one of the mark ids from..from+n-1, or NULL. */
static const struct rt_module *id_owner(uint32_t from, uint32_t n)
{
	for (uint32_t i = 0; i < rt.nmod; i++) {
		const struct rt_module *m = &rt.mod[i];

		if (m->index != ~0u && m->kind == 1 && from < m->site_base + m->map->nsites &&
		    m->site_base < from + n)
			return m;
	}
	return NULL;
}

/* Mark ids for m, behind those given last as long as there are any: what a stale id names stays unknown
 * to the decoder that long, and not another module's. */
bool rt_mod_ids(struct rt_module *m)
{
	uint32_t n = m->map->nsites, at = rt.next_id;
	const struct rt_module *o;

	for (int pass = 0; pass < 2; pass++, at = 0) {
		while (n <= RUN_MARK_IDS && at <= RUN_MARK_IDS - n) {
			o = id_owner(at, n);
			if (!o) {
				m->site_base = at;
				rt.next_id = at + n;
				return true;
			}
			at = o->site_base + o->map->nsites;
		}
	}
	return false;
}

/* what is in the file; the module's place */
static int identify(struct rt_module *m, const struct cand *c, int fd, struct rt_elf *e)
{
	struct stat st;
	int r;

	if (rt_err(rt_fstat(fd, &st)))
		return RUN_MOD_NO_MAP;
	if (!m->vdso && st.st_ino != c->ino)
		return RUN_MOD_MISMATCH; /* another file has this name by now */
	r = rt_elf_read(fd, e);
	if (r)
		return r;
	memcpy(m->key, e->key, sizeof(m->key));
	m->key_len = e->key_len;
	m->bias = c->lo - e->vaddr0;
	m->lo = m->bias + e->lo;
	m->hi = m->bias + e->hi;
	if ((uint64_t)rt_text_lo >= m->lo && (uint64_t)rt_text_lo < m->hi)
		return RUN_MOD_SELF;
	if (e->textrel)
		return RUN_MOD_TEXTREL;
	return e->hi >> 32 ? RUN_MOD_REFUSED : RUN_MOD_OK;
}

static bool is_file(int fd, const struct cand *c)
{
	struct stat st;

	return !rt_err(rt_fstat(fd, &st)) && st.st_ino == c->ino;
}

/* A program whose name leads nowhere (a memfd, a file that is deleted), or to another file by now: the kernel still has it. Its
 * name, by which the analyzer finds it as well, goes to file. Recordings keep files by their names. */
static int unnamed(const struct cand *c, char *file)
{
	struct rt_str s = rt_str(file, RT_PATH);
	long fd;

	if (rt.how != RT_FULL)
		return -ENOENT;
	rt_put(&s, "/proc/");
	rt_putu(&s, (uint64_t)rt_getpid());
	rt_put(&s, "/exe");
	fd = rt_open(file, O_RDONLY, 0);
	if (!rt_err(fd) && !is_file((int)fd, c)) {
		rt_close((int)fd);
		fd = -ENOENT;
	}
	return (int)fd;
}

static int load(struct rt_module *m, const struct cand *c)
{
	char file[RT_PATH];
	struct rt_elf e;
	long fd;
	int r;

	m->vdso = c->path[0] == '[';
	rt_dir_path(file, c->path, "");
	fd = m->vdso ? vdso_file(c, file) : rt_open(file, O_RDONLY, 0);
	if (!m->vdso && (rt_err(fd) || !is_file((int)fd, c))) {
		int other = unnamed(c, file);

		if (!rt_err(other) && !rt_err(fd))
			rt_close((int)fd);
		fd = rt_err(other) ? fd : other;
	}
	if (rt_err(fd))
		return RUN_MOD_NO_MAP;
	r = identify(m, c, (int)fd, &e);
	if (rt.pt && m->key_len)
		rt_text_keep(m, (int)fd);
	if (!r)
		r = rt_map_get(m, &e, file);
	if (!r)
		r = rt_apply(m, (int)fd);
	rt_close((int)fd);
	if (!r && rt.how == RT_REPLAY)
		rt_reach_module(m);
	return r;
}

/* a place in the table, or NULL. Nobody looks at it before its index says so */
static struct rt_module *place(void)
{
	for (uint32_t i = 0; i < rt.nmod; i++)
		if (rt.mod[i].index == ~0u)
			return &rt.mod[i];
	return rt.nmod < RT_NMOD ? &rt.mod[rt.nmod] : NULL;
}

/* Other threads' signals look at the table without a lock. */
static void publish(struct rt_module *to, const struct rt_module *m)
{
	uint32_t index = m->index;

	*to = *m;
	to->index = ~0u;
	__atomic_store_n(&to->index, index, __ATOMIC_RELEASE);
	if (to == &rt.mod[rt.nmod])
		__atomic_store_n(&rt.nmod, rt.nmod + 1, __ATOMIC_RELEASE);
}

static struct rt_module *add(const struct cand *c)
{
	static struct rt_module m; /* too large for a thread's stack, with what load() has there */
	struct rt_module *to = place();
	size_t n = rt_strlen(c->path) + 1;

	if (!to)
		return NULL;
	memset(&m, 0, sizeof(m));
	m.path = rt_alloc(n);
	if (!m.path)
		return NULL;
	memcpy(m.path, c->path, n);
	m.bias = m.lo = c->lo;
	m.hi = c->hi;
	m.index = ~0u;
	m.reason = load(&m, c);
	m.kind = m.reason ? 2 : 1;
	rt.blind |= m.hidden || (m.reason && m.reason != RUN_MOD_SELF && m.reason != RUN_MOD_NOTHING);
	m.index = rt.nindex;
	if (record(&m, m.kind, m.index)) {
		/* the decoder could not know: do not trace what it cannot be told of */
		rt_unapply(&m);
		return NULL;
	}
	rt.nindex++;
	publish(to, &m);
	return to;
}

/* The C library makes the threads and processes. Untraced it would make them behind our back: two threads with one TCB. Who
 * has an analyzer of their own may leave it out, for programs that make none. */
static bool indispensable(const struct rt_module *m)
{
	const char *name = m->path;
	bool own = rt.analyze_opt && !rt_streq(rt.analyze_opt, "never");

	for (const char *p = name; *p; p++)
		if (*p == '/')
			name = p + 1;
	if (!rt_starts(name, "libc.so") && !rt_starts(name, "libc-2") && !rt_starts(name, "libpthread") &&
	    !rt_starts(name, "ld-musl"))
		return false;
	return m->reason == RUN_MOD_NO_ROOM || !own;
}

int rt_mod_start(void)
{
	struct scan *s;
	uint32_t traced = 0;
	bool blind = false;
	int r;

	rt.mod = rt_alloc(RT_NMOD * sizeof(struct rt_module));
	s = rt.mod ? scan(0) : NULL;
	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		struct rt_module *m = add(&s->c[i]);

		if (!m) {
			rt_unapply_all();
			return -EIO;
		}
		blind |= m->kind == 2 && indispensable(m);
		traced += m->kind == 1;
	}
	r = rt_copy_seal();
	if (!r && traced && blind)
		r = -ELIBACC;
	if (!r && traced && rt.bases)
		r = -EADDRINUSE;
	if (r)
		rt_unapply_all();
	return r ? r : traced ? 0 : -ENOENT;
}

/* a file was mapped executable at addr: NULL if there is nothing to tell the decoder */
struct rt_module *rt_mod_exec(uint64_t addr, uint64_t size)
{
	struct rt_module *m;
	struct scan *s;
	struct cand *c;

	if (rt_mod_at(addr) || !size)
		return NULL;
	s = scan(addr);
	if (!s || !s->n)
		return NULL;
	c = &s->c[s->n - 1];
	/* A program may map a piece of a file of code once more, elsewhere (V8 does, to have its builtins near what it
	 * compiles): that is no module, and runs as it is. */
	if (addr < c->lo || addr >= c->hi || rt_mod_at(c->lo))
		return NULL;
	m = add(c);
	rt_scratch_drop();
	return m;
}

static bool text_overlap(const struct rt_module *m, uint64_t lo, uint64_t hi)
{
	uint64_t n;
	const struct map_seg *s;

	if (lo >= m->hi || hi <= m->lo)
		return false;
	if (m->kind != 1)
		return lo <= m->lo;
	s = rt_map_sect(m->map, MAP_SEGS, &n, sizeof(*s));
	for (uint64_t i = 0; i < n; i++)
		if ((s[i].prot & 1) && lo < m->bias + s[i].vaddr + s[i].memsz && hi > m->bias + s[i].vaddr)
			return true;
	return false;
}

bool rt_mod_text(uint64_t addr, uint64_t size)
{
	for (uint32_t i = 0; i < rt.nmod; i++)
		if (rt.mod[i].index != ~0u && rt.mod[i].kind == 1 &&
		    text_overlap(&rt.mod[i], addr, addr + size))
			return true;
	return false;
}

/* out of the table first: as publish() */
static void forget(struct rt_module *m)
{
	uint64_t copy = m->copy, map = (uint64_t)m->map;

	__atomic_store_n(&m->index, ~0u, __ATOMIC_RELEASE);
	__atomic_store_n(&m->copy, 0, __ATOMIC_RELEASE);
	m->lo = m->hi = 0;
	m->patched = false;
	if (copy)
		rt_munmap(copy, m->copy_size);
	if (map)
		rt_munmap(map, (m->map_size + RT_PAGE - 1) & ~(RT_PAGE - 1));
	m->copy_size = 0;
}

/* after an unmapping: forgets modules whose text is gone; fills indices of their records */
uint32_t rt_mod_unmap(uint64_t addr, uint64_t size, uint32_t *index, uint32_t max)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < rt.nmod && k < max; i++) {
		struct rt_module *m = &rt.mod[i];

		if (m->index == ~0u || !text_overlap(m, addr, addr + size))
			continue;
		if (!record(m, 0, rt.nindex))
			index[k++] = rt.nindex++;
		forget(m);
	}
	return k;
}

struct rt_module *rt_mod_at(uint64_t addr)
{
	for (uint32_t i = 0; i < rt.nmod; i++)
		if (rt.mod[i].index != ~0u && addr >= rt.mod[i].lo && addr < rt.mod[i].hi)
			return &rt.mod[i];
	return NULL;
}

struct rt_module *rt_mod_traced(uint64_t addr)
{
	struct rt_module *m = rt_mod_at(addr);
	const struct map_range *r;
	uint64_t lo = 0, hi, n;

	if (!m || m->kind != 1 || !m->patched)
		return NULL;
	r = rt_map_sect(m->map, MAP_RANGES, &n, sizeof(*r));
	for (hi = n; lo < hi;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (m->bias + r[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && addr >= m->bias + r[lo].start ? m : NULL;
}

struct rt_module *rt_mod_at_copy(uint64_t addr)
{
	for (uint32_t i = 0; i < rt.nmod; i++)
		if (rt.mod[i].copy && addr - rt.mod[i].copy < rt.mod[i].copy_size)
			return &rt.mod[i];
	return NULL;
}
