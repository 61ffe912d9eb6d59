/* SPDX-License-Identifier: MIT
 *
 * unit_flow.c - control flow from Intel PT (decoder/flow_pt.c): hand-made modules and packets
 *
 * Three modules: one with a copy, in whose code three jumps are asked about; the "runtime" with the counter code; one
 * that is loaded where another was. Packets are made by libipt's encoder.
 *
 *   copy    0 test            original   entry: patched to jump to the copy
 *           2 je 7    asked              opaque: nop, je over a nop, ret
 *           4 nop ×3
 *           7 call *rcx (opaque)
 *           9 jne 0   asked
 *          11 call *rdx (counter code)
 *          13 jmp *rax asked
 *          15 syscall
 *          17 call opaque (a fix-up)
 *          22 jmp 0
 *          24 ptwrite eax  asked
 *          28 je 30        asked
 *          30 ptwrite rcx  asked
 *          35 ptwrite eax
 *          39 jmp 0
 */
#include <elf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <lz4.h>
#include <xxhash.h>
#include <zstd.h>
#include "flow.h"
#include "pt.h"

#define BIAS 0x10000000ull
#define COPY 0x20000000ull
#define RT 0x30000000ull
#define ENTRY (BIAS + 0x1000)
#define OPAQUE (BIAS + 0x1100)
#define COUNTER (RT + 0x1000)
#define PTW (RT + 0x1200)
#define JE (COPY + 2)
#define JNE (COPY + 9)
#define JMP (COPY + 13)
#define VAL4 (COPY + 24)
#define VALJ (COPY + 28)
#define VAL8 (COPY + 30)
#define VALN (COPY + 35)

static int pass, fail;
static char dir[] = "/tmp/unit_flow.XXXXXX";
static uint8_t bytes[1 << 16];
static struct pt_encoder *enc;
static struct map maps[2];

