/* SPDX-License-Identifier: MIT
 *
 * ptsim.c - an Intel PT processor for machines that have none
 *
 *	ptsim -o OUT [options] -- PROG ARGS...
 *
 * Runs PROG and writes what the processor would have recorded of its first thread in user mode:
 *
 *	OUT/pt.bin	the packets
 *	OUT/ips		every executed instruction's address, one a line, in hex
 *	OUT/mem		the executed code, page by page
 *	OUT/images	a line FILE@ADDR:OFFSET:SIZE for each page, as ptrace-decode --image takes it
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
#include "sim.h"
#include "sim_tasks.h"

static struct {
	const char *out;
	bool verbose;
	uint64_t max;
	char *setenvs[64];
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

static struct {
	FILE *pt, *ips, *mem, *images;
	uint64_t at;
	struct pt_cpu cpu;
	struct task *task;
	uint64_t insns;
	bool done;
} out;

static FILE *create(const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", opt.out, name);
	f = fopen(path, "we");
	if (!f)
		fail("%s", path);
	return f;
}

static void put(void *arg, const uint8_t *bytes, size_t n)
{
	(void)arg;
	fwrite(bytes, 1, n, out.pt);
}

static void retired(struct task *t, uint64_t ip)
{
	static const char hex[] = "0123456789abcdef";
	char line[20], *p = line + sizeof(line);

	if (t != out.task)
		return;
	*--p = '\n';
	do
		*--p = hex[ip & 15];
	while (ip >>= 4);
	fwrite(p, 1, line + sizeof(line) - p, out.ips);
	out.insns++;
}

static void code_page(uint64_t addr, const uint8_t *bytes, size_t n)
{
	fwrite(bytes, 1, n, out.mem);
	fprintf(out.images, "%s/mem@0x%lx:0x%lx:0x%zx\n", opt.out, addr, out.at, n);
	out.at += n;
}

static void end(void)
{
	if (out.done || !out.task)
		return;
	out.done = true;
	pt_cpu_off(&out.cpu, out.task->regs.rip);
}

void sim_call(struct task *t, bool begins)
{
	if (!begins || t != out.task)
		return;
	pt_cpu_tick(&out.cpu, 300); /* what the kernel takes */
	if (opt.max && out.insns >= opt.max) {
		end();
		t->cpu = NULL;
		out.task = NULL;
	}
}

void sim_exec(struct task *t)
{
	if (!out.task && !out.done) {
		t->cpu = &out.cpu;
		out.task = t;
		pt_cpu_on(&out.cpu);
		return;
	}
	if (t == out.task) { /* another program: not ours */
		end();
		t->cpu = NULL;
		out.task = NULL;
	}
}

void sim_exit(struct task *t)
{
	if (t == out.task)
		end();
}

void sim_gone(struct task *t)
{
	if (t != out.task)
		return;
	end();
	out.task = NULL;
}

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
	"  -o OUT         directory for pt.bin, ips, images, mem\n"
	"  -E NAME=VAL    set a variable in the program's environment (repeatable)\n"
	"  --step         single-step everything: slower, no int3 in the program's code\n"
	"  --irq N        an interrupt every N instructions on average (2000; 0: none)\n"
	"  --seed N       of what is random\n"
	"  --psb N        bytes between PSBs (4096)\n"
	"  --cyc          cycle-accurate mode; --no-time: no TSC, MTC\n"
	"  --no-retc      no return compression; --defer: deferred TIPs; --short-tnt; --no-48\n"
	"  --max N        record till the first system call after N instructions\n"
	"  -v             figures on stderr\n"
	"Exit status: PROG's, 128 + signal, 125 own failure, 127 PROG cannot be run.\n";

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

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"step", no_argument, NULL, 's'},
		{"irq", required_argument, NULL, 'i'},
		{"seed", required_argument, NULL, 'S'},
		{"psb", required_argument, NULL, 'p'},
		{"cyc", no_argument, NULL, 'c'},
		{"no-time", no_argument, NULL, 't'},
		{"no-retc", no_argument, NULL, 'r'},
		{"defer", no_argument, NULL, 'd'},
		{"short-tnt", no_argument, NULL, 'n'},
		{"no-48", no_argument, NULL, '4'},
		{"max", required_argument, NULL, 'M'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	sim_irq = 2000;
	while ((c = getopt_long(argc, argv, "+o:E:vh", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			opt.out = optarg;
			break;
		case 'E':
			if (opt.nsetenvs == 64 || !strchr(optarg, '='))
				fail("bad -E %s", optarg);
			opt.setenvs[opt.nsetenvs++] = optarg;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 's':
			code_step = true;
			break;
		case 'i':
			sim_irq = number(optarg);
			break;
		case 'S':
			sim_seed = number(optarg) | 1;
			break;
		case 'p':
			opt.cpu.psb_period = (unsigned)number(optarg);
			break;
		case 'c':
			opt.cpu.cyc = true;
			break;
		case 't':
			opt.cpu.tsc = opt.cpu.mtc = false;
			break;
		case 'r':
			opt.cpu.no_retc = true;
			break;
		case 'd':
			opt.cpu.defer = true;
			break;
		case 'n':
			opt.cpu.long_tnt = false;
			break;
		case '4':
			opt.cpu.no_48 = true;
			break;
		case 'M':
			opt.max = number(optarg);
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fputs(usage_text, stderr);
			exit(125);
		}
	}
	if (optind == argc || !opt.out) {
		fputs(usage_text, stderr);
		exit(125);
	}
}

static void figures(double sec)
{
	const struct pt_cpu *c = &out.cpu;

	fprintf(stderr,
		"ptsim: %lu instructions, %.2f s, %.0f a second; %lu bytes: psb=%lu tnt=%lu tip=%lu pge=%lu "
		"pgd=%lu "
		"fup=%lu retc=%lu mtc=%lu cyc=%lu ptw=%lu ovf=%lu\n",
		out.insns, sec, out.insns / sec, c->total, c->n.psb, c->n.tnt, c->n.tip, c->n.pge, c->n.pgd,
		c->n.fup, c->n.retc, c->n.mtc, c->n.cyc, c->n.ptw, c->n.ovf);
}

int main(int argc, char **argv)
{
	struct timespec a, b;
	int code;
	pid_t pid;

	parse(argc, argv);
	if (mkdir(opt.out, 0755) < 0 && errno != EEXIST)
		fail("%s", opt.out);
	out.pt = create("pt.bin");
	out.ips = create("ips");
	out.mem = create("mem");
	out.images = create("images");
	one_processor();
	pid = tracee_seize(argv + optind, opt.setenvs, opt.nsetenvs, SIM_OPTIONS);
	opt.cpu.ptw = true;
	opt.cpu.fup_on_ptw = true;
	pt_cpu_init(&out.cpu, &opt.cpu, put, NULL, 1000000007);
	sim_retired = retired;
	sim_page = code_page;
	clock_gettime(CLOCK_MONOTONIC, &a);
	code = sim_run(pid);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (opt.verbose)
		figures((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9);
	if (fclose(out.pt) | fclose(out.ips) | fclose(out.mem) | fclose(out.images))
		fail("%s", opt.out);
	return code;
}
