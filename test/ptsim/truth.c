/* SPDX-License-Identifier: MIT
 *
 * truth.c - what threads with an event really executed, next to where their streams can be entered
 *
 *	OUT/ips-TID	addresses, one a line, in hex; in front of the one they are about:
 *			"psb OFFSET"	the stream has a PSB at OFFSET, and control is here or comes here from the kernel
 *			"ovf"		an overflow has resolved here
 *	OUT/mem, images	the code, as alone.c writes them (of one process: they have no numbers)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "kern.h"

static const char *dir;
static FILE *mem, *images;
static uint64_t at;

static FILE *create(const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		fail("%s", path);
	return f;
}

static void code_page(uint64_t addr, const uint8_t *bytes, size_t n)
{
	fwrite(bytes, 1, n, mem);
	fprintf(images, "%s/mem@0x%lx:0x%lx:0x%zx\n", dir, addr, at, n);
	at += n;
}

void truth_open(const char *name)
{
	dir = name;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		fail("%s", dir);
	mem = create("mem");
	images = create("images");
	sim_page = code_page;
}

void truth_retired(struct task *t, uint64_t ip)
{
	struct event *e = t->event;
	FILE *f;

	if (!dir || !e)
		return;
	if (!e->truth) {
		char name[32];

		snprintf(name, sizeof(name), "ips-%d", t->pid);
		e->truth = create(name);
	}
	f = e->truth;
	if (e->seen_psb != e->cpu.n.psb)
		fprintf(f, "psb %lu\n", e->cpu.psb_at - e->cut);
	if (e->seen_ovf != e->cpu.n.ovf)
		fprintf(f, "ovf\n");
	e->seen_psb = e->cpu.n.psb;
	e->seen_ovf = e->cpu.n.ovf;
	fprintf(f, "%lx\n", ip);
}

void truth_close(void)
{
	fflush(NULL);
}