static void check(bool ok, const char *fmt, ...)
{
	va_list ap;

	if (ok) {
		pass++;
		return;
	}
	fail++;
	printf("FAIL: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* ---- modules --------------------------------------------------------------------------------- */

static const uint8_t copy_text[] = {0x85, 0xc0, 0x74, 0x03, 0x90, 0x90, 0x90, 0xff, 0xd1, 0x75, 0xf5,
				    0xff, 0xd2, 0xff, 0xe0, 0x0f, 0x05, 0xe8, 0xea, 0x10, 0,	0,
				    0xeb, 0xe8, 0xf3, 0x0f, 0xae, 0xe0, 0x74, 0x00, 0xf3, 0x48, 0x0f,
				    0xae, 0xe1, 0xf3, 0x0f, 0xae, 0xe0, 0xeb, 0xd7};
static const uint8_t other_copy[] = {0x90, 0x90, 0x75, 0xfc, 0xff, 0xe0}; /* nop nop jne(asked) jmp *rax */
static const uint8_t opaque_text[] = {0x90, 0x74, 0x01, 0x90, 0xc3};

static void file_put(const char *name, const void *p, size_t n)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	if (!f || fwrite(p, 1, n, f) != n || fclose(f))
		exit(2);
}

/* KEY.text: one executable segment, vaddr 0x1000 at file offset 0x1000 */
static void text_put(const char *key, void (*code)(uint8_t *))
{
	static uint8_t b[0x2000];
	Elf64_Ehdr *h = (void *)b;
	Elf64_Phdr *ph = (void *)(b + sizeof(*h));
	char name[100];

	memset(b, 0, sizeof(b));
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_phoff = sizeof(*h);
	h->e_phentsize = sizeof(*ph);
	h->e_phnum = 1;
	*ph = (Elf64_Phdr){.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = 0x1000,
			   .p_vaddr = 0x1000,
			   .p_filesz = 0x1000};
	code(b + 0x1000);
	snprintf(name, sizeof(name), "maps/%s.text", key);
	file_put(name, b, sizeof(b));
}

static void module_code(uint8_t *p)
{
	memcpy(p, "\x55\x48\x89\xe5\x90\x90", 6); /* at the entry: patched over */
	memcpy(p + 0x100, opaque_text, sizeof(opaque_text));
}

static void runtime_code(uint8_t *p)
{
	for (int i = 0; i < 32; i++)
		memcpy(p + 8 * i, "\x72\x04\x90\x90\x90\x90\xd1\xe7", 8); /* jc over; nops; shl */
	p[256] = 0xc3;
	memcpy(p + 0x200, "\xf3\x0f\xae\xe0\xc3", 5); /* ptwrite eax; ret */
}

static void other_code(uint8_t *p)
{
	memset(p, 0x90, 16);
}

static void map_put(struct map *m, const uint8_t *copy, size_t n, const struct sem_op *op, uint32_t nop,
		    const struct map_fixup *fix, uint32_t nfix, const struct map_patch *patch,
		    uint32_t npatch)
{
	uint8_t *b = calloc(1, 4096);
	struct map_head *h = calloc(1, sizeof(*h));
	struct {
		int s;
		const void *p;
		size_t n;
	} part[] = {{MAP_COPY, copy, n},
		    {MAP_FIXUPS, fix, nfix * sizeof(*fix)},
		    {MAP_PATCHES, patch, npatch * sizeof(*patch)}};
	size_t at = 0;

	if (!b || !h)
		exit(2);
	for (size_t i = 0; i < NELEM(part); i++) {
		if (part[i].n)
			memcpy(b + at, part[i].p, part[i].n);
		h->sect[part[i].s] = (struct map_sect){at, part[i].n, XXH3_64bits(b + at, part[i].n)};
		at += (part[i].n + 63) & ~63ull;
	}
	*m = (struct map){.path = (char *)"a map", .base = b, .size = 4096, .head = h, .op = op, .nop = nop};
}

static struct modrec mod(uint32_t index, uint32_t kind, uint8_t key, uint64_t bias, uint64_t copy,
			 struct map *m)
{
	return (struct modrec){.m = {.index = index,
				     .kind = kind,
				     .bias = bias,
				     .copy_base = copy,
				     .lo = bias + 0x1000,
				     .hi = bias + 0x2000,
				     .key = {key},
				     .key_len = 1},
			       .path = (char *)"module",
			       .map = m};
}

/* ---- packets ---------------------------------------------------------------------------------- */

static uint64_t at(void)
{
	uint64_t o = 0;

	pt_enc_get_offset(enc, &o);
	return o;
}

static void put(struct pt_packet p)
{
	if (pt_enc_next(enc, &p) < 0)
		exit(2);
}

static void ip(enum pt_packet_type type, uint64_t v)
{
	put((struct pt_packet){.type = type,
			       .payload.ip = {.ipc = v ? pt_ipc_sext_48 : pt_ipc_suppressed, .ip = v}});
}

static void tnt(const char *s)
{
	struct pt_packet p = {.type = strlen(s) <= 6 ? ppt_tnt_8 : ppt_tnt_64};

	for (; *s; s++, p.payload.tnt.bit_size++)
		p.payload.tnt.payload = p.payload.tnt.payload << 1 | (*s == 'T');
	put(p);
}

static void psb(uint64_t v, uint64_t tsc)
{
	put((struct pt_packet){.type = ppt_psb});
	if (tsc)
		put((struct pt_packet){.type = ppt_tsc, .payload.tsc.tsc = tsc});
	put((struct pt_packet){.type = ppt_mode,
			       .payload.mode = {.leaf = pt_mol_exec, .bits.exec = {.csl = 1}}});
	if (v)
		ip(ppt_fup, v);
	put((struct pt_packet){.type = ppt_psbend});
}

/* call *rdx at 11, the counter, the return: to a call that is in the stream */
static void counter(uint32_t n)
{
	char s[33] = "";

	ip(ppt_tip, COUNTER);
	for (int i = 0; i < 32; i++)
		s[i] = n >> (31 - i) & 1 ? 'T' : 'N';
	tnt(s);
	tnt("T");
}

/* once round: je as told, the opaque function, jne back or not */
static void lap(bool je, bool jne)
{
	tnt(je ? "T" : "N");
	ip(ppt_tip, OPAQUE);
	tnt(jne ? "NTT" : "TTN");
}

/* ---- the run ------------------------------------------------------------------------------------ */

static struct ptrace_run run = {.dir = dir};
static struct modrec mods[4];
static struct proc proc = {.run = &run, .dir = dir, .pid = 1, .mod = mods};
static struct thread thread = {.proc = &proc};
static FILE *pt;
static uint64_t from; /* of the packets, not written yet */

static void note(void *ctx, const char *line)
{
	(void)ctx;
	printf("note: %s\n", line);
}

static int codec; /* of records with packets: 0 none, 1 LZ4, 2 zstd */

static void record(uint32_t kind, uint32_t flags, uint64_t value, const void *p, uint32_t n)
{
	struct run_pt_rec r = {.magic = RUN_PT_REC_MAGIC,
			       .kind = (uint16_t)kind,
			       .flags = (uint16_t)flags,
			       .size = n,
			       .value = value};
	static char z[70000];

	if (kind == RUN_PT_DATA && n && codec) {
		r.raw = n;
		r.flags |= codec == 1 ? RUN_PT_F_LZ4 : RUN_PT_F_ZSTD;
		n = codec == 1 ? (uint32_t)LZ4_compress_default(p, z, (int)n, sizeof(z))
			       : (uint32_t)ZSTD_compress(z, sizeof(z), p, n, 1);
		r.size = n;
		p = z;
	}

	r.xxh3 = XXH3_64bits(&r, offsetof(struct run_pt_rec, xxh3)) ^ (n ? XXH3_64bits(p, n) : 0);
	fwrite(&r, sizeof(r), 1, pt);
	if (n)
		fwrite(p, 1, n, pt);
}

static uint32_t in_stream = RUN_PT_RETC;

static void begin(uint8_t how)
{
	struct run_pt_info i = {.magic = RUN_PT_MAGIC,
				.version = RUN_PT_VERSION,
				.size = sizeof(i),
				.vendor = "GenuineInte", /* and an l */
				.family = 6,
				.model = 142,
				.stepping = 10,
				.flags = in_stream,
				.counter = how,
				.counter_stride = 8,
				.counter_branch = COUNTER,
				.counter_ptw = PTW};
	char path[300];

	i.vendor[11] = 'l';
	i.xxh3 = XXH3_64bits(&i, offsetof(struct run_pt_info, xxh3));
	snprintf(path, sizeof(path), "%s/pt-0.bin", dir);
	pt = fopen(path, "wb");
	if (!pt)
		exit(2);
	fwrite(&i, sizeof(i), 1, pt);
	pt_enc_sync_set(enc, 0);
	from = 0;
}

/* what was encoded since the last record becomes one */
static void data(uint32_t flags)
{
	record(RUN_PT_DATA, flags, 0, bytes + from, (uint32_t)(at() - from));
	from = at();
}

static struct flow *opened(void)
{
	struct ptrace_error e = {0};
	struct flow *f;

	data(0);
	record(RUN_PT_END, 0, RUN_PT_END_THREAD, NULL, 0);
	fclose(pt);
	f = flow_open_pt(&thread, &e);
	if (!f) {
		printf("FAIL: %s\n", e.text);
		exit(1);
	}
	for (uint32_t i = 0; i < 2; i++)
		f->ops->module(f, &mods[i]);
	return f;
}

static void told(struct flow *f, int (*ask)(struct flow *f, uint64_t ip, uint64_t *v), const char *did,
		 uint64_t where, uint64_t want, int line)
{
	uint64_t v = 0;
	int rc = ask(f, where, &v);

	check(!rc && v == want, "line %d: 0x%llx %s 0x%llx, not 0x%llx (%d %s)", line,
	      (unsigned long long)where, did, (unsigned long long)v, (unsigned long long)want, rc,
	      rc ? f->why : "");
}
#define WENT(f, where, to) told(f, (f)->ops->branch, "went to", where, to, __LINE__)
#define VALUE(f, where, want) told(f, (f)->ops->value, "gave", where, want, __LINE__)

static void ends(struct flow *f, uint64_t where, int want, const char *why, int line)
{
	uint64_t next;
	int rc = f->ops->branch(f, where, &next);

	check(rc == want && strstr(f->why, why), "line %d: %d \"%s\", not %d \"%s\"", line, rc,
	      rc ? f->why : "", want, why);
}
#define ENDS(f, where, want, why) ends(f, where, want, why, __LINE__)

static void resync_to(struct flow *f, uint32_t want, int line)
{
	uint32_t n = 0;
	int rc = f->ops->resync(f, &n);

	check(!rc && n == want && f->counter == want, "line %d: resync %d, counter %u, not %u", line, rc, n,
	      want);
}
#define RESYNC(f, n) resync_to(f, n, __LINE__)

/* ---- cases ---------------------------------------------------------------------------------------- */

static void branches(void)
{
	struct flow *f;

	begin(RUN_PT_BRANCHES);
	psb(ENTRY, 1000); /* the patch leads to the copy */
	lap(true, true);
	lap(false, false);
	data(0); /* records cut the stream anywhere */
	counter(0x80000005);
	ip(ppt_tip, COPY + 15);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, COPY + 17);
	tnt("TT"); /* opaque, by a call that the fix-up makes; the je; back */
	psb(COPY, 2000);
	lap(true, false);
	f = opened();
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	check(f->counter == 0 && f->tsc == 0, /* they may have waited for their packet */
	      "counter %u, time %llu", f->counter, (unsigned long long)f->tsc);
	WENT(f, JE, COPY + 4);
	WENT(f, JNE, COPY + 11);
	check(f->counter == 0, "counter %u too early", f->counter);
	WENT(f, JMP, COPY + 15);
	check(f->counter == 0x80000005, "counter %x", f->counter);
	WENT(f, JE, COPY + 7);
	check(f->tsc == 1000, "time %llu", (unsigned long long)f->tsc);
	WENT(f, JNE, COPY + 11);
	ENDS(f, JMP, FLOW_END, "ends here");
	f->ops->close(f);
}

