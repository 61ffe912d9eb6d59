/* SPDX-License-Identifier: MIT
 *
 * ptsim.c - an Intel PT processor for machines that have none
 *
 *	ptsim -o OUT [options] -- PROG ARGS...	the stream of PROG's first thread, in files (alone.c)
 *	ptsim --kernel [options] -- CMD ARGS...	a kernel with such a PMU for CMD and all that it starts: who opens
 *						events of it gets them (kern.h). PTRACE_PMU_DIR in CMD's
 *						environment is the PMU's directory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../oracle/tracee.h"
#include "alone.h"
#include "kern.h"
#include "sim.h"
#include "sim_tasks.h"

#define MAX_ENVS 64

static struct {
	const char *out;
	bool verbose, kernel;
	uint64_t max;
	char *setenvs[MAX_ENVS + 1];
	int nsetenvs;
	struct pt_cpu_config cpu;
} opt = {
	.cpu =
		{
			.tsc = true,
			.mtc = true,
			.long_tnt = true,
			.psb_period = 4096,
			.mtc_period = 3,
			.tsc_ratio_n = 168,
			.tsc_ratio_d = 2,
			.bus_ratio = 26,
			.tsc_bus_ratio = 20,
		},
};

/* The program and the simulator take turns: on one processor that is one switch, on two it wakes the other up. */
static void one_processor(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	}
	sched_setaffinity(0, sizeof(one), &one);
}

static const char usage_text[] =
	"usage: ptsim -o OUT [options] -- PROG ARGS...\n"
	"       ptsim --kernel [-o OUT] [options] -- CMD ARGS...\n"
	"  -o OUT         directory for pt.bin, ips, images, mem; with --kernel ips-TID, images, mem\n"
	"  --kernel       answer perf_event_open of the PMU in $PTRACE_PMU_DIR\n"
	"  -E NAME=VAL    set a variable in the program's environment (repeatable)\n"
	"  --step         single-step everything: slower, no int3 in the program's code\n"
	"  --verify       with --step: compare what the simulator would make of simple instructions\n"
	"  --tsc          rdtsc gives recorded threads the time that their packets have\n"
	"  --irq N        an interrupt every N instructions on average (2000; 0: none)\n"
	"  --seed N       of what is random\n"
	"  -v             figures on stderr\n"
	"processors:\n"
	"  --no-retc      no return compression (with --kernel the event says)\n"
	"  --defer        deferred TIPs; --short-tnt; --no-48\n"
	"  --no-ptwrite   --kernel: a processor without it\n"
	"without --kernel:\n"
	"  --psb N        bytes between PSBs (4096)\n"
	"  --cyc          cycle-accurate mode; --no-time: no TSC, MTC\n"
	"  --max N        record till the first system call after N instructions\n"
	"with --kernel, things that go wrong:\n"
	"  --open-errno E[,FROM[,COUNT]]  perf_event_open fails with number E, from the FROM-th on, COUNT "
	"times\n"
	"  --mlock-kb N   rings and AUX areas together may have so much\n"
	"  --ovf N        an internal buffer overflow every N instructions on average\n"
	"  --ring-lost N  every N-th record finds the ring full\n"
	"  --truncate N   every N-th time there is room for two pages of AUX data only\n"
	"Exit status: the program's, 128 + signal, 125 own failure, 127 it cannot be run.\n";

static uint64_t number(const char *s)
{
	char *e;
	uint64_t v = strtoull(s, &e, 0);

	if (!*s || *e) {
		errno = 0;
		fail("bad number %s", s);
	}
	return v;
}

enum {
	O_STEP = 256,
	O_KERNEL,
	O_VERIFY,
	O_TSC,
	O_IRQ,
	O_SEED,
	O_PSB,
	O_CYC,
	O_NO_TIME,
	O_NO_RETC,
	O_DEFER,
	O_SHORT,
	O_NO_48,
	O_MAX,
	O_NO_PTWRITE,
	O_OPEN_ERRNO,
	O_MLOCK,
	O_OVF,
	O_RING_LOST,
	O_TRUNCATE,
};

