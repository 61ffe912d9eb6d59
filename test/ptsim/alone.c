/* SPDX-License-Identifier: MIT
 *
 * alone.c - one program: the packets of its first thread, and what it really executed, in files
 *
 *	OUT/pt.bin	the packets
 *	OUT/ips		every executed instruction's address, one a line, in hex
 *	OUT/mem		the executed code, page by page
 *	OUT/images	a line FILE@ADDR:OFFSET:SIZE for each page, as ptrace-decode --image takes it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "alone.h"

static struct {
	const char *dir;
	uint64_t max;
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

	snprintf(path, sizeof(path), "%s/%s", out.dir, name);
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
	fprintf(out.images, "%s/mem@0x%lx:0x%lx:0x%zx\n", out.dir, addr, out.at, n);
	out.at += n;
}

static void end(void)
{
	if (out.done || !out.task)
		return;
	out.done = true;
	pt_cpu_off(&out.cpu, out.task->regs.rip);
}

static void task_call(struct task *t, bool begins)
{
	if (!begins || t != out.task)
		return;
	pt_cpu_tick(&out.cpu, 300); /* what the kernel takes */
	if (out.max && out.insns >= out.max) {
		end();
		t->cpu = NULL;
		out.task = NULL;
	}
}

static void task_exec(struct task *t, struct task *by)
{
	(void)by;
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

static void task_exit(struct task *t)
{
	if (t == out.task)
		end();
}

static void task_gone(struct task *t)
{
	if (t != out.task)
		return;
	end();
	out.task = NULL;
}

static void task_user(struct task *t)
{
	(void)t;
}

static void pmi(struct task *t, uint64_t ip)
{
	(void)ip;
	t->pmi = false;
}

static const struct sim_hooks hooks = {task_call, task_user, task_exec, task_exit, task_gone, pmi};

void alone_open(const char *dir, const struct pt_cpu_config *cpu, uint64_t max)
{
	out.dir = dir;
	out.max = max;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		fail("%s", dir);
	out.pt = create("pt.bin");
	out.ips = create("ips");
	out.mem = create("mem");
	out.images = create("images");
	pt_cpu_init(&out.cpu, cpu, put, NULL, 1000000007);
	sim_retired = retired;
	sim_page = code_page;
	sim_hooks = &hooks;
}

void alone_close(void)
{
	if (fclose(out.pt) | fclose(out.ips) | fclose(out.mem) | fclose(out.images))
		fail("%s", out.dir);
}

void alone_figures(double sec)
{
	const struct pt_cpu *c = &out.cpu;

	fprintf(stderr,
		"ptsim: verified=%lu\nptsim: %lu instructions, %.2f s, %.0f a second; %lu bytes: psb=%lu "
		"tnt=%lu tip=%lu pge=%lu "
		"pgd=%lu "
		"fup=%lu retc=%lu mtc=%lu cyc=%lu ptw=%lu ovf=%lu\n",
		sim_verified, out.insns, sec, out.insns / sec, c->total, c->n.psb, c->n.tnt, c->n.tip,
		c->n.pge, c->n.pgd, c->n.fup, c->n.retc, c->n.mtc, c->n.cyc, c->n.ptw, c->n.ovf);
}