static void tsx(bool in, bool aborted, uint64_t v)
{
	put((struct pt_packet){
		.type = ppt_mode,
		.payload.mode = {.leaf = pt_mol_tsx, .bits.tsx = {.intx = in, .abrt = aborted}}});
	ip(ppt_fup, v);
}

/* What an aborted transaction executed is not told, nor that it jumped; a jump right before one, and what
 * one that committed executed, is. A signal ends one: it comes at the fallback. */
static void transactions(void)
{
	struct flow *f;

	begin(RUN_PT_BRANCHES);
	psb(COPY, 0);
	lap(true, true);
	tsx(true, false, COPY);
	lap(false, true);
	tnt("T");
	tsx(false, true, COPY + 7);
	ip(ppt_tip, COPY);
	lap(true, true);
	tsx(true, false, COPY);
	lap(false, true);
	lap(true, true);
	tsx(false, false, COPY);
	lap(false, false);
	counter(1);
	ip(ppt_tip, COPY);
	tsx(true, false, COPY);
	lap(true, true);
	tsx(false, true, COPY);
	ip(ppt_tip, COPY + 9);
	ip(ppt_fup, COPY + 9);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, ENTRY);
	lap(true, true);
	tsx(true, false, COPY);
	lap(true, true);
	f = opened();
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	check(!f->ops->stops(f, COPY + 7, false), "an abort is no signal");
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	check(!f->ops->stops(f, COPY, false), "nor is a commit");
	WENT(f, JE, COPY + 4);
	WENT(f, JNE, COPY);
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	WENT(f, JE, COPY + 4);
	WENT(f, JNE, COPY + 11);
	WENT(f, JMP, COPY);
	check(f->ops->stops(f, COPY + 9, false), "a signal came at the fallback");
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	ENDS(f, JE, FLOW_END, "ends here"); /* nobody knows whether it committed */
	f->ops->close(f);
}

