/* SPDX-License-Identifier: MIT
 *
 * semtest.c - differential test of the semantics IR against the processor
 *
 * For every form (semtest_gen.c) random instructions are executed natively and by the IR
 * from the same random state. Compared: general registers, flags that are defined, DF, vector
 * lanes, mask registers, memory, branch outcomes. Further, for each instruction:
 *
 *   records   every byte the processor changed is in a W record; an access that ends at an
 *             inaccessible page by its records does not fault, one byte further it does
 *             (likewise at its start): so address and size are the processor's
 *   use-def   registers that sem_gpr_sets does not name as read are changed: nothing else may change; what
 *             changed is in its `may`; what must be written is written
 *
 *   semtest [--full | --states N] [--form SUBSTRING] [--list] [--selftest] [--seed N]
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "semtest.h"
#include "trace.h"

static bool verbose = true;

static void report(int form, const struct insn *i)
{
	ZydisFormatter fmt;
	char text[128] = "";

	if (!verbose)
		return;
	ZydisFormatterInit(&fmt, ZYDIS_FORMATTER_STYLE_INTEL);
	ZydisFormatterFormatInstruction(&fmt, &i->in, i->op, i->in.operand_count_visible, text, sizeof(text),
					CODE_ADDR, NULL);
	printf("FAIL %s: %s [", gen_name(form), text);
	for (int k = 0; k < i->in.length; k++)
		printf("%02x%s", i->bytes[k], k + 1 < i->in.length ? " " : "");
	printf("]: %s\n", why);
}

struct tally {
	long forms, failed, absent, silent, states, exact;
};

/* Does the IR leave nothing unknown? */
static bool is_exact(const struct insn *i)
{
	for (int k = 0; k < i->n; k++)
		if (i->ir[k].op == SEM_UNK)
			return false;
	return true;
}

static bool one_instance(const struct insn *i, int states, long *good, int *ill)
{
	int sig, v;

	if (!shape_ok(i))
		return false;
	cpu_code(i->bytes, i->in.length);
	for (int s = 0; s < states; s++) {
		gen_state(i, 0);
		v = compare(i, &sig);
		if (sig == SIGILL) {
			++*ill;
			return true;
		}
		if (v == 0)
			return false;
		*good += v > 0;
		if (v > 0 && s == 0 && is_pure(i) && !use_def_ok(i))
			return false;
	}
	return guard_ok(i);
}

static int current;

static void on_alarm(int sig)
{
	(void)sig;
	printf("FAIL %s does not come to an end\n0 passed, 1 failed\n", gen_name(current));
	_exit(1);
}

static void one_form(int form, int states, struct tally *t)
{
	struct insn i;
	long good = 0, tries = 0;
	int ill = 0, per = states > 100 ? 20 : states > 10 ? 4 : 2;
	bool exact = false;

	current = form;
	alarm(30);
	while (good < states && tries++ < 20 + 4 * states / per) {
		if (!gen_instance(form, &i))
			break;
		exact = is_exact(&i);
		if (!one_instance(&i, per, &good, &ill)) {
			report(form, &i);
			t->failed++;
			t->states += good;
			t->forms++;
			return;
		}
		if (ill > 3 && !good)
			break;
	}
	t->states += good;
	if (good) {
		t->forms++;
		t->exact += exact;
	} else if (ill) {
		t->absent++;
	} else {
		t->silent++;
		if (verbose)
			printf("note: %s always faults here\n", gen_name(form));
	}
}

static void run(int nforms, int states, const char *only, struct tally *t)
{
	memset(t, 0, sizeof(*t));
	for (int f = 0; f < nforms; f++)
		if (!only || strstr(gen_name(f), only))
			one_form(f, states, t);
}

/* Each op, falsified, must be noticed. */
static int selftest(int nforms)
{
	static const struct {
		int op;
		const char *form;
	} probe[] = {
		{SEM_ADD, "add r64 r64"},  {SEM_FC_SUB, "cmp r32 r32"}, {SEM_LEA, "lea r64 m64"},
		{SEM_LOAD, "mov r64 m64"}, {SEM_SHL, "shl r64 i8"},	{SEM_INS, "mov r8 r8"},
		{SEM_COND, "setz r8"},	   {SEM_REC, "push r64"},
	};
	int n = sizeof(probe) / sizeof(probe[0]), passed = 0;
	struct tally t;

	verbose = false;
	for (int k = 0; k < n; k++) {
		sabotage = probe[k].op;
		run(nforms, 20, probe[k].form, &t);
		if (t.failed == t.forms && t.forms)
			passed++;
		else
			printf("selftest: a falsified op %d went unnoticed in %s\n", probe[k].op,
			       probe[k].form);
	}
	printf("%d passed, %d failed\n", passed, n - passed);
	return passed != n;
}

int main(int argc, char **argv)
{
	int states = 6, nforms;
	const char *only = NULL;
	bool list = false, self = false;
	struct tally t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int k = 1; k < argc; k++) {
		if (!strcmp(argv[k], "--full"))
			states = 1000;
		else if (!strcmp(argv[k], "--states") && k + 1 < argc)
			states = atoi(argv[++k]);
		else if (!strcmp(argv[k], "--form") && k + 1 < argc)
			only = argv[++k];
		else if (!strcmp(argv[k], "--seed") && k + 1 < argc)
			rnd_seed = strtoull(argv[++k], NULL, 0) | 1;
		else if (!strcmp(argv[k], "--list"))
			list = true;
		else if (!strcmp(argv[k], "--selftest"))
			self = true;
		else
			return fprintf(stderr, "semtest: unknown option %s\n", argv[k]), 2;
	}
	if (!cpu_init())
		return puts("semtest: needs a processor with AVX\n0 passed, 0 failed"), 0;
	syscall(SYS_arch_prctl, ARCH_GET_FS, &M.fsbase);
	signal(SIGALRM, on_alarm);
	nforms = gen_forms();
	for (int f = 0; list && f < nforms; f++)
		puts(gen_name(f));
	if (list)
		return 0;
	if (self)
		return selftest(nforms);
	run(nforms, states, only, &t);
	printf("%ld states; %ld forms without unknown parts, %ld forms this processor lacks, %ld always "
	       "fault\n",
	       t.states, t.exact, t.absent, t.silent);
	printf("%ld passed, %ld failed\n", t.forms - t.failed, t.failed);
	return t.failed != 0;
}
