/* SPDX-License-Identifier: MIT
 *
 * rt_pt.c - Intel PT: is it there, a thread's first packets, keyframes
 *
 *   rt_pt_env()    settings
 *   rt_pt_look()   is there a PMU? one open(2) where there is none, and all is as if this file were not there
 *   rt_pt_open()   ptrace-collect tries (collect_pt.c), before the first module is looked at: its map depends on it
 *   rt_pt_start()  the first thread, when all is in place; rt_pt_born(): every other, before its first instruction
 *   rt_pt_key()    full chunk: what a walk needs that has lost its way, and a counter into the packets
 *
 * The event, its buffers and its descriptor are the collector's. A thread asks for it in ring_thread.pt and waits.
 */
#include <cpuid.h>
#include "rt.h"
#include "run_pt.h"

extern const char __ehdr_start[]; /* the linker's: where this library was loaded */

#define PMU_DIR "/sys/bus/event_source/devices/intel_pt"
#define PATIENCE_MS 20000 /* the collector may be waiting for a disk */
#define EXIT_NO_PT 126
#define RED_ZONE 128 /* below rsp, the program's (psABI 3.2.2) */

/* ---- settings ---- */

static int bad(const char *name, const char *why)
{
	return rt_refuse(name, rt_env_get(name), why);
}