static void ptwrite(void)
{
	struct flow *f;

	begin(RUN_PT_PTWRITE);
	psb(COPY, 0);
	lap(true, false);
	ip(ppt_tip, PTW);
	put((struct pt_packet){.type = ppt_ptw, .payload.ptw = {.payload = 7, .plc = 0, .ip = 1}});
	ip(ppt_fup, PTW);
	tnt("T");
	ip(ppt_tip, COPY);
	lap(true, false);
	f = opened();
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY + 11);
	WENT(f, JMP, COPY);
	check(f->counter == 7, "counter %u", f->counter);
	WENT(f, JE, COPY + 7);
	f->ops->close(f);
}

static void ptw(uint64_t where, uint64_t v, bool eight)
{
	put((struct pt_packet){.type = ppt_ptw, .payload.ptw = {.payload = v, .plc = eight, .ip = 1}});
	ip(ppt_fup, where);
}

static void counter_ptw(uint32_t n)
{
	ip(ppt_tip, PTW);
	ptw(PTW, n, false);
	tnt("T");
}

static void handled(uint64_t where)
{
	ip(ppt_fup, where);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, OPAQUE);
	tnt("N");
	ip(ppt_tip, COPY + 15);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, where);
}

/* values of ptwrites, by their place */
static void values(void)
{
	struct flow *f;
	uint64_t v;

	begin(RUN_PT_PTWRITE);
	psb(VAL4, 0);
	ptw(VAL4, 5, false);
	tnt("T"); /* to a ptwrite at once */
	ptw(VAL8, 0x1122334455667788, true);
	ptw(VALN, 6, false);
	lap(true, false);
	counter_ptw(1);
	ip(ppt_tip, VAL4);
	handled(VAL4); /* interrupted before a value, between two, and behind */
	ptw(VAL4, 7, false);
	tnt("N");
	handled(VAL8);
	ptw(VAL8, 8, true);
	handled(VALN);
	ptw(VALN, 9, false);
	lap(true, true);
	f = opened();
	check(!f->ops->stops(f, VALJ, false), "interrupted before a value");
	VALUE(f, VAL4, 5);
	WENT(f, VALJ, VAL8);
	VALUE(f, VAL8, 0x1122334455667788);
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY + 11);
	WENT(f, JMP, VAL4);
	check(f->ops->stops(f, VAL4, false), "not interrupted before the first value");
	check(!f->ops->stops(f, VAL8, false), "interrupted behind a value that is not asked for yet");
	VALUE(f, VAL4, 7);
	check(f->counter == 1, "counter %u", f->counter);
	WENT(f, VALJ, VAL8);
	check(!f->ops->stops(f, VALN, false), "interrupted behind the second value before it");
	check(f->ops->stops(f, VAL8, false), "not interrupted before the second value");
	VALUE(f, VAL8, 8);
	check(f->ops->stops(f, VALN, false), "not interrupted behind the second value");
	WENT(f, JE, COPY + 7);
	f->ops->close(f);

	/* the wrong question; a loss */
	begin(RUN_PT_PTWRITE);
	psb(VAL4, 0);
	ptw(VAL4, 5, false);
	tnt("T");
	ptw(VAL8, 6, true);
	lap(true, false);
	counter_ptw(1);
	ip(ppt_tip, VAL4);
	ptw(VAL4, 7, false);
	put((struct pt_packet){.type = ppt_ovf});
	ip(ppt_fup, VALN);
	lap(true, false);
	counter_ptw(2);
	ip(ppt_tip, VAL4);
	tnt("T"); /* a value is missing, and nothing tells */
	ptw(VAL8, 10, true);
	lap(true, false);
	counter_ptw(3);
	ip(ppt_tip, VAL4);
	ptw(VAL4, 11, false);
	f = opened();
	check(f->ops->value(f, VAL8, &v) == FLOW_LOST && strstr(f->why, "the walk is at 0x2000001e"), "%s",
	      f->why);
	RESYNC(f, 1);
	WENT(f, JMP, VAL4);
	VALUE(f, VAL4, 7);
	ENDS(f, VALJ, FLOW_LOST, "OVF");
	RESYNC(f, 2);
	WENT(f, JMP, VAL4);
	check(f->ops->value(f, VAL4, &v) == FLOW_LOST && strstr(f->why, "the processor was at 0x2000001c"),
	      "%s", f->why);
	RESYNC(f, 3);
	WENT(f, JMP, VAL4);
	ENDS(f, VAL4, FLOW_LOST, "the walk is at"); /* it is no jump */
	f->ops->close(f);
}

