/* SPDX-License-Identifier: MIT
 *
 * fuzz_pt.c - an Intel PT stream and code, through what --pt-raw does and through the flow of a run
 *
 *   byte 0      bit 0: as --pt-raw; else as pt-0.bin of a run, with a copy that is asked about
 *               bit 1: with a start address, in the code; bits 2-4: so many cuts into records, every other one a gap
 *               bit 5: records are said to be compressed, bit 6: by zstd
 *   byte 1, 2   bytes of code, little endian, then the code; it is at CODE, and at CODE + 64 KiB once more
 *   the rest    packets
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include "../../decoder/flow.h"
#include "../../decoder/pt.h"
#include "fuzz.h"

#define CODE 0x401000ull
#define AGAIN (CODE + 0x10000)
#define MAX_CODE 4096

struct input {
	uint8_t flags;
	const uint8_t *code, *pt;
	size_t ncode, npt;
};

static bool known(void *ctx, uint64_t ip)
{
	uint8_t b;

	return ptimg_read(ctx, ip, &b, 1) != 0;
}

static void raw(const struct input *in)
{
	struct ptimg *g = ptimg_new();
	struct ptinsn *insn = ptinsn_new(g);
	uint8_t *buf = calloc(1, PTD_HEAD + in->npt);
	uint64_t last = 0, next, starts = 0;
	struct ptrace_error e = {0};
	struct ptd_item it;
	struct pt_config c;
	struct ptd d;

	if (!buf)
		abort();
	if (in->npt)
		memcpy(buf + PTD_HEAD, in->pt, in->npt);
	pt_config_init(&c);
	c.cpu = (struct pt_cpu){pcv_intel, 6, 142, 10};
	pt_cpu_errata(&c.errata, &c.cpu);
	if (ptimg_add(g, CODE, in->code, in->ncode, NULL, 0, &e) ||
	    ptimg_add(g, AGAIN, in->code, in->ncode, NULL, 0, &e))
		abort();
	if (ptd_open(&d, &c, buf, in->npt, ptimg_build(g, &e), known, g, in->flags & 2 ? CODE : 0, &e))
		abort();
	for (ptd_next(&d, &it); it.kind != PTD_END; ptd_next(&d, &it)) {
		if (it.kind == PTD_BLOCK) {
			if (!it.block.ninsn)
				abort();
			if (it.block.ninsn < 100)
				for (uint64_t ip = it.block.ip, i = 1; i < it.block.ninsn; i++, ip = next)
					if (!ptinsn_next(insn, ip, it.block.mode, &next))
						break;
		} else if (it.kind == PTD_LOST) {
			/* every loss is behind the last one, or there is no end */
			if (it.lost.offset < last || (it.lost.offset == last && d.starts == starts && starts))
				abort();
			last = it.lost.offset;
			starts = d.starts;
		}
	}
	ptd_close(&d);
	ptinsn_free(insn);
	ptimg_free(g);
	free(buf);
}

static void record(FILE *f, uint32_t kind, uint32_t flags, const void *p, uint32_t n)
{
	struct run_pt_rec r = {
		.magic = RUN_PT_REC_MAGIC, .kind = (uint16_t)kind, .flags = (uint16_t)flags, .size = n};

	if (flags & (RUN_PT_F_LZ4 | RUN_PT_F_ZSTD))
		r.raw = 4 * n + 1;

	r.xxh3 = XXH3_64bits(&r, offsetof(struct run_pt_rec, xxh3)) ^ (n ? XXH3_64bits(p, n) : 0);
	fwrite(&r, sizeof(r), 1, f);
	if (n)
		fwrite(p, 1, n, f);
}

