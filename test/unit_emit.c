/* SPDX-License-Identifier: MIT
 *
 * unit_emit.c - a mapped module executed in this process: same results as before
 *
 *   unit_emit FUNCS.so MAP      MAP = ptrace-analyze -o MAP FUNCS.so
 *
 * Every function f_*(a, b) of the module is called with many arguments, first as it is. Then the
 * map is applied (copy placed, fix-ups, patches) with a TCB of this test behind %gs and a chunk
 * of its own, and every call must give the same result, keep the callee-saved registers, and
 * leave an ENTRYX mark of the function in the log. A part of the calls begin with a full chunk.
 *
 * Some are made once more, a step at a time. What the address map says is stored of the stream by then must be
 * there for good, and everything stored must be in what it says: after each step what lies behind that is
 * overwritten, as it is when a signal's event is put there.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "map.h"
#include "run.h"

extern char step_chunk_full[], step_syscall[], step_back[];
extern uint64_t step_full, step_chunk;

typedef uint64_t (*fn)(uint64_t, uint64_t);
static const char *const names[] = {"f_loop",	 "f_fib",    "f_switch",  "f_qsort",	"f_setjmp",
				    "f_varargs", "f_string", "f_pointer", "f_double",	"f_goto",
				    "f_r15",	 "f_calls",  "f_flags",	  "f_icalls",	"f_loops",
				    "f_tail",	 "f_ijump",  "f_rep",	  "f_r15loops", "f_syscall"};
#define NF (sizeof(names) / sizeof(*names))
#define NC 60
static fn f[NF];
static uint64_t want[NF][NC];
static struct tcb tcb;
static uint8_t *map, *copy;
static uint64_t bias;
static unsigned passed, failed;

static uint64_t arg(unsigned i, unsigned k)
{
	uint64_t x = (i * 131 + k * 7 + 1) * 0x9e3779b97f4a7c15ull;

	return k % 3 ? x >> (k % 50) : x;
}

static const void *sect(int s, uint32_t size, uint32_t *n)
{
	const struct map_head *h = (const void *)map;

	*n = h->sect[s].size / size;
	return map + h->sect[s].off;
}

static void *near_module(size_t n)
{
	for (uint64_t at = (bias & ~0xfffull) - 0x10000000; at > bias - 0x70000000; at -= 0x1000000) {
		void *p = mmap((void *)at, n, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (p != MAP_FAILED)
			return p;
	}
	return NULL;
}

static void fixups(void)
{
	uint32_t n;
	const struct map_fixup *x = sect(MAP_FIXUPS, sizeof(*x), &n);

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *p = copy + x[i].copy_off;
		uint32_t v;
		uint64_t q;

		if (x[i].kind == MAP_FIX_ABS64) {
			memcpy(&q, p, 8);
			q += bias;
			memcpy(p, &q, 8);
		} else if (x[i].kind == MAP_FIX_MOD32) {
			memcpy(&v, p, 4);
			v += (uint32_t)(bias - (uintptr_t)copy);
			memcpy(p, &v, 4);
		}
	}
}

static void patches(void)
{
	uint32_t n;
	const struct map_patch *x = sect(MAP_PATCHES, sizeof(*x), &n);

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *p = (uint8_t *)(bias + x[i].vaddr);
		int32_t d = (int32_t)((uintptr_t)copy + x[i].arg - (uintptr_t)p);

		if (x[i].kind == MAP_PATCH_INT3) {
			memset(p, 0xcc, x[i].arg);
		} else if (x[i].kind == MAP_PATCH_JMP8) {
			p[0] = 0xeb;
			p[1] = x[i].arg - x[i].vaddr - 2;
		} else if (MAP_PATCH_KIND(x[i].kind) == MAP_PATCH_NEAR) {
			map_near(&x[i], p);
		} else if (x[i].kind == MAP_PATCH_JMP) {
			d -= 5;
			*p = 0xe9;
			memcpy(p + 1, &d, 4);
		} else {
			d -= 4;
			memcpy(p, &d, 4);
		}
	}
}

static int apply(const char *path, uint64_t chunk)
{
	const struct map_head *h;
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		return -1;
	map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	h = (const void *)map;
	if (map == MAP_FAILED || h->magic != MAP_MAGIC)
		return -1;
	copy = near_module(h->sect[MAP_COPY].size + 4096);
	if (!copy)
		return -1;
	memcpy(copy, map + h->sect[MAP_COPY].off, h->sect[MAP_COPY].size);
	fixups();
	mprotect(copy, h->sect[MAP_COPY].size + 4096, PROT_READ | PROT_EXEC);
	mprotect((void *)(bias + h->vaddr_lo), h->vaddr_hi - h->vaddr_lo, PROT_READ | PROT_WRITE | PROT_EXEC);
	patches();
	tcb.lp = chunk;
	tcb.limit = chunk + RUN_CHUNK_SIZE;
	tcb.chunk_full = (uintptr_t)step_chunk_full;
	tcb.syscall = (uintptr_t)step_syscall;
	tcb.back = (uintptr_t)step_back;
	step_chunk = chunk;
	return (int)syscall(SYS_arch_prctl, ARCH_SET_GS, &tcb);
}

/* ---- a step at a time ---- */