static void signals(void)
{
	struct flow *f;

	begin(RUN_PT_BRANCHES);
	psb(COPY, 0);
	tnt("T");
	ip(ppt_fup,
	   COPY + 7); /* at the je's target: a page fault first, then a signal, handled in opaque code */
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, COPY + 7);
	ip(ppt_fup, COPY + 7);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, OPAQUE);
	tnt("N");
	ip(ppt_fup, OPAQUE + 3); /* … which a second one interrupts */
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, COPY + 15); /* the handler: a system call */
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, OPAQUE + 3);
	ip(ppt_tip, COPY + 15);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, COPY + 7); /* back */
	ip(ppt_tip, OPAQUE);
	tnt("TTN");
	counter(1);
	ip(ppt_tip, COPY + 15);
	ip(ppt_tip_pgd, 0); /* the system call is interrupted by a signal: its handler is in traced code */
	ip(ppt_tip_pge, COPY);
	lap(true, false);
	f = opened();
	check(!f->ops->stops(f, COPY + 7, false), "interrupted before the je");
	WENT(f, JE, COPY + 7);
	check(!f->ops->stops(f, COPY + 9, false), "interrupted at the jne");
	check(!f->ops->stops(f, OPAQUE, false), "interrupted at the handler's first instruction");
	check(f->ops->stops(f, COPY + 7, false), "not interrupted at the call");
	check(!f->ops->stops(f, COPY + 7, false), "interrupted twice at the call");
	check(f->ops->stops(f, OPAQUE + 3, false), "not interrupted in the handler");
	WENT(f, JNE, COPY + 11);
	WENT(f, JMP, COPY + 15);
	check(f->counter == 1, "counter %u", f->counter);
	check(f->ops->stops(f, COPY + 17, false), "not interrupted behind the system call");
	check(f->counter == 1, "counter %u", f->counter);
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY + 11);
	f->ops->close(f);
}