static void put_file(const struct input *in, const char *to)
{
	struct run_pt_info i = {.magic = RUN_PT_MAGIC,
				.version = RUN_PT_VERSION,
				.size = sizeof(i),
				.family = 6,
				.model = 142,
				.counter = in->flags & 0x80 ? RUN_PT_PTWRITE : RUN_PT_BRANCHES,
				.counter_stride = 8,
				.counter_branch = CODE + 64,
				.counter_ptw = CODE + 64};
	uint32_t cuts = in->flags >> 2 & 7, packed = 0;
	char path[64];
	size_t at = 0;
	FILE *f;

	i.xxh3 = XXH3_64bits(&i, offsetof(struct run_pt_info, xxh3));
	snprintf(path, sizeof(path), "%s/pt-0.bin", to);
	f = fopen(path, "wb");
	if (!f)
		abort();
	fwrite(&i, sizeof(i), 1, f);
	if (in->flags & 0x20)
		packed = in->flags & 0x40 ? RUN_PT_F_ZSTD : RUN_PT_F_LZ4;
	for (uint32_t k = 0; k <= cuts; k++) {
		size_t n = k == cuts ? in->npt - at : in->npt / (cuts + 1);

		record(f, RUN_PT_DATA, (k & 1 ? RUN_PT_GAP : 0) | packed, in->pt + at, (uint32_t)n);
		at += n;
	}
	record(f, RUN_PT_END, 0, NULL, 0);
	fclose(f);
}

/* all jumps and returns by their first byte, whether instructions begin there or not */
static uint32_t put_ops(const struct input *in, struct sem_op *op)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < in->ncode; i++)
		if ((in->code[i] & 0xf0) == 0x70 || in->code[i] == 0xff || in->code[i] == 0xc3 ||
		    in->code[i] == 0x0f)
			op[n++] = (struct sem_op){.op = SEM_FLOW, .a = (uint16_t)i};
	return n;
}

static void note(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

static void walk(const struct input *in, struct flow *f)
{
	uint64_t next, ip = CODE, asked = 0;
	uint32_t counter = 0;
	int rc;

	/* what is asked next is known to nobody here: a wrong question tells where it is */
	while (asked++ < 8 * in->npt + 100) {
		rc = f->ops->branch(f, ip, &next);
		if (rc == FLOW_END)
			break;
		if (rc == FLOW_LOST) {
			const char *at = strstr(f->why, "the processor was at 0x");

			if (!f->why[0] || f->ops->branch(f, ip, &next) != FLOW_LOST)
				abort();
			if (at)
				ip = strtoull(at + 23, NULL, 16);
			if (f->ops->resync(f, &counter) != FLOW_OK)
				break;
		} else {
			f->ops->stops(f, next, next & 1);
			f->ops->stops(f, CODE + (next & 63), false);
		}
	}
	if (f->ops->resync(f, &counter) == FLOW_OK && asked < 8 * in->npt)
		abort(); /* behind the end */
}

static char dir[] = "/tmp/fuzz_pt.XXXXXX";

static void clean(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/pt-0.bin", dir);
	unlink(path);
	rmdir(dir);
}

static void run(const struct input *in)
{
	static struct sem_op op[MAX_CODE];
	static bool made;
	struct map_head h = {0};
	struct map map = {.path = (char *)"map",
			  .base = in->code,
			  .size = in->ncode,
			  .head = &h,
			  .op = op,
			  .nop = put_ops(in, op)};
	struct ptrace_run r = {.dir = dir, .note = note};
	struct modrec m = {.m = {.kind = 1, .copy_base = CODE, .lo = CODE, .hi = AGAIN, .key_len = 1},
			   .path = (char *)"x",
			   .map = &map};
	struct proc p = {.run = &r, .dir = dir, .mod = &m, .nmod = 1};
	struct thread t = {.proc = &p};
	struct ptrace_error e = {0};
	struct flow *f;

	if (!made && (!mkdtemp(dir) || atexit(clean)))
		abort();
	made = true;
	for (int s = 0; s < MAP_NSECTIONS; s++)
		h.sect[s] = (struct map_sect){0, 0, XXH3_64bits(in->code, 0)};
	h.sect[MAP_COPY] = (struct map_sect){0, in->ncode, XXH3_64bits(in->code, in->ncode)};
	put_file(in, dir);
	f = flow_open_pt(&t, &e);
	if (!f && !e.text[0])
		abort();
	if (f) {
		walk(in, f);
		f->ops->close(f);
	}
	ptcode_free(r.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in;

	if (size < 4)
		return 0;
	in.flags = data[0];
	in.ncode = data[1] | data[2] << 8;
	if (in.ncode > size - 3)
		in.ncode = size - 3;
	if (in.ncode > MAX_CODE)
		in.ncode = MAX_CODE;
	if (!in.ncode)
		return 0;
	in.code = data + 3;
	in.pt = in.code + in.ncode;
	in.npt = size - 3 - in.ncode;
	if (in.flags & 1)
		raw(&in);
	else
		run(&in);
	return 0;
}
