/* SPDX-License-Identifier: MIT
 *
 * unit_r15.c - instructions that name r15, executed as they are and as r15.c rewrites them
 *
 * Random encodings are decoded, kept when they name r15 and touch nothing but registers and an
 * arena, and run twice from the same random state: in the original form with the program's r15
 * in r15, and rewritten with r15 in the TCB slot and a log pointer in r15. All registers, flags,
 * vector registers and memory must agree, and r15 must still be the log pointer.
 *
 * The rewritten form is single-stepped. At every step the address map must translate the
 * registers to exactly the state before or the state after the original instruction.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "emit.h"
#include "scratch.h"
#include "sem_lift.h"

struct st {
	uint64_t r[16], flags;
	uint8_t x[8][16];
};
extern struct st step_in, step_res;
void step_run(void *code);
extern char step_out[];

#define ARENA 8192
#define FLAGS 0x8d5ull
static uint8_t *code, *arena, *log_buf;
static uint8_t arena_in[ARENA], arena_out[ARENA];
static struct tcb tcb;
static sigjmp_buf fault;
static uint64_t seed = 1;
static unsigned passed, failed, skipped;

/* what the stepping handler compares with */
static const struct map_xlat *xl;
static uint32_t nxl;
static uint64_t rw_start, rw_end;
static struct st before, after;
static uint32_t dead_mask, over_mask, und_flags;
static const char *step_bad;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dull;
}

static void on_fault(int sig)
{
	siglongjmp(fault, sig);
}

static const int greg[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
			     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void on_step(int sig, siginfo_t *si, void *uc_)
{
	ucontext_t *uc = uc_;
	uint64_t rip = uc->uc_mcontext.gregs[REG_RIP], r[16];
	const struct map_xlat *x = NULL;
	const struct st *want;

	(void)sig;
	(void)si;
	if (rip < rw_start || rip >= rw_end)
		return;
	for (uint32_t i = 0; i < nxl && xl[i].copy_off <= rip - rw_start; i++)
		x = &xl[i];
	if (!x) {
		step_bad = "no address map entry";
		return;
	}
	for (int i = 0; i < 16; i++)
		r[i] = uc->uc_mcontext.gregs[greg[i]];
	if (!(x->flags & MAP_X_R15_REAL))
		r[15] = x->r15_reg != 0xff ? r[x->r15_reg] : tcb.r15;
	for (int i = 0; i < 2; i++)
		if (x->spill[i] != 0xff)
			r[x->spill[i]] = tcb.spill[i];
	want = x->vaddr == 0x1000 ? &before : &after;
	for (int i = 0; i < 16; i++)
		if (r[i] != want->r[i] && !((dead_mask | (want == &before ? over_mask : 0)) >> i & 1))
			step_bad = x->vaddr == 0x1000 ? "a register differs from the state before"
						      : "a register differs from the state after";
	if ((uc->uc_mcontext.gregs[REG_EFL] ^ want->flags) & FLAGS & ~und_flags)
		step_bad = "flags";
}

static void put_jump(uint8_t *p)
{
	uint64_t to = (uintptr_t)step_out;

	memcpy(p, "\xff\x25\0\0\0\0", 6);
	memcpy(p + 6, &to, 8);
}

static bool usable(const struct dec *d)
{
	switch (d->in.meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_BMI1:
	case ZYDIS_CATEGORY_BMI2:
	case ZYDIS_CATEGORY_MISC:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_SEMAPHORE:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_SSE:
	case ZYDIS_CATEGORY_AVX:
	case ZYDIS_CATEGORY_AVX2:
	case ZYDIS_CATEGORY_ADOX_ADCX:
		break;
	default:
		return false;
	}
	if (d->in.mnemonic == ZYDIS_MNEMONIC_CPUID || d->in.mnemonic == ZYDIS_MNEMONIC_ENTER ||
	    d->in.mnemonic == ZYDIS_MNEMONIC_LEAVE || d->in.mnemonic == ZYDIS_MNEMONIC_RDPID ||
	    d->in.address_width != 64)
		return false;
	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if (ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_SEGMENT ||
			    ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_CONTROL ||
			    ZydisRegisterGetClass(o->reg.value) == ZYDIS_REGCLASS_DEBUG)
				return false;
			/* a stack pointer that is no stack pointer */
			if (dec_gpr(o->reg.value) == X_RSP &&
			    o->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
				return false;
		}
		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == o->mem.index ||
		    o->mem.base == ZYDIS_REGISTER_NONE || o->mem.segment == ZYDIS_REGISTER_FS ||
		    o->mem.segment == ZYDIS_REGISTER_GS)
			return false;
		if (o->mem.disp.value > 512 || o->mem.disp.value < -512)
			return false;
	}
	return true;
}

/* a random encoding; 0 when it is not one we want */
static int generate(struct dec *d, uint8_t *b)
{
	static const uint8_t rexs[] = {0x41, 0x44, 0x45, 0x42, 0x43, 0x46,
				       0x47, 0x49, 0x4c, 0x4d, 0x4a, 0x4f};
	ZydisDecoder z;
	int n = 0;

	if (rnd() % 4 == 0)
		b[n++] = (uint8_t[]){0x66, 0xf2, 0xf3, 0xf0}[rnd() % 4];
	if (rnd() % 6 == 0) {
		b[n++] = 0xc4;
		b[n++] = (rnd() & 0xe0) | (1 + rnd() % 3);
		b[n++] = rnd() & 1 ? rnd() & 0xfb : 0x80 | (rnd() & 7);
	} else {
		b[n++] = rexs[rnd() % sizeof(rexs)];
		if (rnd() % 3 == 0)
			b[n++] = 0x0f;
	}
	for (int i = 0; i < 12; i++)
		b[n++] = rnd();
	if (rnd() & 1)
		b[n - 11] |= 7; /* rm = 7: r15 with B */
	ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&z, b, 15, &d->in, d->op)))
		return 0;
	d->b = b;
	d->vaddr = 0x1000;
	return r15_named(d) && usable(d);
}