/* bytes, or with K or M: a power of two from lo to hi, rounded down */
static int number(const char *name, uint64_t *to, uint64_t lo, uint64_t hi, const char *wrong)
{
	const char *v = rt_env_get(name), *p = v;
	uint64_t n = 0;

	if (!v || !*v)
		return 0;
	for (; *p >= '0' && *p <= '9' && n < 1ull << 40; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (*p == 'K' || *p == 'M')
		n <<= *p++ == 'K' ? 10 : 20;
	if (p == v || *p || n < lo || n > hi)
		return bad(name, wrong);
	while (n & (n - 1))
		n &= n - 1;
	*to = n;
	return 0;
}

static int size_of(const char *name, uint64_t *to, uint64_t lo, uint64_t hi)
{
	return number(name, to, lo, hi,
		      "use a number of bytes, or one with K or M, within the bounds in libptrace_rt(7)");
}

/* an exponent; "off" where that is allowed */
static int exponent(const char *name, int32_t *to, bool off)
{
	const char *v = rt_env_get(name), *p = v;
	int32_t n = 0;

	if (!v || !*v)
		return 0;
	if (off && rt_streq(v, "off")) {
		*to = -1;
		return 0;
	}
	for (; *p >= '0' && *p <= '9' && n < 100; p++)
		n = n * 10 + (*p - '0');
	if (p == v || *p || n > 15)
		return bad(name, off ? "use a number from 0 to 15, or off" : "use a number from 0 to 15");
	*to = n;
	return 0;
}

int rt_pt_env(void)
{
	const char *v = rt_env_get("PTRACE_CF");
	struct ring_pt *s = &rt.pt_set;
	bool cyc = false, retc = true;
	uint64_t budget = 1;

	s->rt_base = (uint64_t)__ehdr_start;
	s->counter_branch = (uint64_t)rt_pt_branch;
	s->counter_ptw = (uint64_t)rt_pt_ptw;
	rt.cf = RT_CF_AUTO;
	if (v && rt_streq(v, "pt"))
		rt.cf = RT_CF_PT;
	else if (rt.how == RT_REPLAY || (v && (rt_streq(v, "soft") || rt_streq(v, "replay"))))
		rt.cf = RT_CF_SOFT;
	else if (v && *v && !rt_streq(v, "auto") && !rt_streq(v, "full"))
		return bad("PTRACE_CF", "unknown, use auto, full, pt, soft or replay");
	s->aux = 4ull << 20;
	s->ring = 64ull << 10;
	s->key = 256u << 10;
	s->psb = 2;
	s->mtc = 3;
	if (rt_env_bool("PTRACE_PT_CYC", &cyc) || rt_env_bool("PTRACE_PT_RETC", &retc))
		return -1;
	s->cyc = cyc;
	s->noretc = !retc;
	v = rt_env_get("PTRACE_LOG");
	if (v && *v && !rt_streq(v, "info"))
		return bad("PTRACE_LOG", "unknown, use info");
	rt.info = v && *v;
	if (rt_env_bool("PTRACE_PTWRITE", &rt.ptwrite))
		return -1;
	v = rt_env_get("PTRACE_PTWRITE_BUDGET");
	if (v && rt_streq(v, "all"))
		rt.budget = MAP_BUDGET_ALL;
	else if (number("PTRACE_PTWRITE_BUDGET", &budget, 1, 1u << (MAP_BUDGET_ALL - 1),
			"use a number from 1 to 16384, or all"))
		return -1;
	else
		rt.budget = (uint32_t)__builtin_ctzll(budget);
	if (size_of("PTRACE_PT_AUX", &s->aux, 64ull << 10, 1ull << 30) ||
	    size_of("PTRACE_PT_RING", &s->ring, RT_PAGE, 64ull << 20) ||
	    size_of("PTRACE_PT_KEY", &s->key, RT_PAGE, RUN_CHUNK_SIZE) ||
	    exponent("PTRACE_PT_PSB", &s->psb, false) || exponent("PTRACE_PT_MTC", &s->mtc, true))
		return -1;
	return 0;
}

/* ---- is it there? ---- */

static void why(const char *a, const char *b)
{
	struct rt_str s = rt_str(rt.pt_set.why, sizeof(rt.pt_set.why));

	if (rt.full_why) {
		rt_put(&s, "in full from here: ");
		rt_put(&s, rt.full_why);
		rt_put(&s, "; ");
	}
	rt_put(&s, a);
	rt_put(&s, b);
}

/* The kernel has no intel_pt PMU: whose fault is it? CPUID.7.0:EBX[25] is Intel PT, CPUID.14H.0:ECX[0] its
 * ToPA output, CPUID.1:ECX[31] is set by hypervisors (SDM Vol. 2, CPUID). What the kernel wants: pt_init in
 * arch/x86/events/intel/pt.c, and the Makefile there */
static void why_no_pmu(const char *dir)
{
	uint32_t a, b = 0, c, d, max;
	char vendor[13] = {0};
	bool intel, has, guest, topa;

	__cpuid(0, max, b, c, d);
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	intel = rt_streq(vendor, "GenuineIntel");
	__cpuid(1, a, b, c, d);
	guest = c >> 31;
	b = 0;
	if (max >= 7)
		__cpuid_count(7, 0, a, b, c, d);
	has = b >> 25 & 1;
	topa = false;
	if (has && max >= 0x14) {
		__cpuid_count(0x14, 0, a, b, c, d);
		topa = c & 1;
	}
	if (!intel)
		why("this processor has no Intel PT: it is of ", vendor);
	else if (!has && guest)
		why("this virtual machine is not given Intel PT by its host", "");
	else if (!has)
		why("this processor has no Intel PT, or the firmware has turned it off", "");
	else if (rt_err(rt_sc(__NR_access, "/sys/bus/event_source/devices", 0)))
		why("there is no /sys/bus/event_source/devices: is /sys mounted, or hidden by a container?",
		    "");
	else if (!topa)
		why("this processor's Intel PT cannot write to a list of buffers (ToPA), which the kernel "
		    "needs",
		    "");
	else
		why("the processor has Intel PT, the kernel no PMU for it: it is built without "
		    "CONFIG_PERF_EVENTS or "
		    "CONFIG_CPU_SUP_INTEL, or tracing was on already when it started (see 'dmesg'): no ",
		    dir);
}

static void say_why(const char *text)
{
	if (rt.info)
		rt_say("control flow: ",
		       rt.how == RT_RECORD ? "computed later, by a replay"
		       : rt.pt		   ? "Intel PT"
					   : "recorded by the copies",
		       ": ", text);
}

/* PTRACE_CF=pt, and it cannot be: the program is not started at all. In an image that another of the run has
 * executed that would change what the program does: it is traced without */
int rt_pt_refuse(void)
{
	const char *text = rt.ring ? rt.ring->pt.why : rt.pt_set.why;

	if (rt.ring && !rt.root) {
		rt_say("PTRACE_CF=pt: ", text, "; this image is traced without Intel PT", NULL);
		return 0;
	}
	rt_say("PTRACE_CF=pt: ", text, "; not started (PTRACE_CF=auto does without)", NULL);
	rt.exit = EXIT_NO_PT;
	return -1;
}

int rt_pt_look(void)
{
	const char *dir = rt_env_get("PTRACE_PMU_DIR");
	char path[RT_PATH];

	if (rt.mapflags & MAP_F_PT) { /* PTRACE_TEST_PT_COPIES: nothing for them to rest on */
		rt.pt_set.cf = RING_CF_NONE;
		why("copies for Intel PT, which is not used, for a test: this run cannot be decoded", "");
		return 0;
	}
	rt.pt_set.cf = RING_CF_SOFT;
	if (rt.how == RT_RECORD) {
		why(rt.cf == RT_CF_SOFT ? "PTRACE_CF=replay" : "PTRACE_CF=auto", "");
	} else if (rt.cf == RT_CF_SOFT) {
		why(rt.full_why ? "PTRACE_CF=replay" : "PTRACE_CF=soft", "");
	} else {
		dir = dir && *dir ? dir : PMU_DIR;
		rt_dir_path(path, dir, "type");
		if (!rt_err(rt_sc(__NR_access, path, 4))) {
			rt.pt_set.cf = RING_CF_PT;
			why("the intel_pt PMU", "");
		} else {
			why_no_pmu(dir);
			if (rt.cf == RT_CF_PT)
				return rt_pt_refuse();
		}
	}
	if (rt.ptwrite && rt.pt_set.cf != RING_CF_PT)
		return rt_refuse("PTRACE_PTWRITE", "1: needs Intel PT", rt.pt_set.why);
	if (rt.pt_set.cf != RING_CF_PT)
		say_why(rt.pt_set.why);
	return 0;
}

/* ---- asked for ---- */

/* 0 or errno */
static int ask(struct rt_tcb *t, uint32_t want)
{
	uint64_t t0 = rt_msec();
	uint32_t now;

	__atomic_store_n(&t->th.pt, want, __ATOMIC_RELEASE);
	rt_ring_kick();
	for (;;) {
		now = __atomic_load_n(&t->th.pt, __ATOMIC_ACQUIRE);
		if (now != want)
			break;
		if (rt_ring_dead() || rt_msec() - t0 > PATIENCE_MS)
			__atomic_compare_exchange_n(&t->th.pt, &want, RING_PT_FAILED, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE);
		else
			rt_futex_wait(&t->th.pt, want, 50);
	}
	return now == RING_PT_FAILED ? (int)(t->th.pt_error ? t->th.pt_error : ETIMEDOUT) : 0;
}

/* After this rt.pt tells. 0, or -1: the program must not run, or not traced; said */
int rt_pt_open(void)
{
	struct ring_pt *s = &rt.ring->pt;

	if (s->cf != RING_CF_PT)
		return 0;
	if (rt_ring_ready())
		return -1;
	rt.pt = !ask(rt.main, RING_PT_OPEN);
	if (!rt.pt) {
		s->cf = RING_CF_SOFT;
		if (rt.cf == RT_CF_PT && rt_pt_refuse())
			return -1;
	}
	if (rt.ptwrite && !(rt.pt && s->ptwrite))
		return bad("PTRACE_PTWRITE",
			   rt.pt ? "the processor or its intel_pt PMU has no PTWRITE" : s->why);
	say_why(s->why);
	if (rt.pt)
		rt.mapflags |= MAP_F_PT;
	if (rt.ptwrite)
		rt.mapflags |= MAP_F_PTW | MAP_F_BUDGET(rt.budget);
	return 0;
}

/* 0 or -errno */
int rt_pt_start(void)
{
	return rt.pt ? -ask(rt.main, RING_PT_START) : 0;
}

/* Without it t's control flow is not known; its pt file says so. Nothing can be done about it here. */
void rt_pt_born(struct rt_tcb *t)
{
	t->th.key = 0;
	if (rt.pt && !rt.stopped)
		ask(t, RING_PT_START);
}

/* ---- keyframes ---- */

/* Full chunk: t has the next one, and will go on at tcb.resume */
void rt_pt_key(struct rt_tcb *t)
{
	struct run_key *k = (void *)t->t.lp;
	struct rt_where w = {0, RUN_STOP_IN_HOOK, ~0u, 0, 0, 0, false};
	struct ring_desc *d = rt_chunk_desc(t);
	uint64_t n, room, gpr[16], rflags = rt_rflags_hook(t);

	memcpy(gpr, t->sv.gpr, sizeof(gpr));
	rt_xlat(t, gpr, t->t.resume, &rflags, &w);
	n = rt_stack_size(gpr[RSP]) + RED_ZONE;
	room = (RUN_CHUNK_SIZE - d->start) / 4; /* the rest is for what the chunk is there for */
	room = room < RUN_KEY_STACK ? room : RUN_KEY_STACK;
	n = (n < room ? n : room) & ~7ull;
	/* first: of who is killed in the midst of this nothing of it is taken for log */
	d->key = (uint16_t)((sizeof(*k) + n) / 8);
	__asm__ volatile("" ::: "memory");
	memset(k, 0, sizeof(*k));
	memcpy(k->gpr, gpr, sizeof(gpr));
	k->counter = t->th.key + 1;
	k->modules = rt.nindex;
	k->rip = w.rip;
	k->rflags = rflags;
	k->copy = t->t.resume;
	rt_sc(__NR_arch_prctl, 0x1003 /* ARCH_GET_FS */, &k->fsbase);
	k->expect = t->t.expect;
	k->tsc = rt_tsc();
	k->stack = gpr[RSP] - RED_ZONE;
	if (rt_copy_out(k + 1, k->stack, n))
		memcpy(k + 1, (void *)k->stack, n);
	k->stack_size = n;
	__atomic_store_n(&t->t.lp, t->t.lp + sizeof(*k) + n, __ATOMIC_RELEASE);
	rt_pt_counter(k->counter, rt.ring->pt.counter == RUN_PT_PTWRITE);
	__atomic_store_n(&t->th.key, k->counter, __ATOMIC_RELEASE);
}
