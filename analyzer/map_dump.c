/* SPDX-License-Identifier: MIT
 *
 * map_dump.c - the copy text and the patches of a map, for people and for golden tests
 *
 * One line an instruction of the copy: its offset, the original address the address map gives
 * for it with the register state there (+N: N bytes stored from the log pointer on; ^N: the last N of
 * them by the instruction that is next), the disassembly. Fix-ups are shown by their target, what the
 * decoder asks the processor's trace about (SEM_FLOW, SEM_JCC_FLOW, SEM_PTW) with a question mark.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "emit.h"

struct dump {
	uint8_t *file;
	const struct map_head *h;
	const struct map_xlat *x;
	const struct map_fixup *fix;
	const struct map_block *blk;
	uint32_t nx, nfix, nblk;
	uint32_t *ask; /* copy offsets, ascending */
	uint32_t nask, ai;
};

static const void *sect(const struct dump *d, int s, size_t size, uint32_t *n)
{
	*n = d->h->sect[s].size / size;
	return d->file + d->h->sect[s].off;
}

static const char *reg(unsigned r)
{
	static const char *const name[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					     "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

	return r < 16 ? name[r] : "-";
}

static void put_state(const struct map_xlat *x)
{
	char s[96], n[24] = "", a[24] = "";

	if (x->off)
		snprintf(n, sizeof(n), "+%u ", x->off);
	if (x->ahead)
		snprintf(a, sizeof(a), "^%u ", x->ahead);
	snprintf(s, sizeof(s), "%s%s%s%s%s%s%s%s%s%s%s", n, a, x->flags & MAP_X_R15_REAL ? "real " : "",
		 x->flags & MAP_X_STUB ? "stub " : "", x->flags & MAP_X_FLAGS_SAVED ? "flags " : "",
		 x->r15_reg != 0xff ? "r15=" : "", x->r15_reg != 0xff ? reg(x->r15_reg) : "",
		 x->spill[0] != 0xff ? " s0=" : "", x->spill[0] != 0xff ? reg(x->spill[0]) : "",
		 x->spill[1] != 0xff ? " s1=" : "", x->spill[1] != 0xff ? reg(x->spill[1]) : "");
	printf(" %8x  %-18s", x->vaddr, s);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void find_asked(struct dump *d)
{
	uint32_t n;
	const struct sem_op *o = sect(d, MAP_OPS, sizeof(*o), &n);

	d->ask = malloc((n + 1) * sizeof(*d->ask));
	if (!d->ask)
		abort();
	for (uint32_t i = 0; i < n; i++) /* the second slots of ops are SEM_END */
		if (o[i].op == SEM_FLOW || o[i].op == SEM_JCC_FLOW || o[i].op == SEM_PTW ||
		    o[i].op == SEM_PTWSX)
			d->ask[d->nask++] = SEM_FLOW_AT(o[i].a, o[i].b);
	qsort(d->ask, d->nask, sizeof(*d->ask), by_number);
}

/* is it asked about the instruction at off? What is asked about within an instruction shows, too. */
static const char *asked(struct dump *d, uint32_t off)
{
	const char *s = "";

	while (d->ai < d->nask && d->ask[d->ai] <= off) {
		s = d->ask[d->ai] == off ? "  ?" : "  ? (not here)";
		d->ai++;
	}
	return s;
}

static void line(struct dump *d, const ZydisFormatter *f, const ZydisDecodedInstruction *in,
		 const ZydisDecodedOperand *op, uint32_t off, uint32_t *fi)
{
	const uint8_t *copy = d->file + d->h->sect[MAP_COPY].off;
	char text[128];

	ZydisFormatterFormatInstruction(f, in, op, in->operand_count_visible, text, sizeof(text), off, NULL);
	printf("%s", text);
	while (*fi < d->nfix && d->fix[*fi].copy_off < off + in->length) {
		const struct map_fixup *x = &d->fix[(*fi)++];
		int32_t v;

		if (x->copy_off < off)
			continue;
		memcpy(&v, copy + x->copy_off, 4);
		if (x->kind == MAP_FIX_MOD32)
			printf("  # module %x", v + off + in->length);
		else if (x->kind == MAP_FIX_LO32 || x->kind == MAP_FIX_HI32)
			printf("  # %s half of module %x", x->kind == MAP_FIX_LO32 ? "low" : "high", v);
		else if (x->kind == MAP_FIX_MARK)
			printf("  # mark %d site %d", v & 7, v >> 3);
	}
	printf("%s\n", asked(d, off));
}

static int by_copy(const void *a, const void *b)
{
	const struct map_block *x = a, *y = b;

	return x->copy_off < y->copy_off ? -1 : x->copy_off > y->copy_off;
}

static void copy_text(struct dump *d)
{
	const uint8_t *copy = d->file + d->h->sect[MAP_COPY].off;
	uint32_t n = d->h->sect[MAP_COPY].size, xi = 0, fi = 0, bi = 0;
	struct map_block *blk = malloc((d->nblk + 1) * sizeof(*blk));
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisFormatter f;
	ZydisDecoder z;

	if (!blk)
		abort();
	memcpy(blk, d->blk, d->nblk * sizeof(*blk));
	qsort(blk, d->nblk, sizeof(*blk), by_copy);
	ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterSetProperty(&f, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_FALSE);
	for (uint32_t off = 0; off < n; off += in.length) {
		while (xi + 1 < d->nx && d->x[xi + 1].copy_off <= off)
			xi++;
		for (; bi < d->nblk && blk[bi].copy_off <= off; bi++)
			printf("\nblock %x\n", blk[bi].vaddr);
		printf("%6x", off);
		if (d->nx && d->x[xi].copy_off <= off)
			put_state(&d->x[xi]);
		if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&z, copy + off, n - off, &in, op))) {
			line(d, &f, &in, op, off, &fi);
		} else {
			in.length = 1;
			printf(".byte %02x\n", copy[off]);
		}
	}
	free(blk);
}