/* rt_sigreturn with one more signal waiting: the second handler begins where the first one's return would have led */
static void waiting(void)
{
	struct flow *f;

	begin(RUN_PT_BRANCHES);
	psb(COPY + 4, 0);
	ip(ppt_fup, COPY + 7);
	ip(ppt_tip_pgd, 0);
	for (int i = 0; i < 2; i++) {
		ip(ppt_tip_pge, OPAQUE);
		tnt("N");
		ip(ppt_tip, COPY + 15);
		ip(ppt_tip_pgd, 0);
	}
	ip(ppt_tip_pge, COPY + 7);
	ip(ppt_tip, OPAQUE);
	tnt("TTN");
	counter(1);
	ip(ppt_tip, COPY + 15);
	f = opened();
	check(f->ops->stops(f, COPY + 7, false), "not interrupted");
	check(!f->ops->stops(f, COPY + 7, false), "interrupted twice, says the packets' place");
	check(!f->ops->more(f), "straight on, with a signal ahead");
	check(f->ops->stops(f, COPY + 7, true), "not interrupted once more as the handler returned");
	check(!f->ops->stops(f, COPY + 7, true), "interrupted a third time");
	WENT(f, JNE, COPY + 11);
	check(f->ops->more(f), "the last jump is not seen");
	WENT(f, JMP, COPY + 15);
	check(!f->ops->more(f), "a jump behind the last one");
	f->ops->close(f);
}

static void losses(void)
{
	struct flow *f;
	uint32_t n;

	begin(RUN_PT_BRANCHES);
	psb(COPY, 1000);
	lap(true, true);
	put((struct pt_packet){.type = ppt_ovf});
	ip(ppt_fup, COPY + 4);
	ip(ppt_tip, OPAQUE);
	tnt("TTN");
	counter(9);
	ip(ppt_tip, COPY);
	lap(false, true);
	lap(true, true); /* the walk will ask wrongly here */
	lap(true, false);
	counter(10);
	ip(ppt_tip, 0x5000); /* code nobody knows */
	tnt("TTT");
	ip(ppt_tip, COPY);
	lap(true, true);
	ip(ppt_fup, COPY); /* tracing is off when the buffer is full */
	ip(ppt_tip_pgd, 0);
	data(RUN_PT_F_TRUNCATED);
	put((struct pt_packet){.type = ppt_tnt_8, .payload.tnt = {.bit_size = 3, .payload = 5}});
	psb(COPY, 3000);
	lap(true, false);
	counter(12);
	ip(ppt_tip, COPY);
	lap(false, true);
	data(RUN_PT_GAP);
	f = opened();
	WENT(f, JE, COPY + 7);
	ENDS(f, JNE, FLOW_LOST, "OVF"); /* libipt does not say where this one went */
	ENDS(f, JNE, FLOW_LOST, "OVF"); /* and so it stays */
	check(!f->ops->stops(f, COPY + 4, false), "interrupted while lost");
	RESYNC(f, 9);
	WENT(f, JMP, COPY);
	WENT(f, JE, COPY + 4);
	ENDS(f, JE, FLOW_LOST, "the walk is at 0x20000002, the processor was at 0x20000009");
	RESYNC(f, 10);
	WENT(f, JMP, 0x5000); /* a jump to anywhere is known */
	ENDS(f, JE, FLOW_LOST, "the code at 0x5000 is in no file");
	RESYNC(f, 12);
	check(f->tsc == 1000, "time %llu at the keyframe", (unsigned long long)f->tsc);
	WENT(f, JMP, COPY);
	check(f->tsc == 1000, "time %llu", (unsigned long long)f->tsc);
	WENT(f, JE, COPY + 4);
	WENT(f, JNE, COPY);
	ENDS(f, JE, FLOW_END, "ends here");
	check(f->ops->resync(f, &n) == FLOW_END, "resync behind the end");
	f->ops->close(f);

	/* the same stream, in sync: a gap is a loss, whatever was before */
	begin(RUN_PT_BRANCHES);
	psb(COPY, 0);
	lap(true, true);
	data(0);
	psb(COPY, 0);
	lap(true, true);
	data(RUN_PT_GAP);
	f = opened();
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	ENDS(f, JE, FLOW_LOST, "buffer");
	check(f->ops->resync(f, &n) == FLOW_END, "resync without a counter");
	f->ops->close(f);
}

