/* SPDX-License-Identifier: MIT
 *
 * rt_start.c - writes start.bin: registers, memory map, contents of all writable private memory
 *
 * The decoder starts from this picture. It is taken on the runtime's own stack, with nothing of
 * the program's memory disturbed, at the state in which rt_ctor returns.
 */
#include <cpuid.h>
#include "rt.h"

#define MAX_REGIONS 8192

struct list {
	struct run_region *r;
	uint32_t n;
	uint64_t stack_lo, stack_hi;
	bool full;
};

static bool region_vma(const struct rt_vma *v, void *arg)
{
	struct list *l = arg;
	struct run_region *r = &l->r[l->n];

	if (rt_ours(v->lo) || rt_streq(v->path, "[vsyscall]"))
		return true;
	if (l->n == MAX_REGIONS) {
		l->full = true;
		return false;
	}
	l->n++;
	r->addr = v->lo;
	r->size = v->hi - v->lo;
	r->prot = v->prot;
	if (v->priv && (v->prot & PROT_WRITE) && (v->prot & PROT_READ))
		r->prot |= RUN_REGION_DUMPED;
	if (rt_streq(v->path, "[stack]")) {
		l->stack_lo = v->lo;
		l->stack_hi = v->hi;
	}
	return true;
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

/* By way of memory of ours that is in place: most of these pages have not been touched yet, and would not be
 * but for this */
static int dump_region(int fd, const struct run_region *r, uint8_t *buf)
{
	int err = 0;

	for (uint64_t at = 0, n; at < r->size && !err; at += n) {
		n = r->size - at < RT_WINDOW ? r->size - at : RT_WINDOW;
		if (buf && !rt_copy_out(buf, r->addr + at, n))
			err = rt_write_all(fd, buf, n);
		else
			err = rt_write_all(fd, (const void *)(r->addr + at), n);
	}
	return err;
}

static int dump(int fd, const struct list *l, uint64_t pad)
{
	uint8_t *buf = rt_scratch(RT_WINDOW);
	static const uint8_t zero[4096];
	int r = rt_write_all(fd, zero, pad);

	for (uint32_t i = 0; i < l->n && !r; i++)
		if (l->r[i].prot & RUN_REGION_DUMPED)
			r = dump_region(fd, &l->r[i], buf);
	rt_scratch_drop();
	return r;
}

static int write_file(struct run_start *s, struct list *l, uint64_t head, uint64_t pad)
{
	char path[RT_PATH];
	long fd;
	int r;

	rt_dir_path(path, rt.proc, "start.bin");
	fd = rt_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (rt_err(fd))
		return (int)fd;
	r = rt_write_all((int)fd, s, head);
	if (!r)
		r = dump((int)fd, l, pad);
	rt_close((int)fd);
	return r;
}

/* of the struct before the field and the table, as if they were one piece */
static int checksum(struct run_start *s, const struct list *l)
{
	size_t n = offsetof(struct run_start, xxh3), k = l->n * sizeof(struct run_region);
	uint8_t *buf = rt_alloc(n + k);

	if (!buf)
		return -ENOMEM;
	memcpy(buf, s, n);
	memcpy(buf + n, l->r, k);
	s->xxh3 = rt_xxh3(buf, n + k);
	return 0;
}

/* regs: 16 GPRs and rip as they will be when the constructor has returned */
int rt_start_write(const uint64_t *regs)
{
	struct list l = {0};
	struct run_start *s = rt_alloc(sizeof(*s) + MAX_REGIONS * sizeof(struct run_region));
	uint64_t head, off;
	int r;

	if (!s)
		return -ENOMEM;
	l.r = (void *)(s + 1);
	r = rt_maps(region_vma, &l);
	if (r || l.full)
		return r ? r : -ENOMEM;
	head = sizeof(*s) + l.n * sizeof(struct run_region);
	off = (head + RT_PAGE - 1) & ~(RT_PAGE - 1);
	s->magic = RUN_START_MAGIC;
	s->version = RUN_VERSION;
	s->nregions = l.n;
	s->pid = s->tid = rt.pid;
	s->rip = regs[16];
	s->rflags = 0x246; /* after xor of a register with itself: ZF and PF, and IF, bit 1 */
	memcpy(s->gpr, regs, sizeof(s->gpr));
	rt_sc(__NR_arch_prctl, 0x1003 /* ARCH_GET_FS */, &s->fsbase);
	cpu_state(s);
	rt.stack_lo = s->stack_lo = l.stack_lo;
	rt.stack_hi = s->stack_hi = l.stack_hi;
	s->tsc = rt_tsc();
	for (uint32_t i = 0; i < l.n; i++) {
		if (!(l.r[i].prot & RUN_REGION_DUMPED))
			continue;
		l.r[i].file_off = off;
		off += l.r[i].size;
	}
	if (checksum(s, &l))
		return -ENOMEM;
	return write_file(s, &l, head, ((head + RT_PAGE - 1) & ~(RT_PAGE - 1)) - head);
}
