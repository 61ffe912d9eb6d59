/* SPDX-License-Identifier: MIT
 *
 * rt_start.c - writes start.bin: registers, memory map, contents of all writable private memory
 *
 * What costs is what has been touched, not what has been reserved: large mappings are split into what holds something
 * and what does not, and smaller pages that do not are holes of the file.
 *
 * The decoder starts from this picture. It is taken on the runtime's own stack, with nothing of
 * the program's memory disturbed, at the state in which rt_ctor returns.
 */
#include <cpuid.h>
#include "rt.h"

#define REGIONS 8192 /* there is room for without a mapping of their own */
#define HOLE RT_HUGE /* untouched stretches of so many bytes are regions of their own */
#define MAX_NAMES                                                                                            \
	(512u << 10) /* bytes of their paths; one for all regions of a file that follow each other */

struct list {
	uint8_t *head; /* room for what of the file is before the regions and has the checksum, too, then */
	struct run_region *r; /* and for the names */
	uint32_t n, cap; /* n > cap: so many there would be */
	char *name; /* right behind the regions in the file */
	uint32_t names, last; /* bytes of them; where the last one begins */
	uint64_t stack_lo, stack_hi;
};

/* where it begins in the names, 0 if there is no room: whoever wants that region then does not know what it is */
static uint32_t add_name(struct list *l, const char *path)
{
	size_t n = rt_strlen(path) + 1;

	if (n == 1)
		return 0;
	if (l->last && rt_streq(l->name + l->last, path))
		return l->last;
	if (n > MAX_NAMES - l->names)
		return 0;
	memcpy(l->name + l->names, path, n);
	l->last = l->names;
	l->names += n;
	return l->last;
}

/* Has a page of it been written to? It is no page of a file then, by bits 61 to 63 of its pagemap entry (kernel,
 * Documentation/admin-guide/mm/pagemap.rst). Where that cannot be read it may have been. */
static bool changed(const struct rt_vma *v)
{
	static uint64_t e[512];
	long fd = rt_open("/proc/thread-self/pagemap", O_RDONLY, 0);
	bool is = rt_err(fd);

	for (uint64_t at = v->lo; at < v->hi && !is;) {
		long n = rt_pread((int)fd, e, sizeof(e), at / RT_PAGE * 8);

		is = n < 8;
		for (long i = 0; i < n / 8 && at < v->hi && !is; i++, at += RT_PAGE)
			is = e[i] >> 62 && !(e[i] >> 61 & 1);
	}
	if (!rt_err(fd))
		rt_close((int)fd);
	return is;
}

/* Writable memory always. Where the image is to be restored, all that no file has: what ld.so has made read-only
 * after relocation, the vDSO. Text that was patched here is restored without the patches. */
static bool dumped(const struct rt_vma *v)
{
	struct rt_module *m = rt_mod_at(v->lo);

	if (!v->priv || !(v->prot & PROT_READ))
		return false;
	if (v->prot & PROT_WRITE || !rt.restorable)
		return v->prot & PROT_WRITE;
	if (!v->path[0] || rt_streq(v->path, "[vdso]") || (m && m->reason == RUN_MOD_SELF))
		return true; /* this library: its file may be another one by then */
	if (v->path[0] != '/' || (m && m->patched && v->prot & PROT_EXEC))
		return false;
	return changed(v);
}

/* Where a page that is not there is zero, and looking for those pays. The stack is one region. */
static bool sparse(const char *path, uint64_t size)
{
	return size >= 2 * RT_HUGE && (!path[0] || rt_streq(path, "[heap]") || rt_starts(path, "[anon:") ||
				       rt_streq(path, "/dev/zero"));
}

static void add(struct list *l, const struct rt_vma *v, uint64_t lo, uint64_t hi, uint32_t flag)
{
	struct run_region *r = &l->r[l->n];

	if (lo == hi || l->n++ >= l->cap)
		return;
	r->addr = lo;
	r->size = hi - lo;
	r->prot = v->prot | flag;
	r->path = add_name(l, v->path);
	r->file_off = v->off;
}