/* the second module is loaded where the first one was, with its copy at the same place */
static void replaced(void)
{
	struct flow *f;

	begin(RUN_PT_BRANCHES);
	psb(COPY, 0);
	lap(true, false);
	ip(ppt_tip, COPY);
	ip(ppt_tip, COPY);
	tnt("T");
	tnt("N");
	ip(ppt_tip, COPY);
	tnt("T");
	proc.nmod = 4;
	f = opened();
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY + 11);
	f->ops->module(f, &mods[2]);
	f->ops->module(f, &mods[3]);
	ENDS(f, COPY + 2, FLOW_LOST, "");
	f->ops->close(f);

	begin(RUN_PT_BRANCHES);
	psb(COPY, 0);
	lap(true, false);
	counter(1);
	ip(ppt_tip, COPY + 15);
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, COPY);
	tnt("TN");
	ip(ppt_tip, COPY);
	tnt("T");
	f = opened();
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY + 11);
	WENT(f, JMP, COPY + 15);
	f->ops->module(f, &mods[2]); /* unloaded and loaded in a system call */
	f->ops->module(f, &mods[3]);
	WENT(f, COPY + 2, COPY);
	WENT(f, COPY + 2, COPY + 4);
	WENT(f, COPY + 2, COPY);
	f->ops->close(f);
	proc.nmod = 2;
}

static void bad(const char *name, const char *why)
{
	struct ptrace_error e = {0};
	struct flow *f;

	fclose(pt);
	f = flow_open_pt(&thread, &e);
	check(!f && strstr(e.text, why), "%s: \"%s\"", name, e.text);
	if (f)
		f->ops->close(f);
}

static void files(void)
{
	struct ptrace_error e = {0};
	struct flow *f;

	begin(RUN_PT_BRANCHES);
	record(RUN_PT_OPEN_FAILED, 0, 16, NULL, 0);
	bad("not opened", "Device or resource busy");
	begin(RUN_PT_BRANCHES);
	bad("nothing", "holds no packets");
	begin(RUN_PT_BRANCHES);
	fseek(pt, 20, SEEK_SET);
	fputc(0xff, pt);
	bad("head", "damaged");
	thread.pub.tid = 77;
	pt = fopen("/dev/null", "rb");
	bad("missing", "pt-77.bin");
	thread.pub.tid = 0;

	/* a record is damaged: what is before it is good */
	begin(RUN_PT_BRANCHES);
	psb(COPY, 0);
	lap(true, true);
	data(0);
	lap(true, true);
	data(0);
	fseek(pt, -1, SEEK_CUR);
	fputc(0x55, pt);
	fclose(pt);
	f = flow_open_pt(&thread, &e);
	check(f != NULL, "damaged record: %s", e.text);
	if (!f)
		return;
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY);
	ENDS(f, JE, FLOW_END, "damaged or cut");
	f->ops->close(f);
}

