/* SPDX-License-Identifier: MIT
 *
 * replay_image.c - the memory of a start state, as the system calls that make it
 *
 *   all but the area ─▶ gone ─▶ each region: its bytes from start.bin, or its file ─▶ fs base ─▶ descriptors closed
 *
 * Dumped regions are anonymous whatever they were: their bytes are right, and they can be moved and grown as the
 * program's own. What holds nothing is mapped and not touched. The vDSO is mapped from the file that the recording left, so that it is a module.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "replay_in.h"

#define PAGE 4096ull
#define TOP 0x7ffffffff000ull /* end of a process's address space, with four levels of page tables */
#define PROTS (PROT_READ | PROT_WRITE | PROT_EXEC)
#define STACK_MORE (8ull << 20)
#define READ_MAX (1ull << 30) /* a read gives less than 2 GiB */

typedef unsigned long long ull;

struct builder {
	struct plan *p;
	const struct start *s;
	const char *dir; /* of the image */
	int start_fd;
	bool grows; /* the stack may: the kernel can be told what is on it (CONFIG_CHECKPOINT_RESTORE) */
	struct { /* the file opened last: its regions follow each other */
		const char *name;
		int fd;
		struct stat st;
	} file;
	uint32_t cap;
	struct ptrace_error *e;
};

static void call(struct builder *b, char *what, const struct plan_call *c)
{
	struct plan *p = b->p;

	if (p->n == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 256;
		p->call = xrealloc(p->call, b->cap, sizeof(*p->call));
		p->what = xrealloc(p->what, b->cap, sizeof(*p->what));
	}
	p->call[p->n] = *c;
	p->what[p->n++] = what;
}

/* in the first calls of a plan */
static void set_unmap(struct plan *p, uint32_t i, uint64_t lo, uint64_t hi)
{
	p->call[i] = (struct plan_call){SYS_munmap, {lo, hi - lo}, 0};
}

static void map(struct builder *b, const struct run_region *r, int prot, int flags, int fd, uint64_t off)
{
	const char *name = b->s->names + r->path;

	call(b, xprintf("map %#llx-%#llx %s", (ull)r->addr, (ull)(r->addr + r->size), r->path ? name : ""),
	     &(struct plan_call){SYS_mmap,
				 {r->addr, r->size, (uint64_t)prot,
				  (uint64_t)(flags | MAP_PRIVATE | MAP_FIXED_NOREPLACE), (uint64_t)fd, off},
				 r->addr});
}

/* ---- checks ---- */

static int bad_region(struct builder *b, const struct run_region *r, const char *why)
{
	return err_set(b->e, PTRACE_BAD, "%s/start.bin: the region at %#llx %s", b->dir, (ull)r->addr, why);
}

static int check(struct builder *b)
{
	const struct start *s = b->s;
	uint64_t last = 0;

	if (s->s.names && s->names[s->s.names - 1])
		return err_set(b->e, PTRACE_BAD, "%s/start.bin: its names are cut", b->dir);
	for (uint32_t i = 0; i < s->nregion; i++) {
		const struct run_region *r = &s->region[i];

		if (r->addr % PAGE || r->size % PAGE || r->file_off % PAGE || !r->size || r->addr < last ||
		    r->addr >= TOP || r->size > TOP - r->addr || (r->path && r->path >= s->s.names))
			return bad_region(b, r, "is damaged");
		last = r->addr + r->size;
	}
	return 0;
}

/* ---- files ---- */

static int open_file(struct builder *b, const struct run_region *r, const char *name)
{
	if (b->file.name && !strcmp(b->file.name, name))
		return 0;
	b->file.name = name;
	b->file.fd = open(name, O_RDONLY | O_CLOEXEC);
	if (b->file.fd < 0 || fstat(b->file.fd, &b->file.st))
		return err_set(b->e, PTRACE_BAD,
			       "%s, which the program had mapped at %#llx, cannot be opened: %s", name,
			       (ull)r->addr, strerror(errno));
	return 0;
}

/* A mapping may be longer than its file by less than a page; what nobody can access, by any length: the gap between the
 * segments of a library, where they are 2 MiB apart (old linkers) */
static int map_file(struct builder *b, const struct run_region *r, const char *name)
{
	uint64_t size;

	if (open_file(b, r, name))
		return -1;
	size = (uint64_t)b->file.st.st_size;
	if ((r->prot & PROTS) && (r->file_off > size || r->size - PAGE >= size - r->file_off))
		return err_set(b->e, PTRACE_BAD,
			       "%s is shorter than when the program had it mapped: it has been replaced",
			       name);
	map(b, r, (int)(r->prot & PROTS), 0, b->file.fd, r->file_off);
	return 0;
}

/* ---- regions ---- */

