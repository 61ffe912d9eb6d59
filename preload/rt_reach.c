/* SPDX-License-Identifier: MIT
 *
 * rt_reach.c - a replay comes to the place at which a signal interrupted its recording, between two system calls
 *
 *   copy of that instruction ─▶ jmp *tcb.place ─▶ the instruction itself          until all is replayed that comes before
 *                                     └─▶ rt_reach_… (rt_entry.S): counts, looks at one word ─┬─▶ the instruction itself
 *                                                      rt_reach(): at everything ◀────────────┘
 *
 * The program may be at that instruction any number of times. It is the time when all that can make a difference is what it
 * was: registers (all of them: in maps for replays none is borrowed that is not given back), vector registers, memory. Flags
 * come of those. What is below the stack's red zone makes none. The word that differed last is looked at first, which is a
 * few instructions a time.
 *
 * A program that changes nothing while it waits for its signal (for (;;) with an empty body) is at the place the first time:
 * how often it goes round nobody can tell.
 *
 * The stream ends as if the signal had come there (struct run_signal). Its `visit` is counted here: log that a loop does not
 * write cannot tell a decoder how often it went round, either.
 */
#include <cpuid.h>
#include "rt.h"

#define NWORDS 8
#define WINDOW (64u << 10)
#define RED_ZONE 128 /* psABI 3.2.2 */
#define XAREA sizeof(((struct rec_place *)0)->area)

/* for rt_entry.S */
uint64_t rt_reach_rcx; /* the program's, for a moment */
uint64_t
	rt_reach_last; /* log pointer at the visit before, all bits inverted: where it is, nothing was logged since */
uint64_t rt_reach_base, rt_reach_visit; /* visits since: base + RT_REACH_PERIOD + visit */
uint64_t rt_reach_next; /* in the copy */
uint64_t rt_reach_neg[16]; /* recorded registers, negative */
uint64_t rt_reach_addr, rt_reach_word; /* a word of memory; what was recorded, negative */

static const struct rec_place *want;
static const uint8_t *first; /* record from which on nothing but instructions (REC_NONDET) is replayed */
static struct map_place at;
static uint64_t copy; /* address of its jump; 0: there is none */
static uint32_t plain; /* registers that matter and are where they belong */
static bool armed;
static struct {
	uint64_t addr, word;
} seen[NWORDS]; /* words of memory that differed last */
static uint32_t nseen;
static uint64_t unlike; /* address of the last difference */

/* ---- before ---- */

void rt_reach_init(const uint8_t *rec, const uint8_t *end)
{
	first = NULL;
	for (const uint8_t *p = rec; p < end;) {
		const struct rec_head *h = (const void *)p;

		if ((uint64_t)(end - p) < sizeof(*h) || h->size < sizeof(*h) || h->size > (uint64_t)(end - p))
			return;
		if (h->kind == REC_PLACE) {
			want = (const void *)p;
			break;
		}
		p += h->size;
		if (h->kind != REC_NONDET)
			first = p;
	}
	for (int i = 0; want && i < 16; i++)
		rt_reach_neg[i] = 0 - want->gpr[i];
}

/* link-time address of the instruction, ~0 if it is not in m */
uint32_t rt_reach_in(const struct rt_module *m)
{
	return want && want->rip >= m->lo && want->rip < m->hi ? (uint32_t)(want->rip - m->bias) : ~0u;
}

/* m has been loaded: the copy of its text is there */
void rt_reach_module(const struct rt_module *m)
{
	uint64_t n;
	const struct map_place *p = rt_map_sect(m->map, MAP_PLACE, &n, sizeof(*p));
	struct rt_spot s;

	if (!n || rt_reach_in(m) != p->vaddr)
		return;
	at = *p;
	copy = m->copy + at.copy_off;
	rt_reach_next = copy + MAP_PLACE_BYTES;
	rt.main->t.place = rt_reach_next;
	plain = 0x7fff;
	if (rt_xlat_to(m, at.vaddr, &s) && s.r15_reg < 16)
		plain &= ~(1u << s.r15_reg); /* a loop has the program's r15 in it */
	if (at.rep)
		plain &= ~(1u << RCX | 1u << RSI | 1u << RDI);
}

/* Which record is next: the place can be recognized from the last one before it on. */
void rt_reach_record(const uint8_t *next)
{
	if (!want || !copy || next < first)
		return;
	armed = next == (const uint8_t *)want;
	rt.main->t.place = (uint64_t)(armed ? rt_reach_all : rt_reach_count);
}

bool rt_reach_possible(void)
{
	return copy && rt.replay->memory;
}

uint64_t rt_reach_unlike(void)
{
	return unlike;
}

/* ---- registers ---- */