static void split(struct list *l, const struct rt_vma *v)
{
	uint64_t from = v->lo, to = v->lo, lo, hi; /* from, to: touched, and not yet in the list */
	struct rt_pages p;

	rt_pages_open(&p, v->lo, v->hi);
	while (rt_pages_next(&p, &lo, &hi)) {
		if (lo - to >= HOLE) {
			add(l, v, from, to, RUN_REGION_DUMPED);
			add(l, v, to, lo, RUN_REGION_ZERO);
			from = lo;
		}
		to = hi;
	}
	rt_pages_close(&p);
	if (v->hi - to < HOLE)
		to = v->hi;
	add(l, v, from, to, RUN_REGION_DUMPED);
	add(l, v, to, v->hi, RUN_REGION_ZERO);
}

static bool region_vma(const struct rt_vma *v, void *arg)
{
	struct list *l = arg;

	if (rt_ours(v->lo) || rt_streq(v->path, "[vsyscall]"))
		return true;
	if (rt_streq(v->path, "[stack]")) {
		l->stack_lo = v->lo;
		l->stack_hi = v->hi;
	}
	if (!dumped(v))
		add(l, v, v->lo, v->hi, 0);
	else if (sparse(v->path, v->hi - v->lo))
		split(l, v);
	else
		add(l, v, v->lo, v->hi, RUN_REGION_DUMPED);
	return true;
}

static uint64_t room(uint32_t n)
{
	return offsetof(struct run_start, xxh3) + n * sizeof(struct run_region) + MAX_NAMES;
}

static int list(struct list *l, void *at, uint32_t cap)
{
	if (!at)
		return -ENOMEM;
	l->head = at;
	l->r = (void *)(l->head + offsetof(struct run_start, xxh3));
	l->cap = cap;
	l->n = l->last = 0;
	l->names = 1;
	return rt_maps(region_vma, l);
}

/* *more: bytes of a mapping that has them, or 0 */
static int regions(struct list *l, uint64_t *more)
{
	int r = list(l, rt_alloc(room(REGIONS)), REGIONS);

	*more = 0;
	if (r || l->n <= l->cap)
		return r;
	*more = room(l->n);
	r = list(l,
		 (void *)rt_place_far(*more, RT_PAGE, -1, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE),
		 l->n);
	return !r && l->n > l->cap ? -EAGAIN : r;
}

static void cpu_state(struct run_start *s)
{
	uint32_t a, b, c, d, lo, hi;

	__cpuid(1, a, b, c, d);
	if (!(c & bit_OSXSAVE))
		return;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0)); /* SDM Vol. 1, 13.3 */
	s->xcr0 = (uint64_t)hi << 32 | lo;
	__cpuid_count(0xd, 0, a, b, c, d);
	s->xsave_size = b;
	__cpuid_count(0xd, 1, a, b, c, d);
	s->xsavec_size = b;
	for (uint32_t i = 2; i < 64; i++) {
		__cpuid_count(0xd, i, a, b, c, d);
		s->xsave_comp[0][i] = a;
		s->xsave_comp[1][i] = b;
	}
}

/* Some of it cannot be read: pages of a mapping behind the end of its file. They are zero here. */
static int dump_pages(int fd, uint64_t from, uint64_t n)
{
	static uint8_t page[RT_PAGE];
	int err = 0;

	for (uint64_t at = 0; at < n && !err; at += RT_PAGE) {
		err = rt_write_all(fd, (const void *)(from + at), RT_PAGE);
		if (err != -EFAULT)
			continue;
		memset(page, 0, sizeof(page));
		err = rt_write_all(fd, page, sizeof(page));
	}
	return err;
}

/* By way of memory of ours that is in place: most of these pages have not been touched yet, and would not be
 * but for this */
static int dump_bytes(int fd, uint64_t lo, uint64_t hi, uint8_t *buf)
{
	int err = 0;

	for (uint64_t n; lo < hi && !err; lo += n) {
		n = hi - lo < RT_WINDOW ? hi - lo : RT_WINDOW;
		if (buf && !rt_copy_out(buf, lo, n))
			err = rt_write_all(fd, buf, n);
		else
			err = dump_pages(fd, lo, n);
	}
	return err;
}

static int skip(int fd, uint64_t n)
{
	long r = n ? rt_sc(__NR_lseek, fd, n, 1 /* SEEK_CUR */) : 0;

	return rt_err(r) ? (int)r : 0;
}

