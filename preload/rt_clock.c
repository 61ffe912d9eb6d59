/* SPDX-License-Identifier: MIT
 *
 * rt_clock.c - the time, while a program is recorded for a replay, by the vDSO's own function
 *
 *   program ─▶ stub in the vDSO (rt_vdso.c) ─▶ hook ─▶ rt_clock() ─▶ moved beginning ─▶ the rest of __vdso_clock_gettime
 *
 * The stub took the place of the function's first instructions. Those are at the end of the vDSO's last page, with a jump
 * to what follows them, if they are of kinds that can be moved as they are, and there is room; else the call is made.
 *
 * It must not fault in the runtime where it would have in the program, or the kernel would have said EFAULT. So the time is
 * stored only to a page where the kernel has stored one before, and nothing of the address space has changed since.
 */
#include "rt.h"
#include "rt_sysout.h"

#define ROOM 32
#define PAGES 4 /* a program has few that it keeps times in */
#define REX(b) (((b)&0xf0) == 0x40)
#define NR_PKEY_ALLOC 330

struct timespec_now {
	int64_t sec, nsec;
};

static struct {
	long (*fn)(long clock, struct timespec_now *to); /* NULL: there is none */
	uint64_t lo, hi; /* the vDSO */
	uint64_t page[PAGES]; /* times can be stored there; 0: none */
	uint32_t next;
	uint64_t asked; /* a page that will be one of them if this call is successful, or 0 */
} clk;

/* Bytes of an instruction that does the same anywhere, or 0 (SDM Vol. 2, 2.1 and appendix A). The rest that compilers begin
 * functions with, as what is relative to rip, is not worth it. */
static uint32_t movable(const uint8_t *p)
{
	static const uint8_t endbr[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint32_t rex = REX(*p) ? 1 : 0;
	uint8_t op = p[rex];
	bool regs = p[rex + 1] >> 6 == 3; /* ModRM: registers only */

	if (!memcmp(p, endbr, sizeof(endbr)))
		return sizeof(endbr);
	if ((op & 0xf8) == 0x50) /* push */
		return rex + 1;
	if (regs && (op == 0x89 || op == 0x8b || op == 0x31 || op == 0x33 || op == 0x85 || op == 0x39))
		return rex + 2; /* mov, xor, test, cmp */
	if (regs && op == 0x83) /* and, sub, cmp, … imm8 */
		return rex + 3;
	return 0;
}

void rt_clock_move(uint8_t *image, uint64_t size, uint64_t at)
{
	uint8_t *from = image + at, *to = image + size - ROOM;
	uint32_t n = 0, k = 1;
	int32_t rel;

	for (uint32_t i = 0; i < ROOM; i++)
		if (to[i])
			return;
	while (n < RT_VDSO_STUB && k) {
		k = movable(from + n);
		n += k;
	}
	if (!k || n + 5 > ROOM)
		return;
	memcpy(to, from, n);
	rel = (int32_t)((from + n) - (to + n + 5));
	to[n] = 0xe9; /* jmp */
	memcpy(to + n + 1, &rel, 4);
	clk.fn = (long (*)(long, struct timespec_now *))(uint64_t)to;
	clk.lo = (uint64_t)image;
	clk.hi = clk.lo + size;
}

/* Can n bytes be stored there? If that is not known it may be after this call. */
static bool known(uint64_t addr, uint64_t n)
{
	uint64_t page = addr & -4096ull;

	if (!addr || addr + n > page + 4096)
		return false;
	for (uint32_t i = 0; i < PAGES; i++)
		if (clk.page[i] == page)
			return true;
	if (!rt_recfile_at(page, 4096)) /* those can be cut */
		clk.asked = page;
	return false;
}

static bool now(long clock, struct timespec_now *to)
{
	return clk.fn(clock, to) == 0;
}

/* Clocks that the vDSO knows without asking (the kernel's include/vdso/datapage.h: VDSO_HRES, VDSO_COARSE, VDSO_RAW) */
static bool has(uint64_t clock)
{
	return clock < 12 &&
	       (1u << clock & (1u << 0 | 1u << 1 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 11));
}

#define REALTIME 0
#define REALTIME_COARSE 5 /* of which time() gives the seconds */

bool rt_clock(const struct rt_tcb *t, const uint64_t *arg, long *r)
{
	struct timespec_now to;

	clk.asked = 0;
	if (!clk.fn || t->t.target - clk.lo >= clk.hi - clk.lo)
		return false;
	*r = 0;
	switch (t->sv.nr) {
	case __NR_clock_gettime:
		if (!has(arg[0]) || !known(arg[1], sizeof(to)) || !now((long)arg[0], &to))
			return false;
		memcpy((void *)arg[1], &to, sizeof(to));
		return true;
	case __NR_gettimeofday:
		if (arg[1] || !known(arg[0], sizeof(to)) || !now(REALTIME, &to))
			return false;
		to.nsec /= 1000;
		memcpy((void *)arg[0], &to, sizeof(to));
		return true;
	case __NR_time:
		if ((arg[0] && !known(arg[0], sizeof(to.sec))) || !now(REALTIME_COARSE, &to))
			return false;
		if (arg[0])
			memcpy((void *)arg[0], &to.sec, sizeof(to.sec));
		*r = to.sec;
		return true;
	}
	return false;
}

void rt_clock_called(const struct rt_tcb *t, long r, int class)
{
	if (class == OUT_MAP || class == OUT_SPECIAL)
		memset(clk.page, 0, sizeof(clk.page));
	if (t->sv.nr == NR_PKEY_ALLOC) /* pages may come to be read-only without a call */
		clk.fn = NULL;
	if (!clk.asked || rt_err(r))
		return;
	clk.page[clk.next++ % PAGES] = clk.asked;
	clk.asked = 0;
}