/* how many elements a string instruction had done; false: the registers cannot come of that */
static bool part(const uint64_t *gpr, uint64_t rflags, uint64_t *n)
{
	uint64_t w = at.rep & 0xff, step;

	*n = gpr[RCX] - want->gpr[RCX];
	step = rflags >> 10 & 1 ? 0 - *n * w : *n * w;
	return *n <= gpr[RCX] && (!(at.rep & MAP_PLACE_SRC) || gpr[RSI] + step == want->gpr[RSI]) &&
	       (!(at.rep & MAP_PLACE_DST) || gpr[RDI] + step == want->gpr[RDI]);
}

/* registers that are where they belong: the first that differs, or -1 */
static int other(const uint64_t *gpr)
{
	for (int i = 0; i < 15; i++)
		if (plain >> i & 1 && gpr[i] != want->gpr[i])
			return i;
	return -1;
}

static bool same_registers(const struct rt_intr *in, uint64_t *part_done)
{
	uint32_t all = 0xffff;

	*part_done = 0;
	if (at.rep) {
		if (!part(in->gpr, in->rflags, part_done))
			return false;
		all &= ~(1u << RCX | 1u << RSI | 1u << RDI);
	}
	for (int i = 0; i < 16; i++)
		if (all >> i & 1 && in->gpr[i] != want->gpr[i])
			return false;
	return true;
}

/* ---- vector registers (SDM Vol. 1, 13.4: the XSAVE area) ---- */

/* components: bit, then offset and size, of 2 and up from CPUID */
static void extent(uint32_t i, uint32_t *off, uint32_t *size)
{
	static struct {
		uint32_t off, size;
	} seen_at[8] = {{32, 128}, {160, 256}}; /* CPUID takes long in a virtual machine */
	uint32_t c, d;

	if (!seen_at[i].off)
		__cpuid_count(0xd, i, seen_at[i].size, seen_at[i].off, c, d);
	*off = seen_at[i].off;
	*size = seen_at[i].size;
}

static bool same(const void *a, const void *b, uint32_t bytes)
{
	const uint64_t *x = a, *y = b;

	for (uint32_t i = 0; i < bytes / 8; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

/* what is not in use has its initial value */
static void plain_area(uint8_t *x)
{
	uint64_t used;

	memcpy(&used, x + 512, sizeof(used));
	if (!(used & 1)) {
		memset(x, 0, 6);
		memcpy(x, "\x7f\x03", 2); /* FCW */
	}
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t off, size;

		if (used >> i & 1 || !(REC_XSTATE_MASK >> i & 1))
			continue;
		extent(i, &off, &size);
		if (off + size <= XAREA)
			memset(x + off, 0, size);
	}
}

static bool same_vectors(void)
{
	static uint8_t is[XAREA] __attribute__((aligned(64))), was[XAREA] __attribute__((aligned(64)));
	static uint32_t c;
	uint32_t a, b, d;

	if (!c)
		__cpuid(1, a, b, c, d);
	if (c & bit_OSXSAVE) {
		__asm__ volatile("xsave64 %0" : "+m"(is) : "a"(REC_XSTATE_MASK), "d"(0));
	} else {
		__asm__ volatile("fxsave64 %0" : "+m"(is));
		is[512] = 3;
	}
	memcpy(was, want->area, sizeof(was));
	plain_area(is);
	plain_area(was);
	if (memcmp(is, was, 5) || memcmp(is + 24, was + 24, 4)) /* FCW FSW FTW; MXCSR */
		return false;
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t off, size;

		if (!(REC_XSTATE_MASK >> i & 1) || (i >= 2 && !(c & bit_OSXSAVE)))
			continue;
		extent(i, &off, &size);
		if (off + size <= XAREA && !same(is + off, was + off, size))
			return false;
	}
	return true;
}

/* ---- memory ---- */

/* n elements of a string instruction are stored already: they are not here, where it has not begun */
static bool excluded(uint64_t addr, uint64_t n)
{
	uint64_t w = at.rep & 0xff, to = want->gpr[RDI];

	for (int i = 0; i < 3; i++)
		if (addr >= want->skip[i].lo && addr < want->skip[i].hi)
			return true;
	if (!n || !(at.rep & MAP_PLACE_DST))
		return false;
	return want->rflags >> 10 & 1 ? addr - (to + w) < n * w : addr - (to - n * w) < n * w;
}

static bool differs(uint64_t addr, const uint8_t *is, const uint8_t *was, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		if (is[i] != was[i] && !excluded(addr + (uint64_t)i, n))
			return true;
	return false;
}

static void keep(uint64_t addr, uint64_t word)
{
	seen[nseen % NWORDS].addr = addr;
	seen[nseen++ % NWORDS].word = word;
}