static void patches(const struct dump *d)
{
	static const char *const kind[] = {"jmp", "jmp8", "call", "int3", "near"};
	uint32_t n;
	const struct map_patch *p = sect(d, MAP_PATCHES, sizeof(*p), &n);

	printf("\npatches\n");
	for (uint32_t i = 0; i < n; i++)
		printf("%8x %-4s %x\n", p[i].vaddr,
		       MAP_PATCH_KIND(p[i].kind) < 5 ? kind[MAP_PATCH_KIND(p[i].kind)] : "?", p[i].arg);
}

int map_dump(const char *path)
{
	struct dump d = {0};
	FILE *f = fopen(path, "rb");
	long n;

	if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < (long)sizeof(*d.h) || fseek(f, 0, SEEK_SET) ||
	    !(d.file = malloc(n)) || fread(d.file, 1, n, f) != (size_t)n) {
		fprintf(stderr, "ptrace-analyze: cannot read %s\n", path);
		if (f)
			fclose(f);
		free(d.file);
		return -1;
	}
	fclose(f);
	d.h = (const struct map_head *)d.file;
	if (d.h->magic != MAP_MAGIC || d.h->version != MAP_VERSION) {
		fprintf(stderr, "ptrace-analyze: %s is not a map of this version\n", path);
		free(d.file);
		return -1;
	}
	d.x = sect(&d, MAP_XLAT, sizeof(*d.x), &d.nx);
	d.fix = sect(&d, MAP_FIXUPS, sizeof(*d.fix), &d.nfix);
	d.blk = sect(&d, MAP_BLOCKS, sizeof(*d.blk), &d.nblk);
	find_asked(&d);
	copy_text(&d);
	patches(&d);
	free(d.ask);
	free(d.file);
	return 0;
}