static void random_state(const struct dec *d, struct st *s)
{
	for (int i = 0; i < 16; i++) {
		uint64_t v = rnd();

		s->r[i] = v % 5 == 0 ? v % 70 : v % 5 == 1 ? (uint64_t)(int64_t)(int32_t)v : v;
	}
	for (int i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *o = &d->op[i];

		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (dec_gpr(o->mem.index) >= 0)
			s->r[dec_gpr(o->mem.index)] = rnd() % 64;
		if (dec_gpr(o->mem.base) >= 0)
			s->r[dec_gpr(o->mem.base)] = (uintptr_t)arena + ARENA / 2 + rnd() % 64 * 8;
	}
	s->r[X_RSP] = (uintptr_t)arena + ARENA / 2;
	s->flags = (rnd() & FLAGS) | 0x202;
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 16; k++)
			s->x[i][k] = rnd();
	for (int i = 0; i < ARENA; i++)
		arena_in[i] = rnd() >> 8;
}

static int execute(const struct st *s)
{
	int sig = sigsetjmp(fault, 1);

	if (sig)
		return sig;
	memcpy(arena, arena_in, ARENA);
	step_in = *s;
	step_run(code);
	return 0;
}

static void report(const struct dec *d, const char *why)
{
	ZydisFormatter f;
	char text[128];

	failed++;
	if (failed > 20)
		return;
	ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterFormatInstruction(&f, &d->in, d->op, d->in.operand_count_visible, text, sizeof(text), 0,
					NULL);
	printf("FAIL %s: %s, bytes", text, why);
	for (int i = 0; i < d->in.length; i++)
		printf(" %02x", d->b[i]);
	printf("\n");
}

static const char *compare(const struct st *want, uint32_t dead)
{
	struct st got = step_res;

	if (got.r[15] != (uintptr_t)log_buf)
		return "r15 is not the log pointer";
	got.r[15] = tcb.r15;
	for (int i = 0; i < 16; i++)
		if (got.r[i] != want->r[i] && !(dead >> i & 1))
			return i == 15 ? "r15 of the program" : "a register";
	if ((got.flags ^ want->flags) & FLAGS & ~und_flags)
		return "flags";
	if (memcmp(got.x, want->x, sizeof(got.x)))
		return "a vector register";
	if (memcmp(arena, arena_out, ARENA))
		return "memory";
	return step_bad;
}

static void one(struct dec *d, bool perturb)
{
	struct em e = {.cur_rot = NOREG};
	struct st s, want, rw;
	const char *why;
	uint32_t used = dec_gprs(d), live, must, may;
	struct scratch_mark mark = scratch_mark();

	random_state(d, &s);
	und_flags = d->in.cpu_flags ? d->in.cpu_flags->undefined : 0;
	memcpy(code, d->b, d->in.length);
	put_jump(code + d->in.length);
	if (execute(&s)) {
		skipped++;
		return;
	}
	want = step_res;
	memcpy(arena_out, arena, ARENA);
	if (!r15_can(d)) {
		skipped++;
		return;
	}
	live = rnd() & 1 ? 0xffff : (rnd() & 0xffff) | used | 1u << X_RSP;
	state(&e, 0x1000);
	r15_emit(&e, d, live | FLAGS_BIT);
	state(&e, 0x1000 + d->in.length);
	code_insn(&e.c);
	if (e.c.fail) {
		report(d, e.c.fail);
		scratch_release(mark);
		return;
	}
	memcpy(code, e.c.b, e.c.n);
	put_jump(code + e.c.n);
	xl = e.c.xl;
	nxl = e.c.nxl;
	rw_start = (uintptr_t)code;
	rw_end = rw_start + e.c.n;
	before = s;
	after = want;
	dead_mask = ~live & 0xffff & ~(1u << R15);
	/* what the instruction only overwrites is dead before it */
	over_mask = ~sem_gpr_sets(&d->in, d->op, &must, &may) & must;
	step_bad = NULL;
	memset(&tcb, 0x5a, sizeof(tcb));
	tcb.r15 = s.r[15] ^ perturb;
	rw = s;
	rw.r[15] = (uintptr_t)log_buf;
	rw.flags |= 0x100; /* TF */
	why = execute(&rw) ? "the rewritten form faults" : compare(&want, dead_mask);
	if (why)
		report(d, why);
	else
		passed++;
	scratch_release(mark);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? strtoul(argv[1], NULL, 0) : 8000;
	bool self = argc > 2 && !strcmp(argv[2], "selftest");
	struct sigaction sa = {.sa_handler = on_fault, .sa_flags = SA_NODEFER | SA_ONSTACK};
	stack_t ss = {.ss_sp = malloc(65536), .ss_size = 65536};
	struct dec d;
	uint8_t b[32];

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	log_buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
	sa.sa_sigaction = on_step;
	sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGTRAP, &sa, NULL);
	syscall(SYS_arch_prctl, ARCH_SET_GS, &tcb);
	while (passed + failed < n && skipped < 50 * n)
		if (generate(&d, b))
			one(&d, self);
	if (self) {
		printf("%u passed, %u failed\n", failed > 0, !failed);
		return !failed;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