#define POISON 0xa5
#define BEHIND 64
static uint64_t tf; /* RFLAGS.TF while stepping, else 0 */
static uint8_t kept[1 << 20];
static volatile uint64_t base, pos; /* of the log; stream position so far */
static volatile uint32_t steps;
static const char *volatile wrong;

static void on_step(int sig, siginfo_t *si, void *uc_)
{
	const greg_t *r = ((ucontext_t *)uc_)->uc_mcontext.gregs;
	uint64_t off = (uint64_t)r[REG_RIP] - (uintptr_t)copy, at;
	uint32_t n, lo = 0;
	const struct map_xlat *x = sect(MAP_XLAT, sizeof(*x), &n);
	bool plain = true;

	(void)sig;
	(void)si;
	if (off >= ((const struct map_head *)map)->sect[MAP_COPY].size)
		return;
	for (uint32_t hi = n; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (x[mid].copy_off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	at = (uint64_t)r[REG_R15];
	if (!lo || (x[--lo].flags & MAP_X_R15_REAL) || at - base + BEHIND > sizeof(kept) - BEHIND)
		return; /* r15 is the program's, or holds a value of the copy's: at a call */
	at += x[lo].off;
	steps++;
	if (x[lo].ahead > at - base)
		wrong = "an instruction ahead of the stream";
	if (at < pos)
		wrong = "the stream goes back";
	for (uint64_t p = pos; p < at; p++) {
		kept[p - base] = *(uint8_t *)p;
		plain &= kept[p - base] == POISON;
	}
	if (at > pos && plain)
		wrong = "a store did not count at once";
	pos = at;
	memset((void *)at, POISON, BEHIND);
}

/* calls fn with marked callee-saved registers; *bad counts those that changed */
static uint64_t call(fn g, uint64_t a, uint64_t b, uint64_t *bad)
{
	uint64_t r, n;

	__asm__ volatile(
		"sub $128, %%rsp; push %%rbp; push %%rbx; push %%r12; push %%r13; push %%r14; push %%r15\n"
		"mov $0x111, %%rbx; mov $0x222, %%rbp; mov $0x333, %%r12; mov $0x444, %%r13\n"
		"mov $0x555, %%r14; mov $0x666, %%r15\n"
		"mov %[tf], %%rdx; pushfq; or %%rdx, (%%rsp); popfq\n"
		"call *%%rcx\n"
		"pushfq; andq $~0x100, (%%rsp); popfq\n"
		"xor %%ecx, %%ecx\n"
		"cmp $0x111, %%rbx; setne %%dl; add %%dl, %%cl; cmp $0x222, %%rbp; setne %%dl; add %%dl, "
		"%%cl\n"
		"cmp $0x333, %%r12; setne %%dl; add %%dl, %%cl; cmp $0x444, %%r13; setne %%dl; add %%dl, "
		"%%cl\n"
		"cmp $0x555, %%r14; setne %%dl; add %%dl, %%cl; cmp $0x666, %%r15; setne %%dl; add %%dl, "
		"%%cl\n"
		"pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbx; pop %%rbp; add $128, %%rsp"
		: "=a"(r), "=c"(n), "+D"(a), "+S"(b)
		: [tf] "m"(tf), "1"(g)
		: "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
		  "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory",
		  "cc");
	*bad += n;
	return r;
}

static void check(unsigned i, unsigned k, uint64_t chunk)
{
	bool full = k % 5 == 4;
	uint64_t bad = 0, r, fulls = step_full;
	uint32_t mark;

	tcb.lp = chunk + (full ? 1u << RUN_CHUNK_FULL_BIT : 0);
	tcb.expect = 0;
	r = call(f[i], arg(i, k), arg(k, i), &bad);
	memcpy(&mark, (void *)chunk, 4);
	if (r != want[i][k] || bad || (full && step_full == fulls) ||
	    (!full && (mark & 7) != RUN_MARK_ENTRYX && (mark & 7) != RUN_MARK_RESYNC) || tcb.lp < chunk ||
	    (!full && tcb.lp == chunk) || tcb.lp > chunk + (1u << 20)) {
		if (failed++ < 20)
			printf("FAIL %s(%llx, %llx) call %u: %llx, expected %llx; %llu registers lost; mark "
			       "%x; "
			       "log %lld bytes\n",
			       names[i], (unsigned long long)arg(i, k), (unsigned long long)arg(k, i), k,
			       (unsigned long long)r, (unsigned long long)want[i][k], (unsigned long long)bad,
			       mark, (long long)(tcb.lp - chunk));
	} else {
		passed++;
	}
}

static void check_steps(unsigned i, unsigned k, uint64_t chunk)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	uint64_t bad = 0;

	sigaction(SIGTRAP, &sa, NULL);
	tcb.lp = base = pos = chunk;
	tcb.expect = 0;
	steps = 0;
	wrong = NULL;
	tf = 0x100;
	call(f[i], arg(i, k), arg(k, i), &bad);
	tf = 0;
	if (!wrong && (bad || steps < 5 || pos != tcb.lp))
		wrong = "the call";
	if (!wrong && memcmp((void *)chunk, kept, pos - chunk))
		wrong = "bytes counted before they were stored";
	if (wrong) {
		if (failed++ < 20)
			printf("FAIL %s call %u, %u steps: %s\n", names[i], k, steps, wrong);
	} else {
		passed++;
	}
}

int main(int argc, char **argv)
{
	void *so = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	uint64_t chunk =
		(uintptr_t)mmap(NULL, 6u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct link_map *lm;

	setvbuf(stdout, NULL, _IONBF, 0);
	chunk = (chunk + (2u << 20) - 1) & ~((2ull << 20) - 1);
	if (!so || dlinfo(so, RTLD_DI_LINKMAP, &lm)) {
		fprintf(stderr, "unit_emit: usage: unit_emit FUNCS.so MAP\n");
		return 2;
	}
	bias = lm->l_addr;
	for (unsigned i = 0; i < NF; i++)
		f[i] = (fn)dlsym(so, names[i]);
	for (unsigned i = 0; i < NF; i++)
		for (unsigned k = 0; k < NC; k++)
			want[i][k] = f[i](arg(i, k), arg(k, i));
	for (unsigned i = 0; i < 64; i++) /* the static table of f_loop as at the start */
		((uint64_t *)dlsym(so, "tab"))[i] = 0;
	if (apply(argv[2], chunk)) {
		fprintf(stderr, "unit_emit: cannot apply %s\n", argv[2]);
		return 2;
	}
	for (unsigned i = 0; i < NF; i++)
		for (unsigned k = 0; k < NC; k++)
			check(i, k, chunk);
	for (unsigned i = 0; i < NF; i++)
		for (unsigned k = 0; k < 4; k++)
			check_steps(i, k, chunk);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
