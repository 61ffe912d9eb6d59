/* SPDX-License-Identifier: MIT
 *
 * semtest.h - what the parts of the differential test of the semantics IR share
 *
 *   semtest.c        options, the loop over forms and states, report
 *   semtest_gen.c    enumerates encodings, groups them into forms, makes random instances
 *   semtest_state.c  random states in which the operands are in the arena
 *   semtest_cmp.c    comparison
 *   semtest_probe.c  use-def sets, extent of accesses
 *   semtest_cpu.c    runs one instruction on the processor
 *   semtest_model.c  runs its IR, tracking which bits are unknown
 */
#ifndef SEMTEST_H
#define SEMTEST_H

#include <stdbool.h>
#include <stdint.h>
#include "sem_eval.h"
#include "sem_lift.h"

/* Fixed low addresses, so that code and data are reachable by 32-bit absolute, rip-relative and
 * 67h addressing, and link-time addresses fit 32 bits. */
#define STATE_ADDR 0x20000000
#define CODE_ADDR 0x21000000u
#define PAD_OFF 64u /* branch target, from the instruction */
#define ARENA_ADDR 0x22000000u
#define ARENA_SIZE 4096u /* between two inaccessible pages */

struct cpu_state { /* offsets are used in semtest_cpu.c's assembly */
	uint64_t in[16], out[16];
	uint64_t flags_in, flags_out; /* 0x100 */
	uint64_t host_rsp, code, back; /* 0x110 */
	uint64_t taken; /* 0x128 */
	uint32_t mxcsr, pad0; /* 0x130 */
	uint64_t pad1;
	uint64_t kin[8], kout[8]; /* 0x140, 0x180 */
	uint8_t pad2[0x1000 - 0x1c0];
	uint64_t vin[32][8], vout[32][8]; /* 0x1000, 0x1800 */
};
#define ST ((struct cpu_state *)(uintptr_t)STATE_ADDR)
#define ARENA ((uint8_t *)(uintptr_t)ARENA_ADDR)

/* --- cpu --- */
extern bool cpu_avx512;
int cpu_nvec(void); /* vector registers compared */
int cpu_nlanes(void);
bool cpu_init(void); /* false: the processor lacks AVX */
void cpu_code(const uint8_t *insn, unsigned len);
int cpu_run(void); /* 0, or the signal it raised */

/* --- random --- */
uint64_t rnd(void);
uint64_t rnd_value(void); /* often a boundary value */

/* --- instances --- */
struct insn {
	uint8_t bytes[15];
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct sem_op ir[SEM_LIFT_MAX];
	int n;
};
int gen_forms(void); /* enumerates; returns the number of forms */
const char *gen_name(int form);
bool gen_instance(int form, struct insn *i); /* a random instruction of this form */
/* Fills ST->in, vin, kin, flags_in and the arena. target: address of the explicit memory operand, 0 =
 * anywhere in the arena. */
void gen_state(const struct insn *i, uint64_t target);
extern uint64_t rnd_seed;

/* --- model --- */
struct model {
	uint64_t r[SEM_NREGS], u[SEM_NREGS]; /* value; unknown bits */
	uint8_t mem[ARENA_SIZE], um[ARENA_SIZE]; /* memory; unknown bytes (0 or 0xff) */
	struct {
		uint64_t addr;
		uint32_t size, kind;
	} rec[600];
	int nrec;
	uint64_t fsbase;
	const uint64_t *given; /* value of unknown temporaries, NULL: unknown */
	bool bad; /* an access outside the arena */
};
extern struct model M;
void model_run(const struct insn *i);

/* --- comparison: each says why in `why` when it fails --- */
enum { STATUS = SEM_CF | SEM_PF | SEM_AF | SEM_ZF | SEM_SF | SEM_OF };
extern int sabotage; /* op code whose result is falsified, -1 none */
extern uint8_t before[ARENA_SIZE]; /* the arena before the instruction */
extern char why[256];
bool wrong(const char *what, uint64_t got, uint64_t want); /* false */
uint32_t undefined_flags(const struct insn *i);
bool shape_ok(const struct insn *i);
/* 1 agreed, 0 disagreed, -1 no verdict: the processor raised *sig */
int compare(const struct insn *i, int *sig);

/* --- probes --- */
bool is_pure(const struct insn *i); /* its results depend on the state alone */
bool use_def_ok(const struct insn *i);
bool guard_ok(const struct insn *i);

#endif