static const struct option longs[] = {
	{"step", no_argument, NULL, O_STEP},
	{"verify", no_argument, NULL, O_VERIFY},
	{"tsc", no_argument, NULL, O_TSC},
	{"kernel", no_argument, NULL, O_KERNEL},
	{"irq", required_argument, NULL, O_IRQ},
	{"seed", required_argument, NULL, O_SEED},
	{"psb", required_argument, NULL, O_PSB},
	{"cyc", no_argument, NULL, O_CYC},
	{"no-time", no_argument, NULL, O_NO_TIME},
	{"no-retc", no_argument, NULL, O_NO_RETC},
	{"defer", no_argument, NULL, O_DEFER},
	{"short-tnt", no_argument, NULL, O_SHORT},
	{"no-48", no_argument, NULL, O_NO_48},
	{"max", required_argument, NULL, O_MAX},
	{"no-ptwrite", no_argument, NULL, O_NO_PTWRITE},
	{"open-errno", required_argument, NULL, O_OPEN_ERRNO},
	{"mlock-kb", required_argument, NULL, O_MLOCK},
	{"ovf", required_argument, NULL, O_OVF},
	{"ring-lost", required_argument, NULL, O_RING_LOST},
	{"truncate", required_argument, NULL, O_TRUNCATE},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void open_errno(const char *arg)
{
	kern.open_from = 1;
	kern.open_count = 1u << 30;
	if (sscanf(arg, "%d,%u,%u", &kern.open_errno, &kern.open_from, &kern.open_count) < 1)
		fail("bad --open-errno %s", arg);
}

/* One that has a value of its own. */
static bool parse_value(int c)
{
	switch (c) {
	case O_IRQ:
		sim_irq = number(optarg);
		return true;
	case O_SEED:
		sim_seed = number(optarg) << 1 | 1;
		return true;
	case O_PSB:
		opt.cpu.psb_period = (unsigned)number(optarg);
		return true;
	case O_MAX:
		opt.max = number(optarg);
		return true;
	case O_OPEN_ERRNO:
		open_errno(optarg);
		return true;
	case O_MLOCK:
		kern.mlock_kb = number(optarg);
		return true;
	case O_OVF:
		kern.ovf = number(optarg);
		return true;
	case O_RING_LOST:
		kern.ring_lost = (unsigned)number(optarg);
		return true;
	case O_TRUNCATE:
		kern.truncate = (unsigned)number(optarg);
		return true;
	default:
		return false;
	}
}

static bool parse_processor(int c)
{
	switch (c) {
	case O_CYC:
		opt.cpu.cyc = true;
		return true;
	case O_NO_TIME:
		opt.cpu.tsc = opt.cpu.mtc = false;
		return true;
	case O_NO_RETC:
		opt.cpu.no_retc = true;
		return true;
	case O_DEFER:
		opt.cpu.defer = kern.cpu.defer = true;
		return true;
	case O_SHORT:
		opt.cpu.long_tnt = kern.cpu.long_tnt = false;
		return true;
	case O_NO_48:
		opt.cpu.no_48 = kern.cpu.no_48 = true;
		return true;
	case O_NO_PTWRITE:
		kern.no_ptwrite = true;
		return true;
	default:
		return false;
	}
}

static void usage(int status)
{
	fputs(usage_text, status ? stderr : stdout);
	exit(status);
}

static void parse(int argc, char **argv)
{
	int c;

	sim_irq = 2000;
	while ((c = getopt_long(argc, argv, "+o:E:vh", longs, NULL)) != -1) {
		if (parse_value(c) || parse_processor(c))
			continue;
		switch (c) {
		case 'o':
			opt.out = optarg;
			break;
		case 'E':
			if (opt.nsetenvs == MAX_ENVS || !strchr(optarg, '='))
				fail("bad -E %s", optarg);
			opt.setenvs[opt.nsetenvs++] = optarg;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case O_STEP:
			code_step = true;
			break;
		case O_TSC:
			code_tsc = true;
			break;
		case O_VERIFY:
			sim_verify = true;
			break;
		case O_KERNEL:
			opt.kernel = true;
			break;
		default:
			usage(c == 'h' ? 0 : 125);
		}
	}
	if (optind == argc || (!opt.out && !opt.kernel))
		usage(125);
}

/* The directory is CMD's while it runs. */
static int kernel(char **argv)
{
	char dir[] = "/tmp/ptsim-pmu-XXXXXX", env[64], cmd[64];
	int code;

	if (!mkdtemp(dir))
		fail("cannot make a directory for the PMU");
	kern_pmu_make(dir);
	snprintf(env, sizeof(env), "PTRACE_PMU_DIR=%s", dir);
	opt.setenvs[opt.nsetenvs++] = env;
	sim_hooks = &kern_hooks;
	sim_retired = kern_retired;
	if (opt.out)
		truth_open(opt.out);
	code = sim_run(tracee_seize(argv, opt.setenvs, opt.nsetenvs, SIM_OPTIONS));
	if (opt.verbose)
		kern_figures();
	truth_close();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		fail("cannot remove %s", dir);
	return code;
}

static int alone(char **argv)
{
	struct timespec a, b;
	int code;

	opt.cpu.ptw = opt.cpu.fup_on_ptw = true;
	alone_open(opt.out, &opt.cpu, opt.max);
	one_processor();
	clock_gettime(CLOCK_MONOTONIC, &a);
	code = sim_run(tracee_seize(argv, opt.setenvs, opt.nsetenvs, SIM_OPTIONS));
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (opt.verbose)
		alone_figures((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9);
	alone_close();
	return code;
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	return opt.kernel ? kernel(argv + optind) : alone(argv + optind);
}