/* Code without an image, where no return is compressed: its packets are passed. Where it led the log must say, too. */
static void unknown(void)
{
	struct flow *f;

	in_stream = 0;
	begin(RUN_PT_BRANCHES);
	psb(COPY + 13, 0);
	ip(ppt_tip, 0x5000); /* the asked-for jmp */
	tnt("TNT");
	ip(ppt_tip, 0x5100);
	tnt("N");
	ip(ppt_fup, 0x5104); /* interrupted, it goes on */
	ip(ppt_tip_pgd, 0);
	ip(ppt_tip_pge, 0x5104);
	ip(ppt_tip, ENTRY); /* patched: on in the copy */
	lap(true, false);
	counter(1);
	ip(ppt_tip, 0x5000);
	tnt("T");
	ip(ppt_tip, ENTRY);
	lap(true, false);
	counter(2);
	ip(ppt_tip, COPY);
	lap(true, false);
	f = opened();
	f->ops->entered(f, OPAQUE);
	WENT(f, JMP, 0x5000);
	check(!f->ops->stops(f, COPY + 7, false), "interrupted before the log says where control came");
	check(!f->ops->more(f), "more is known before the log says where control came");
	f->ops->entered(f, OPAQUE); /* other code that was not followed, which has an image */
	f->ops->entered(f, ENTRY);
	WENT(f, JE, COPY + 7);
	WENT(f, JNE, COPY + 11);
	WENT(f, JMP, 0x5000);
	f->ops->entered(f, OPAQUE);
	ENDS(f, JE, FLOW_LOST, "no packet"); /* the log says that it came elsewhere */
	RESYNC(f, 2);
	WENT(f, JMP, COPY);
	f->ops->close(f);
	in_stream = RUN_PT_RETC;
}

int main(void)
{
	static const struct sem_op op[] = {{.op = SEM_JCC_FLOW, .a = 2},  {.op = SEM_JCC_FLOW, .a = 9},
					   {.op = SEM_FLOW, .a = 13},	  {.op = SEM_PTW, .w = 4, .a = 24},
					   {.op = SEM_JCC_FLOW, .a = 28}, {.op = SEM_PTWSX, .w = 8, .a = 30}};
	static const struct sem_op other_op[] = {{.op = SEM_JCC_FLOW, .a = 2}};
	static const struct map_fixup fix[] = {{18, MAP_FIX_MOD32}};
	static const struct map_patch patch[] = {{0x1000, MAP_PATCH_JMP, 0}};
	struct pt_config c;
	char path[300];

	if (!mkdtemp(dir))
		return 2;
	snprintf(path, sizeof(path), "%s/maps", dir);
	mkdir(path, 0777);
	pt_config_init(&c);
	c.begin = bytes;
	c.end = bytes + sizeof(bytes);
	enc = pt_alloc_encoder(&c);
	run.note = note;
	text_put("01", module_code);
	text_put("02", runtime_code);
	text_put("03", other_code);
	map_put(&maps[0], copy_text, sizeof(copy_text), op, NELEM(op), fix, 1, patch, 1);
	((struct map_head *)maps[0].head)->flags = MAP_F_PT | MAP_F_PTW;
	map_put(&maps[1], other_copy, sizeof(other_copy), other_op, 1, NULL, 0, NULL, 0);
	mods[0] = mod(0, 1, 1, BIAS, COPY, &maps[0]);
	mods[1] = mod(1, 2, 2, RT, 0, NULL);
	mods[2] = mod(2, 0, 1, BIAS, COPY, NULL);
	mods[3] = mod(3, 1, 3, BIAS, COPY, &maps[1]);
	/* code is used that was put together in an earlier second than other code: libipt looks at its file's time */
	ptcode_module(ptcode_of(&run), &mods[0]);
	usleep(1100000);
	ptcode_module(ptcode_of(&run), &mods[3]);
	proc.nmod = 2;
	for (codec = 0; codec < 3; codec++) {
		branches();
		transactions();
		ptwrite();
		values();
		signals();
		waiting();
		unknown();
		losses();
	}
	codec = 0;
	replaced();
	files();
	ptcode_free(run.code);
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	if (system(path))
		fail++;
	printf("%d passed, %d failed\n", pass, fail);
	return fail != 0;
}
