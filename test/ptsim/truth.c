/* SPDX-License-Identifier: MIT
 *
 * truth.c - what threads with an event really executed, next to where their streams can be entered
 *
 *	OUT/ips-TID	addresses, one a line, in hex; in front of the one they are about:
 *			"psb OFFSET"	the stream has a PSB at OFFSET, and control is here or comes here from the kernel
 *			"ovf"		an overflow has resolved here, or where the thread ended
 *			both, in the stream's order: who enters at a PSB behind an OVF does not see the OVF
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

static void places(struct event *e)
{
	bool psb = e->seen_psb != e->cpu.n.psb, ovf = e->seen_ovf != e->cpu.n.ovf;

	if (ovf && (!psb || e->cpu.ovf_at < e->cpu.psb_at))
		fprintf(e->truth, "ovf\n");
	if (psb)
		fprintf(e->truth, "psb %lu\n", e->cpu.psb_at - e->cut);
	if (ovf && psb && e->cpu.ovf_at > e->cpu.psb_at)
		fprintf(e->truth, "ovf\n");
	e->seen_psb = e->cpu.n.psb;
	e->seen_ovf = e->cpu.n.ovf;
}

void truth_retired(struct task *t, uint64_t ip)
{
	struct event *e = t->event;

	if (!dir || !e)
		return;
	if (!e->truth) {
		char name[32];

		snprintf(name, sizeof(name), "ips-%d", t->pid);
		e->truth = create(name);
	}
	places(e);
	fprintf(e->truth, "%lx\n", ip);
}

void truth_ends(struct event *e)
{
	if (e->truth)
		places(e);
}

void truth_close(void)
{
	fflush(NULL);
}