/* Where the stack cannot grow, there is some of it at once. */
static void room_below(struct builder *b, const struct run_region *r)
{
	struct run_region more = {.addr = r->addr - STACK_MORE, .size = STACK_MORE};

	if (r->addr > STACK_MORE)
		map(b, &more, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void map_bytes(struct builder *b, const struct run_region *r, bool stack)
{
	int prot = (int)(r->prot & PROTS);

	if (stack && !b->grows)
		room_below(b, r);
	map(b, r, prot | PROT_WRITE, MAP_ANONYMOUS | MAP_NORESERVE | (stack && b->grows ? MAP_GROWSDOWN : 0),
	    -1, 0);
	for (uint64_t at = 0, n; at < r->size; at += n) {
		n = r->size - at < READ_MAX ? r->size - at : READ_MAX;
		call(b, xprintf("read %llu bytes for %#llx from start.bin", (ull)n, (ull)(r->addr + at)),
		     &(struct plan_call){
			     SYS_pread64, {(uint64_t)b->start_fd, r->addr + at, n, r->file_off + at}, n});
	}
	if (!(prot & PROT_WRITE))
		call(b, xprintf("protect %#llx", (ull)r->addr),
		     &(struct plan_call){SYS_mprotect, {r->addr, r->size, (uint64_t)prot}, 0});
}

/* where the recording has put what it made of the vDSO */
static int map_vdso(struct builder *b, const struct run_region *r)
{
	char *name = xprintf("%s/../maps/vdso-replay.so", b->dir);
	struct run_region file = *r;
	int rc = 0;

	file.file_off = 0;
	if (access(name, F_OK))
		map_bytes(b, r, false);
	else
		rc = map_file(b, &file, name);
	return rc; /* the name is in b->file */
}

static int region(struct builder *b, const struct run_region *r)
{
	const char *name = r->path ? b->s->names + r->path : "";

	if (!strncmp(name, "[vvar", 5) || !strcmp(name, "[vsyscall]"))
		return 0;
	if (!strcmp(name, "[vdso]"))
		return map_vdso(b, r);
	if (r->prot & RUN_REGION_ZERO)
		map(b, r, (int)(r->prot & PROTS), MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else if (r->prot & RUN_REGION_DUMPED)
		map_bytes(b, r, !strcmp(name, "[stack]"));
	else if (name[0] == '/')
		return map_file(b, r, name);
	else if (!(r->prot & PROTS))
		map(b, r, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else
		return bad_region(b, r, "is not in it, and in no file");
	return 0;
}

/* The plan into the area, which is complete by that, and by now it is known what is not the area. */
static int place(struct plan *p, struct ptrace_error *e)
{
	struct plan_call *in = area_copy(p->call, p->n * sizeof(*in), e);

	free(p->call);
	p->call = in;
	if (!in)
		return -1;
	set_unmap(p, 0, 0, area_lo());
	set_unmap(p, 1, area_hi(), TOP);
	return 0;
}

/* What the kernel says of a process in /proc: to whom its arguments and environment still lay on the old stack, reading
 * them would make the new one grow down to there. It also names the stack. Nothing else of it is used: the break
 * is the runtime's business. */
static int describe(struct builder *b)
{
	const char *args = area_copy(b->dir, strlen(b->dir) + 1, b->e);
	struct prctl_mm_map m = {.start_code = area_lo(),
				 .end_code = area_lo() + PAGE,
				 .start_data = area_lo() + PAGE,
				 .end_data = area_lo() + PAGE,
				 .start_brk = area_lo() + 2 * PAGE,
				 .brk = area_lo() + 2 * PAGE,
				 .start_stack = b->s->s.gpr[4],
				 .exe_fd = ~0u};
	void *in;

	if (!args)
		return -1;
	m.arg_start = (uint64_t)args;
	m.arg_end = m.env_start = m.env_end = m.arg_start + strlen(args) + 1;
	in = area_copy(&m, sizeof(m), b->e);
	if (!in)
		return -1;
	call(b, xprintf("set what /proc says of it"),
	     &(struct plan_call){SYS_prctl, {PR_SET_MM, PR_SET_MM_MAP, (uint64_t)in, sizeof(m)}, 0});
	return 0;
}

int plan_make(struct plan *p, const char *dir, const struct start *s, struct ptrace_error *e)
{
	char *path = xprintf("%s/start.bin", dir);
	struct builder b = {.p = p, .s = s, .dir = dir, .start_fd = open(path, O_RDONLY | O_CLOEXEC), .e = e};
	unsigned size;
	int rc = b.start_fd < 0 ? err_set(e, PTRACE_BAD, "cannot open %s: %s", path, strerror(errno))
				: check(&b);

	free(path);
	b.grows = !prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0);
	call(&b, xprintf("unmap what is below"), &(struct plan_call){0});
	call(&b, xprintf("unmap what is above"), &(struct plan_call){0});
	if (!rc && b.grows)
		rc = describe(&b);
	for (uint32_t i = 0; i < s->nregion && !rc; i++)
		rc = region(&b, &s->region[i]);
	call(&b, xprintf("set the fs base"),
	     &(struct plan_call){SYS_arch_prctl, {0x1002 /* ARCH_SET_FS */, s->s.fsbase}, 0});
	call(&b, xprintf("close"), &(struct plan_call){436 /* close_range */, {3, ~0u, 0}, PLAN_ANY});
	return rc ? rc : place(p, e);
}