/* was: NULL if it was all zero */
static bool same_region(const struct run_region *r, const uint8_t *was, uint64_t n)
{
	static uint64_t buf[WINDOW / 8];
	const struct run_start *m = rt.replay->memory;
	uint64_t lo = r->addr, rsp = want->gpr[RSP];

	if (rsp - r->addr < r->size && rsp - RED_ZONE > lo && m->stack_lo <= rsp && rsp < m->stack_hi)
		lo = (rsp - RED_ZONE) & ~7ull;
	for (uint64_t size; lo < r->addr + r->size; lo += size) {
		const uint64_t *old = was ? (const void *)(was + (lo - r->addr)) : NULL;

		size = r->addr + r->size - lo < WINDOW ? r->addr + r->size - lo : WINDOW;
		if (rt_copy_out(buf, lo, size)) {
			unlike = lo;
			return false;
		}
		for (uint64_t i = 0; i < size / 8; i++) {
			const uint64_t word = old ? old[i] : 0;

			if (buf[i] == word ||
			    !differs(lo + i * 8, (const uint8_t *)&buf[i], (const uint8_t *)&word, n))
				continue;
			unlike = lo + i * 8;
			keep(unlike, word);
			return false;
		}
	}
	return true;
}

/* Nothing had been there: what is there now must be zero */
static bool same_nothing(const struct run_region *r, uint64_t n)
{
	uint64_t lo, hi;
	struct rt_pages p;
	bool same = true;

	rt_pages_open(&p, r->addr, r->addr + r->size);
	while (same && rt_pages_next(&p, &lo, &hi))
		same = same_region(&(struct run_region){.addr = lo, .size = hi - lo}, NULL, n);
	rt_pages_close(&p);
	return same;
}

static bool same_words(uint64_t n)
{
	for (uint32_t i = 0; i < nseen && i < NWORDS; i++) {
		const uint8_t *p = (const void *)seen[i].addr;

		if (*(const uint64_t *)p == seen[i].word ||
		    !differs(seen[i].addr, p, (const uint8_t *)&seen[i].word, n))
			continue;
		unlike = seen[i].addr;
		rt_reach_addr = unlike;
		rt_reach_word = 0 - seen[i].word;
		if (!at.rep)
			rt.main->t.place = (uint64_t)rt_reach_memory;
		return false;
	}
	return true;
}

static bool same_memory(uint64_t n)
{
	const struct run_start *m = rt.replay->memory;
	const struct run_region *r = (const void *)(m + 1);

	for (uint32_t i = 0; i < m->nregions; i++) {
		if ((r[i].prot & RUN_REGION_DUMPED) &&
		    !same_region(&r[i], (const uint8_t *)m + r[i].file_off, n))
			return false;
		if ((r[i].prot & RUN_REGION_ZERO) && !same_nothing(&r[i], n))
			return false;
	}
	return true;
}

/* ---- at the place ---- */

/* A loop that never ends, since the place has not been recognized: a replay is not that much slower. */
static void check_time(void)
{
	if (rt_cpu_nsec() > want->nsec * 200 + 20000000000)
		rt_replay_diverged("the place of a signal has not been reached", want->rip);
}

/* gpr and flags as the processor has them in the copy: as a signal would find them */
static void look(struct rt_tcb *t, uint64_t rflags, struct rt_intr *in)
{
	uint64_t uc[UC_SIZE / 8];

	for (int i = 0; i < 16; i++)
		uc[rt_uc_word[i]] = t->sv.gpr[i];
	uc[MC_RIP] = copy;
	uc[MC_EFLAGS] = rflags;
	rt_sig_look(t, uc, in);
}

/* from rt_entry.S, which goes on in the copy: t->sv has the registers. rflags: DF of */
void rt_reach(struct rt_tcb *t, uint64_t rflags)
{
	static uint32_t looks;
	struct rt_intr in;
	uint64_t n;
	int k;

	if (++looks % 65536 == 0)
		check_time();
	if (!rt_reach_visit) {
		rt_reach_base += RT_REACH_PERIOD;
		rt_reach_visit = 0ull - RT_REACH_PERIOD;
		check_time();
	}
	if (!armed)
		return;
	k = other(t->sv.gpr);
	if (k >= 0) {
		t->t.place = (uint64_t)(k == RCX ? rt_reach_all : rt_reach_regs + k * RT_REACH_STUB);
		return;
	}
	t->t.place = (uint64_t)rt_reach_all;
	look(t, rt_rflags(rflags, t->sv.flags), &in);
	if (!same_registers(&in, &n) || !same_words(n) || !same_vectors() || !same_memory(n))
		return;
	memcpy(in.gpr, want->gpr, sizeof(in.gpr));
	in.rflags = want->rflags;
	in.visit = rt_reach_base + RT_REACH_PERIOD + rt_reach_visit;
	rt_replay_here(t, &in);
}