static int dump_sparse(int fd, const struct run_region *r, uint8_t *buf)
{
	uint64_t at = r->addr, lo, hi;
	struct rt_pages p;
	int err = 0;

	rt_pages_open(&p, r->addr, r->addr + r->size);
	while (!err && rt_pages_next(&p, &lo, &hi)) {
		err = skip(fd, lo - at);
		if (!err)
			err = dump_bytes(fd, lo, hi, buf);
		at = hi;
	}
	rt_pages_close(&p);
	return err ? err : skip(fd, r->addr + r->size - at);
}

static int dump(int fd, const struct list *l, uint64_t pad, uint64_t end)
{
	uint8_t *buf = rt_scratch(RT_WINDOW);
	static const uint8_t zero[4096];
	int r = rt_write_all(fd, zero, pad);

	for (uint32_t i = 0; i < l->n && !r; i++) {
		const struct run_region *g = &l->r[i];

		if (!(g->prot & RUN_REGION_DUMPED))
			continue;
		if (sparse(l->name + g->path, g->size))
			r = dump_sparse(fd, g, buf);
		else
			r = dump_bytes(fd, g->addr, g->addr + g->size, buf);
	}
	rt_scratch_drop();
	return r ? r : (int)rt_sc(__NR_ftruncate, fd, end); /* where it ends in a hole */
}

static int write_file(const char *name, const struct run_start *s, const struct list *l, uint64_t pad,
		      uint64_t end)
{
	char path[RT_PATH];
	long fd;
	int r;

	rt_dir_path(path, rt.proc, name);
	fd = rt_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (rt_err(fd))
		return (int)fd;
	r = rt_write_all((int)fd, s, sizeof(*s));
	if (!r)
		r = rt_write_all((int)fd, l->r, l->n * sizeof(*l->r) + l->names);
	if (!r)
		r = dump((int)fd, l, pad, end);
	rt_close((int)fd);
	if (r)
		rt_sc(__NR_unlink, path);
	return r;
}

/* of the struct before the field, the table and the names, as if they were one piece */
static void checksum(struct run_start *s, const struct list *l)
{
	size_t n = offsetof(struct run_start, xxh3), k = l->n * sizeof(struct run_region);

	memcpy(l->head, s, n);
	memcpy(l->head + n + k, l->name, l->names);
	s->xxh3 = rt_xxh3(l->head, n + k + l->names);
}

static uint64_t stack_limit(void)
{
	uint64_t l[2] = {~0ull, ~0ull};

	rt_sc(__NR_prlimit64, 0, 3 /* RLIMIT_STACK */, 0, l);
	return l[0];
}

/* regs: 16 GPRs and rip as they will be when the constructor has returned */
int rt_start_write(const char *name, const uint64_t *regs, uint64_t rflags)
{
	struct list l = {0};
	struct run_start *s = rt_alloc(sizeof(*s));
	uint64_t head, off, more;
	int r;

	l.name = rt_alloc(MAX_NAMES);
	if (!s || !l.name)
		return -ENOMEM;
	r = regions(&l, &more);
	if (r)
		return r;
	head = sizeof(*s) + l.n * sizeof(struct run_region) + l.names;
	off = (head + RT_PAGE - 1) & ~(RT_PAGE - 1);
	s->magic = RUN_START_MAGIC;
	s->version = RUN_VERSION;
	s->nregions = l.n;
	s->stack_limit = stack_limit();
	s->names = l.names;
	s->replay = rt.restorable;
	s->pid = s->tid = rt.pid;
	s->rip = regs[16];
	s->rflags = rflags;
	memcpy(s->gpr, regs, sizeof(s->gpr));
	rt_sc(__NR_arch_prctl, 0x1003 /* ARCH_GET_FS */, &s->fsbase);
	cpu_state(s);
	rt.stack_lo = s->stack_lo = l.stack_lo;
	rt.stack_hi = s->stack_hi = l.stack_hi;
	s->tsc = rt_now();
	for (uint32_t i = 0; i < l.n; i++) {
		if (!(l.r[i].prot & RUN_REGION_DUMPED))
			continue;
		l.r[i].file_off = off;
		off += l.r[i].size;
	}
	checksum(s, &l);
	r = write_file(name, s, &l, -head & (RT_PAGE - 1), off);
	if (more)
		rt_munmap((uint64_t)l.head, more);
	return r;
}
