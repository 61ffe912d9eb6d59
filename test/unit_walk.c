/* SPDX-License-Identifier: MIT
 *
 * unit_walk.c - the decoder's walker on hand-made maps and streams
 *
 * A test builds a module's ops with op(), a stream with the put_* functions, and compares the
 * records with the expected ones, the end with the expected end. Memory: link-time addresses
 * below 0x10000, load bias 0x7f0000000000.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "../decoder/walk.h"

#define BIAS 0x7f0000000000ull
#define BIAS2 (BIAS + 0x100000)
#define RSP0 0x7ffe0000ff00ull

static int passed, failed;

static void check(bool ok, const char *what)
{
	if (ok) {
		passed++;
	} else {
		failed++;
		printf("FAIL: %s\n", what);
	}
}

/* ---- a map ---------------------------------------------------------------------------------- */

static struct sem_op ops[256];
static struct map_block blocks[32];
static struct map_site sites[8];
static struct map_leader leaders[16];
static struct map_group groups[4];
static uint32_t nop, nblock, nsite, nleader;
static uint8_t rodata[256];
static uint8_t lens[256], insnops[256]; /* of instructions, by blocks in order */
static uint32_t ninsn, begins[256]; /* op that each begins at, 0: not said, the block's last has all ops */
static uint32_t nbegin;

static uint8_t stream[4096];
static size_t nstream;
static struct run_cut cuts[16];
static uint32_t ncut;

static void reset(void)
{
	nop = nblock = nsite = nleader = ninsn = 0;
	nstream = ncut = 0;
	memset(lens, 0, sizeof(lens));
	memset(insnops, 0, sizeof(insnops));
	memset(begins, 0, sizeof(begins));
}

static uint32_t op(unsigned code, unsigned w, unsigned dst, unsigned a, unsigned b, int64_t imm)
{
	ops[nop] = (struct sem_op){(uint8_t)code, (uint8_t)w, (uint16_t)dst, (uint16_t)a, (uint16_t)b, imm};
	return nop++;
}

static uint32_t block(uint32_t vaddr, uint32_t group, uint32_t n)
{
	blocks[nblock] = (struct map_block){
		.vaddr = vaddr, .ops = nop, .insn = ninsn, .ninsn = (uint16_t)n, .group = group};
	nbegin = ninsn;
	ninsn += n;
	memset(lens + nbegin, 1, n);
	return op(SEM_BLOCK, 0, SEM_NONE, SEM_NONE, SEM_NONE, nblock++);
}

/* the next instruction of the block begins */
static void insn(void)
{
	begins[nbegin++] = nop;
}

static void count_ops(void)
{
	for (uint32_t b = 0; b < nblock; b++) {
		const struct map_block *k = &blocks[b];
		uint32_t end = k->ops + 1;

		while (ops[end].op <= SEM_BLOCK || ops[end].op == SEM_RMARK)
			end += 1 + (ops[end].op >= SEM_RECVEC && ops[end].op <= SEM_RECXS);
		for (uint32_t i = k->insn; i < k->insn + k->ninsn; i++) {
			bool last = i + 1 == k->insn + k->ninsn;
			uint32_t from = begins[i] || !last ? begins[i] : k->ops + 1;

			insnops[i] = (uint8_t)((last ? end + 1 : begins[i + 1]) - from);
		}
	}
}

static void rec(uint32_t ip, unsigned kind, unsigned size, unsigned base, int32_t disp)
{
	op(SEM_REC, 0, SEM_RECDST(size, kind), base, SEM_NONE, SEM_RECIMM(disp, ip));
}

static void adjust(int64_t n)
{
	op(SEM_LEA, 0, SEM_RSP, SEM_RSP, SEM_NONE, n);
}

/* rsp -= 8, W of the return address */
static void call_ops(uint32_t ip)
{
	adjust(-8);
	rec(ip, PTRACE_W, 8, SEM_RSP, 0);
}

static void ret_ops(uint32_t ip)
{
	rec(ip, PTRACE_R, 8, SEM_RSP, 0);
	adjust(8);
	op(SEM_RET, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
}

static uint32_t site(uint32_t vaddr, uint32_t kind, uint32_t at)
{
	sites[nsite] = (struct map_site){vaddr, kind, at};
	return nsite++;
}

static void leader(uint32_t vaddr, uint32_t at, uint32_t flags)
{
	leaders[nleader++] = (struct map_leader){vaddr, at, flags};
}

/* The copy: what stands at a link-time address is as far from its beginning. */
#define COPY_VADDR 0x1000u
static uint8_t copy[0x4000];
static struct map_xlat xlats[NELEM(leaders)];

static struct map *build(uint8_t **keep)
{
	static const struct {
		int sect;
		const void *p;
		uint32_t elem;
	} s[] = {
		{MAP_GROUPS, groups, sizeof(groups)},  {MAP_RODATA, NULL, sizeof(struct map_rodata)},
		{MAP_ROBYTES, rodata, sizeof(rodata)}, {MAP_STRINGS, "", 1},
		{MAP_INSNLEN, lens, sizeof(lens)},     {MAP_INSNOPS, insnops, sizeof(insnops)},
		{MAP_COPY, copy, sizeof(copy)},
	};
	struct map_rodata ro = {.vaddr = 0x9000, .size = sizeof(rodata)};
	struct map_head h = {.magic = MAP_MAGIC, .version = MAP_VERSION, .nsites = nsite};
	uint8_t *b = calloc(1, 1 << 16);
	struct map *m = calloc(1, sizeof(*m));
	struct ptrace_error e = {0};
	size_t at = 1024;

	count_ops();
	for (uint32_t i = 0; i < nleader; i++)
		xlats[i] = (struct map_xlat){.copy_off = leaders[i].vaddr - COPY_VADDR,
					     .vaddr = leaders[i].vaddr,
					     .flags = MAP_X_STUB};
	for (int i = 0; i < MAP_NSECTIONS; i++) {
		const void *p = NULL;
		size_t n = 0;

		for (size_t k = 0; k < NELEM(s); k++)
			if (s[k].sect == i)
				p = s[k].p ? s[k].p : &ro, n = s[k].elem;
		if (i == MAP_OPS)
			p = ops, n = nop * sizeof(*ops);
		if (i == MAP_BLOCKS)
			p = blocks, n = nblock * sizeof(*blocks);
		if (i == MAP_SITES)
			p = sites, n = nsite * sizeof(*sites);
		if (i == MAP_LEADERS)
			p = leaders, n = nleader * sizeof(*leaders);
		if (i == MAP_XLAT)
			p = xlats, n = nleader * sizeof(*xlats);
		h.sect[i] = (struct map_sect){at, n, XXH3_64bits(p ? p : b, n)};
		if (n)
			memcpy(b + at, p, n);
		at = (at + n + 63) & ~63ull;
	}
	h.head_xxh3 = XXH3_64bits(&h, offsetof(struct map_head, head_xxh3));
	memcpy(b, &h, sizeof(h));
	m->path = xprintf("test map");
	if (map_parse(m, b, at, &e)) {
		printf("FAIL: %s\n", e.text);
		exit(1);
	}
	*keep = b;
	return m;
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void put(const void *p, size_t n)
{
	if (n)
		memcpy(stream + nstream, p, n);
	nstream += n;
}

static void put8(unsigned v)
{
	stream[nstream++] = (uint8_t)v;
}

static void put32(uint32_t v)
{
	put(&v, 4);
}

static void put64(uint64_t v)
{
	put(&v, 8);
}

static void put_mark(unsigned kind, uint32_t id)
{
	put32(kind | id << RUN_MARK_ID_SHIFT);
	if (kind <= RUN_MARK_RESYNC)
		nstream--;
}

static void put_event(uint32_t id, uint64_t arg)
{
	put_mark(RUN_MARK_EVENT, id);
	put64(arg);
}

#define COPY 0x40000000ull
#define COPY2 0x50000000ull

/* untraced code comes back to the return site at vaddr, with that rsp; all else is i + 1 */
static void put_back(uint64_t base, uint32_t vaddr, uint64_t rsp, unsigned check)
{
	struct run_back b = {.copy = base + vaddr - COPY_VADDR, .rsp = rsp, .saved = {1, 2, 3, 4, 5, 6}};

	put_event(RUN_EV_BACK, sizeof(b));
	put(&b, sizeof(b));
	put8(RUN_MARK_RET | check << 3);
}

/* ---- running it ------------------------------------------------------------------------------ */

static struct ptrace_rec got[100000];
static size_t ngot;
static struct ptrace_stats st;
static struct walk_result res;

static int collect(void *ctx, struct ptrace_rec *r, size_t n)
{
	(void)ctx;
	if (ngot + n > NELEM(got))
		return 1;
	memcpy(got + ngot, r, n * sizeof(*r));
	ngot += n;
	return 0;
}

/* What the blocks' counts say must be what came out, wherever the walk ended. */
static void check_counts(void)
{
	uint64_t n = 0, want = 0;
	char line[100];

	for (uint32_t i = 0; i < res.nblock; i++)
		n += res.block[i].accesses;
	for (size_t i = 0; i < ngot; i++)
		want += got[i].kind != WALK_BLOCK;
	snprintf(line, sizeof(line), "%llu accesses by block, %llu records", (unsigned long long)n,
		 (unsigned long long)want);
	check(n == want && st.accesses == want, line);
}

static uint64_t memory; /* bound, 0: none */
static const struct run_stop_state *stop; /* of a stop by a signal, or NULL */

/* The thread is number 7, which has a start state, or another. All modules have the same map. */
static uint32_t tid = 7;
static uint32_t nmod = 1;
static const struct run_module module[3] = {
	{.kind = 1, .bias = BIAS, .lo = BIAS, .hi = BIAS + 0x10000, .site_base = 100, .copy_base = COPY},
	{.kind = 0, .lo = BIAS - 0x10000, .hi = BIAS},
	{.kind = 1, .bias = BIAS2, .lo = BIAS2, .hi = BIAS2 + 0x10000, .site_base = 200, .copy_base = COPY2},
};

static uint64_t start_rsp = RSP0;
static struct hand *handed; /* what the last walk has left; the next one takes it */

static enum walk_end go_from(uint32_t start_vaddr, bool blocks_too)
{
	struct proc after = {0};
	struct modrec mod[3] = {{.m = module[0]}, {.m = module[1]}, {.m = module[2]}};
	struct start start = {.s = {.tid = 7, .rip = BIAS + start_vaddr, .xcr0 = 7}};
	struct proc first = {.pid = 7, .start = &start};
	struct proc p = {.pid = 7,
			 .mod = mod,
			 .nmod = nmod,
			 .parent = &first,
			 .nlog = tid == 7 ? 1 : 2,
			 .hand = handed,
			 .rest = &after};
	struct walk_opts o = {.blocks = blocks_too, .counts = true, .memory = memory};
	uint8_t *keep;
	struct log *log = log_mem(stream, nstream, cuts, ncut, true);
	enum walk_end end;

	if (stop) {
		p.async = true;
		p.stop_at = *stop;
		log_limit(log, stop->lp_pos, stop->bytes);
	}
	p.start = tid == 7 ? &start : NULL;
	start.s.gpr[SEM_RSP] = start_rsp;
	start.s.gpr[SEM_RBX] = 0xb;
	start.s.xsave_comp[0][2] = 256;
	start.s.xsave_comp[1][2] = 576;
	mod[0].map = mod[2].map = build(&keep);
	mod[0].path = mod[1].path = mod[2].path = xprintf("/lib/test.so");
	memset(&st, 0, sizeof(st));
	ngot = 0;
	walk_result_free(&res);
	end = walk_thread(&p, log, NULL, tid, 0, &o, collect, NULL, &st, &res);
	if (end != WALK_CANCELLED)
		check_counts();
	hand_free(p.hand);
	handed = after.hand;
	log_close(log);
	free(mod[0].map->by_ops);
	free(mod[0].map->by_vaddr);
	free(mod[0].map->path);
	free(mod[0].map);
	free(mod[0].path);
	free(keep);
	return end;
}

static enum walk_end go(void)
{
	return go_from(0x1000, false);
}

static void expect(const char *what, enum walk_end end, enum walk_end want, const struct ptrace_rec *r,
		   size_t n)
{
	char line[700];
	size_t i;

	snprintf(line, sizeof(line), "%s: end %d, wanted %d (%s)", what, end, want, res.why);
	check(end == want, line);
	for (i = 0; i < n && i < ngot; i++) {
		snprintf(line, sizeof(line), "%s: record %zu is ip %#llx addr %#llx size %u kind %d", what, i,
			 (unsigned long long)got[i].ip, (unsigned long long)got[i].addr, got[i].size,
			 got[i].kind);
		check(got[i].ip == r[i].ip && got[i].addr == r[i].addr && got[i].size == r[i].size &&
			      got[i].kind == r[i].kind,
		      line);
	}
	snprintf(line, sizeof(line), "%s: %zu records, wanted %zu", what, ngot, n);
	check(ngot == n, line);
}
#define REC(vip, a, s, k)                                                                                    \
	{                                                                                                    \
		.ip = BIAS + (vip), .addr = (a), .size = (s), .kind = PTRACE_##k                             \
	}

/* an exit system call at vaddr, which ends the stream */
static void exit_block(uint32_t vaddr)
{
	block(vaddr, 0, 1);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void test_loop(void)
{
	struct ptrace_rec want[4];
	uint32_t head;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	op(SEM_RMARK, 0, SEM_NONE, SEM_NONE, SEM_NONE, 3);
	op(SEM_LOG, 8, SEM_RSI, SEM_NONE, SEM_NONE, 0);
	op(SEM_LOGSX, 1, SEM_RCX, SEM_NONE, SEM_NONE, 0);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	head = block(0x1010, 0, 3);
	op(SEM_REC, 2, SEM_RECDST(4, PTRACE_R), SEM_RSI, SEM_RCX, SEM_RECIMM(-4, 0x1010));
	op(SEM_ADD, 8, SEM_RCX, SEM_RCX, SEM_NONE, 1);
	op(SEM_CMPEQ, 4, SEM_T0, SEM_RCX, SEM_NONE, 0);
	op(SEM_SEL, 8, SEM_T0, SEM_T0 + 1, SEM_T0 + 2, SEM_T0);
	op(SEM_CMPEQ, 8, SEM_T0, SEM_RCX, SEM_NONE, 1);
	op(SEM_JCC, 0, SEM_NONE, SEM_T0, SEM_NONE, SEM_TARGETS(nop + 1, head));
	exit_block(0x1020);
	put8(RUN_MARK_RET | 3 << 3);
	put64(0x5000);
	put8(0xfd); /* -3 */
	put_event(RUN_EV_EXIT, 0);
	for (int i = 0; i < 4; i++)
		want[i] = (struct ptrace_rec)REC(0x1010, 0x5000 + 4 * (i - 3) - 4, 4, R);
	expect("counted loop", go(), WALK_EXIT, want, 4);
	check(st.instructions == 1 + 4 * 3 + 1, "counted loop: instructions");
	check(st.log_bytes_used == nstream, "counted loop: all bytes used");
}

static void test_calls(void)
{
	struct ptrace_rec want[] = {
		REC(0x1000, RSP0 - 8, 8, W), REC(0x2000, 0xb, 1, R), REC(0x2001, RSP0 - 8, 8, R),
		REC(0x1005, 0xb, 1, W), /* rbx is the caller's again */
	};
	uint32_t call;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	call_ops(0x1000);
	call = op(SEM_CALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	block(0x1005, 0, 1);
	rec(0x1005, PTRACE_W, 1, SEM_RBX, 0);
	op(SEM_JCC_LOG, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	exit_block(0x1010);
	ops[call].imm = SEM_TARGETS(nop, call + 1);
	block(0x2000, 1, 2);
	rec(0x2000, PTRACE_R, 1, SEM_RBX, 0);
	op(SEM_IMM, 8, SEM_RBX, SEM_NONE, SEM_NONE, 99);
	ret_ops(0x2001);
	put8(1);
	put_event(RUN_EV_EXIT, 0);
	expect("call and return", go(), WALK_EXIT, want, 4);
	stream[0] = 2;
	expect("branch outcome 2", go(), WALK_LOST, want, 4);
	check(strstr(res.why, "branch outcome") && strstr(res.why, "position 0"), "reason names the place");
}

/* main: CALLX; then RMARK site at 0x1005; callback group at 0x2000 (site 0), resync at 0x3000 (site 1) */
static void opaque_map(void)
{
	uint32_t call;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	call_ops(0x1000);
	call = op(SEM_CALLX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	ops[call].imm = SEM_TARGETS(0, nop);
	leader(0x1005, nop, MAP_LEADER_RETURN);
	block(0x1005, 0, 2);
	op(SEM_RMARK, 0, SEM_NONE, SEM_NONE, SEM_NONE, 5);
	rec(0x1005, PTRACE_W, 4, SEM_RSP, -4);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, nop + 1));
	block(0x1010, 0, 1);
	rec(0x1010, PTRACE_R, 1, SEM_RAX, 0);
	op(SEM_HALT, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	site(0x2000, MAP_SITE_ENTRY, nop);
	leader(0x2000, nop + 2, MAP_LEADER_ENTRY);
	op(SEM_LOG, 4, SEM_RDI, SEM_NONE, SEM_NONE, 0);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	block(0x2000, 1, 2);
	rec(0x2000, PTRACE_R, 2, SEM_RDI, 0);
	ret_ops(0x2002);
	site(0x3000, MAP_SITE_RESYNC, nop);
	leader(0x3000, nop + 1, 1 << 8);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	block(0x3000, 0, 1);
	rec(0x3000, PTRACE_W, 8, SEM_RSP, 0);
	op(SEM_JCC_LOG, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, nop - 2));
}

static void finish(void)
{
	put_mark(RUN_MARK_SYSCALL, 39);
	put64(0x1234);
	put_event(RUN_EV_EXIT, 0);
}

static void test_opaque(void)
{
	struct ptrace_rec plain[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x1005, RSP0 - 4, 4, W),
				     REC(0x1010, 0x1234, 1, R)};
	struct ptrace_rec entry[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x2000, 0x77, 2, R),
				     REC(0x2002, RSP0 - 8, 8, R), REC(0x1005, RSP0 - 4, 4, W),
				     REC(0x1010, 0x1234, 1, R)};
	struct ptrace_rec back[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x2000, 0x77, 2, R),
				    REC(0x2002, RSP0 - 96, 8, R), REC(0x1005, RSP0 - 4, 4, W),
				    REC(0x1010, 0x1234, 1, R)};

	opaque_map();
	put_event(RUN_EV_EXEC, 0); /* may stand before any mark */
	put_back(COPY, 0x1005, RSP0, 5);
	finish();
	expect("opaque call", go(), WALK_EXIT, plain, 3);
	check(st.opaque_entries == 1 && res.nplace == 1 && res.place[0].ip == BIAS + 0x1000, "opaque place");

	opaque_map();
	put_mark(RUN_MARK_ENTRY, 100);
	put32(0x77);
	put8(RUN_MARK_RET | 5 << 3);
	finish();
	expect("indirect call", go(), WALK_EXIT, entry, 5);
	check(!st.opaque_entries && !st.callbacks, "an indirect call is not opaque");

	opaque_map();
	put_mark(RUN_MARK_ENTRYX, 100);
	put64(RSP0 - 96);
	put32(0x77);
	put_back(COPY, 0x1005, RSP0, 5);
	finish();
	expect("callback", go(), WALK_EXIT, back, 5);
	check(st.callbacks == 1 && st.opaque_entries >= 1, "callback counted");

	opaque_map();
	put_back(COPY, 0x1005, RSP0, 6);
	finish();
	expect("wrong return mark", go(), WALK_LOST, plain, 1);
	opaque_map();
	put8(RUN_MARK_RET | 5 << 3);
	finish();
	expect("a return that does not say from where", go(), WALK_LOST, plain, 1);
	opaque_map();
	put_back(COPY, 0x1005, RSP0 - 8, 5);
	finish();
	expect("untraced code that comes back on an unknown stack", go(), WALK_LOST, plain, 1);
	opaque_map();
	put_back(COPY, 0x2000, RSP0, 5);
	finish();
	expect("untraced code that comes back where no call is", go(), WALK_LOST, plain, 1);
	opaque_map();
	put_back(COPY2, 0x1005, RSP0, 5);
	finish();
	expect("untraced code that comes back to no module", go(), WALK_LOST, plain, 1);
	opaque_map();
	put_mark(RUN_MARK_ENTRY, 101);
	expect("entry mark of a resync site", go(), WALK_LOST, plain, 1);
	opaque_map();
	put_mark(RUN_MARK_ENTRYX, 4000);
	put64(0);
	expect("unknown site", go(), WALK_LOST, plain, 1);
}

/* main calls a stub at 0x4000 that jumps through the slot at RSP0 + 64, expected to lead to 0x2000 */
static void link_map(void)
{
	opaque_map();
	for (uint32_t i = 0; i < nop; i++)
		if (ops[i].op == SEM_CALLX) {
			ops[i].op = SEM_CALL;
			ops[i].imm = SEM_TARGETS(nop, SEM_NEXT(ops[i].imm));
		}
	block(0x4000, 2, 1);
	rec(0x4000, PTRACE_R, 8, SEM_RSP, 72);
	op(SEM_JMPX, 0, SEM_JMPX_LINK, SEM_NONE, SEM_NONE, SEM_TARGETS(blocks[3].ops, 0));
}

static void test_link(void)
{
	struct ptrace_rec linked[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x4000, RSP0 + 64, 8, R),
				      REC(0x2000, 0, 2, R),	   REC(0x2002, RSP0 - 8, 8, R),
				      REC(0x1005, RSP0 - 4, 4, W), REC(0x1010, 0x1234, 1, R)};
	struct ptrace_rec entry[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x4000, RSP0 + 64, 8, R),
				     REC(0x2000, 0x77, 2, R),	  REC(0x2002, RSP0 - 8, 8, R),
				     REC(0x1005, RSP0 - 4, 4, W), REC(0x1010, 0x1234, 1, R)};

	link_map();
	put8(RUN_MARK_LINK);
	put8(RUN_MARK_RET | 5 << 3);
	finish();
	expect("linked call", go(), WALK_EXIT, linked, 6);
	check(!st.opaque_entries && !st.callbacks, "a linked call is not opaque");

	link_map();
	put_mark(RUN_MARK_ENTRY, 100);
	put32(0x77);
	put8(RUN_MARK_RET | 5 << 3);
	finish();
	expect("a slot that holds something else", go(), WALK_EXIT, entry, 6);

	link_map();
	put8(RUN_MARK_LINK | 1 << 3);
	expect("no mark", go(), WALK_LOST, entry, 2);
	opaque_map();
	put8(RUN_MARK_LINK);
	expect("a LINK mark where nothing is linked", go(), WALK_LOST, entry, 1);
}

static void test_resync(void)
{
	struct ptrace_rec want[] = {REC(0x1000, RSP0 - 8, 8, W),  REC(0x2000, 0x77, 2, R),
				    REC(0x3000, RSP0 - 32, 8, W), REC(0x3000, RSP0 - 32, 8, W),
				    REC(0x1000, RSP0 - 40, 8, W), REC(0x1005, RSP0 - 36, 4, W),
				    REC(0x1010, 0x1234, 1, R)};

	opaque_map();
	/* the callback calls out by a jump instead of returning, and never comes back: longjmp */
	for (uint32_t i = 0; i < nop; i++)
		if (ops[i].op == SEM_RET) {
			ops[i] = (struct sem_op){SEM_JMPX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0};
			ops[i - 2] = (struct sem_op){SEM_IMM, 8, SEM_T0, SEM_NONE, SEM_NONE, 0};
		}
	put_mark(RUN_MARK_ENTRYX, 100);
	put64(RSP0 - 96);
	put32(0x77);
	put_mark(RUN_MARK_RESYNC, 101);
	put64(RSP0 - 32);
	put8(0);
	put8(1);
	put_back(COPY, 0x1005, RSP0 - 32, 5);
	finish();
	expect("resync drops frames", go(), WALK_EXIT, want, 7);
}

static void test_ends(void)
{
	struct ptrace_rec want[] = {REC(0x1000, RSP0 - 8, 8, W)};

	opaque_map();
	expect("stream ends at a mark", go(), WALK_LOG_ENDS, want, 0);
	opaque_map();
	put_event(RUN_EV_STOP, RUN_STOP_SIGNAL);
	expect("stop event", go(), WALK_STOP, want, 1);
	check(res.arg == RUN_STOP_SIGNAL, "stop reason");
	opaque_map();
	put_event(RUN_EV_EXEC, 0);
	expect("stream ends after execve", go(), WALK_EXIT, want, 1);
	opaque_map();
	put_event(77, 0);
	expect("unknown event", go(), WALK_LOST, want, 1);
	opaque_map();
	put_event(RUN_EV_MODULE, 9);
	expect("module record out of range", go(), WALK_LOST, want, 1);
	opaque_map();
	ops[1].op = 180;
	put8(0);
	expect("op of a newer analyzer", go(), WALK_LOST, want, 0);
	opaque_map();
	ops[1].dst = 5000;
	put8(0);
	expect("register out of range", go(), WALK_LOST, want, 0);
}

static void test_vec(void)
{
	struct sem_vec gather = {
		.n = 4, .mask = SEM_MASK_VEC, .idx_bytes = 4, .idx_scale = 3, .mask_bytes = 4};
	struct sem_vec comp = {.n = 8, .mask = SEM_MASK_K, .mask_bytes = 8, .flags = SEM_VEC_COMPRESS};
	struct sem_vec known = {.n = 4, .mask = SEM_MASK_REG, .mask_bytes = 1, .count = SEM_K0 + 2};
	struct sem_vec movs = {.kind = SEM_REP_MOVS, .count = SEM_RCX, .df = SEM_DF};
	struct sem_vec xs = {.kind = SEM_XS_SAVE, .count = SEM_RAX, .df = SEM_RDX};
	struct ptrace_rec want[] = {
		REC(0x1000, 0x5000 - 8, 4, R), REC(0x1000, 0x5000 + 24, 4, R), REC(0x1001, 0x6000, 2, W),
		REC(0x1001, 0x6002, 2, W),     REC(0x1002, 0x7000, 8, R),      REC(0x1002, 0x8000, 8, W),
		REC(0x1002, 0x6ff8, 8, R),     REC(0x1002, 0x7ff8, 8, W),      REC(0x1003, 0x5000, 832, W),
		REC(0x1005, 0x5004, 4, R),     REC(0x1005, 0x500c, 4, R),      REC(0x1004, 0x9999, 1, R)};

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 6);
	op(SEM_IMM, 8, SEM_RBX, SEM_NONE, SEM_NONE, 0x5000);
	op(SEM_RECVEC, 0, SEM_RECDST(4, PTRACE_R), SEM_RBX, SEM_NONE, SEM_RECIMM(0, 0x1000));
	memcpy(&ops[nop++], &gather, 16);
	op(SEM_RECVEC, 0, SEM_RECDST(2, PTRACE_W), SEM_RBX, SEM_NONE, SEM_RECIMM(0x1000, 0x1001));
	memcpy(&ops[nop++], &comp, 16);
	op(SEM_IMM, 8, SEM_RSI, SEM_NONE, SEM_NONE, 0x7000);
	op(SEM_IMM, 8, SEM_RDI, SEM_NONE, SEM_NONE, 0x8000);
	op(SEM_IMM, 8, SEM_RCX, SEM_NONE, SEM_NONE, 2);
	op(SEM_IMM, 8, SEM_DF, SEM_NONE, SEM_NONE, 1);
	op(SEM_RECREP, 8, SEM_NONE, SEM_RSI, SEM_RDI, SEM_RECIMM(0, 0x1002));
	memcpy(&ops[nop++], &movs, 16);
	op(SEM_IMM, 8, SEM_RAX, SEM_NONE, SEM_NONE, -1);
	op(SEM_IMM, 8, SEM_RDX, SEM_NONE, SEM_NONE, 0);
	op(SEM_RECXS, 0, SEM_RECDST(0, PTRACE_W), SEM_RBX, SEM_NONE, SEM_RECIMM(0, 0x1003));
	memcpy(&ops[nop++], &xs, 16);
	op(SEM_IMM, 8, SEM_K0 + 2, SEM_NONE, SEM_NONE, 0xfa); /* of which four bits count */
	op(SEM_RECVEC, 0, SEM_RECDST(4, PTRACE_R), SEM_RBX, SEM_NONE, SEM_RECIMM(0, 0x1005));
	memcpy(&ops[nop++], &known, 16);
	op(SEM_LOG, 8, SEM_RAX, SEM_NONE, SEM_NONE, 0);
	rec(0x1004, PTRACE_R, 1, SEM_RAX, 0);
	op(SEM_VCHK, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, 0));
	put32(0x80000000), put32(0x7fffffff), put32(0xffffffff), put32(0);
	put32(-1), put32(1), put32(3), put32(4);
	put64(0x81);
	put64(0x9999);
	put64(0x9999);
	put_event(RUN_EV_EXIT, 0);
	expect("groups of records", go(), WALK_EXIT, want, 12);
	check(st.checked == 1 && !st.wrong, "verify agrees");
	stream[nstream - 20] ^= 1;
	expect("groups of records", go(), WALK_EXIT, want, 12);
	check(st.wrong == 1 && res.ndiff == 1 && res.diff[0].got == 0x9999, "verify differs");
}

static void test_memory(void)
{
	struct ptrace_rec want[] = {REC(0x1000, 0xdead, 1, R), REC(0x1001, 0x3344, 1, R),
				    REC(0x1002, BIAS + 0x9000, 1, R)};

	reset();
	memcpy(rodata + 8, "\xad\xde", 2);
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 3);
	op(SEM_MODADDR, 8, SEM_RAX, SEM_NONE, SEM_NONE, 0x9000);
	op(SEM_LOADRO, 2, SEM_RCX, SEM_RAX, SEM_NONE, 8);
	rec(0x1000, PTRACE_R, 1, SEM_RCX, 0);
	op(SEM_IMM, 8, SEM_RDX, SEM_NONE, SEM_NONE, 0x11223344);
	op(SEM_STORE, 4, SEM_NONE, SEM_RSP, SEM_RDX, -6);
	op(SEM_LOAD, 2, SEM_RCX, SEM_RSP, SEM_NONE, -6);
	rec(0x1001, PTRACE_R, 1, SEM_RCX, 0);
	rec(0x1002, PTRACE_R, 1, SEM_RAX, 0);
	op(SEM_LOAD, 8, SEM_RCX, SEM_RSP, SEM_NONE, -6);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, 0));
	put_event(RUN_EV_EXIT, 0);
	expect("unknown bytes are not made up", go(), WALK_LOST, want, 3);
	check(st.unknown == 1, "unknown counted");
}

/* a loop that writes to page after page: with stores, whose values take memory, or with string
 * instructions, whose pages are just not known */
static enum walk_end pages(bool stores)
{
	uint32_t head;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	op(SEM_IMM, 8, SEM_RDI, SEM_NONE, SEM_NONE, 0x10000000);
	op(SEM_IMM, 8, SEM_RCX, SEM_NONE, SEM_NONE, 4096);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	head = block(0x1010, 0, 3);
	if (stores) {
		op(SEM_STORE, 8, SEM_NONE, SEM_RDI, SEM_RCX, 8);
		rec(0x1010, PTRACE_W, 8, SEM_RDI, 8);
	} else {
		struct sem_vec v = {.kind = SEM_REP_STOS, .count = SEM_RCX, .df = SEM_DF};

		op(SEM_RECREP, 1, SEM_NONE, SEM_NONE, SEM_RDI, SEM_RECIMM(0, 0x1010));
		memcpy(&ops[nop++], &v, sizeof(v));
	}
	op(SEM_LEA, 0, SEM_RDI, SEM_RDI, SEM_NONE, 4096);
	op(SEM_JCC_LOG, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(head, nop + 1));
	exit_block(0x1020);
	for (int i = 0; i < 20; i++)
		put8(i < 19);
	put_event(RUN_EV_EXIT, 0);
	return go();
}

static void test_memory_bound(void)
{
	memory = 64 << 10;
	check(pages(true) == WALK_LOST && strstr(res.why, "--memory"), "stores stop at the bound");
	check(pages(false) == WALK_EXIT && ngot == 20 * 4096, "what is not known takes no memory");
	memory = 0;
	check(pages(true) == WALK_EXIT && ngot == 20, "stores without a bound");
}

/* Stops by a signal. A loop of 100 turns that logs nothing, then a block that logs:
 *
 *   1010  R (rsi,rcx,4)        1011  rcx++        1012  jne 1010
 *   1020  log rdi; W (rdi)     1021  R (rsi); log rax     1022  log byte, jne 1010
 */
static void stop_map(void)
{
	uint32_t head;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	op(SEM_LOG, 8, SEM_RSI, SEM_NONE, SEM_NONE, 0);
	op(SEM_IMM, 8, SEM_RCX, SEM_NONE, SEM_NONE, 0);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	head = block(0x1010, 0, 3);
	insn();
	op(SEM_REC, 2, SEM_RECDST(4, PTRACE_R), SEM_RSI, SEM_RCX, SEM_RECIMM(0, 0x1010));
	insn();
	op(SEM_ADD, 8, SEM_RCX, SEM_RCX, SEM_NONE, 1);
	op(SEM_SUB, 8, SEM_T0, SEM_RCX, SEM_NONE, 100);
	insn();
	op(SEM_JCC, 0, SEM_NONE, SEM_T0, SEM_NONE, SEM_TARGETS(head, nop + 1));
	block(0x1020, 0, 3);
	insn();
	op(SEM_LOG, 8, SEM_RDI, SEM_NONE, SEM_NONE, 0);
	rec(0x1020, PTRACE_W, 1, SEM_RDI, 0);
	insn();
	rec(0x1021, PTRACE_R, 1, SEM_RSI, 0);
	op(SEM_LOG, 8, SEM_RAX, SEM_NONE, SEM_NONE, 0);
	insn();
	op(SEM_JCC_LOG, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(head, nop + 1));
	exit_block(0x1030);
	put64(0x5000);
	put64(0x6000);
	put64(0xa5a5a5a5a5a5a5a5); /* garbage */
	put8(0);
}

static void stopped(const char *what, uint32_t vaddr, uint64_t lp, uint16_t bytes, uint16_t ahead,
		    uint64_t rcx, size_t records, uint64_t insns)
{
	struct run_stop_state s = {
		.rip = BIAS + vaddr, .lp_pos = lp, .bytes = bytes, .ahead = ahead, .where = RUN_STOP_IN_COPY};
	char line[200];
	enum walk_end end;

	s.gpr[SEM_RSI] = 0x5000;
	s.gpr[SEM_RCX] = rcx;
	s.gpr[SEM_RDI] = 0x6000;
	stop_map();
	stop = &s;
	end = go();
	stop = NULL;
	snprintf(line, sizeof(line),
		 "stop %s: end %d, %zu records, wanted %zu, %llu instructions, wanted %llu", what, end, ngot,
		 records, (unsigned long long)st.instructions, (unsigned long long)insns);
	check(end == WALK_STOP && ngot == records && st.instructions == insns, line);
}

static void test_stop(void)
{
	struct run_stop_state s = {.rip = BIAS + 0x1011, .lp_pos = 8, .where = RUN_STOP_IN_COPY};

	stopped("in the loop, before its access", 0x1010, 8, 0, 0, 57, 57, 1 + 57 * 3);
	stopped("behind the access", 0x1011, 8, 0, 0, 57, 58, 1 + 57 * 3 + 1);
	stopped("behind the count", 0x1012, 8, 0, 0, 57, 57, 1 + 56 * 3 + 2);
	stopped("at the loop's end", 0x1020, 8, 0, 0, 100, 100, 1 + 300);
	stopped("behind its log", 0x1020, 8, 8, 8, 100, 100, 1 + 300);
	stopped("behind a log that is not committed", 0x1021, 8, 8, 0, 100, 101, 1 + 300 + 1);
	stopped("before the log behind it", 0x1022, 8, 8, 0, 100, 102, 1 + 300 + 2);
	stopped("at a branch", 0x1022, 8, 16, 0, 100, 102, 1 + 300 + 2);
	stopped("behind its outcome", 0x1022, 8, 17, 1, 100, 102, 1 + 300 + 2);
	stopped("behind its outcome, committed", 0x1022, 25, 0, 1, 100, 102, 1 + 300 + 2);
	stopped("at the first log", 0x1000, 0, 0, 0, 0, 0, 0);
	s.gpr[SEM_RCX] = 777;
	stop_map();
	stop = &s;
	check(go() == WALK_LOST && strstr(res.why, "pauses elsewhere"), "registers that never were");
	stop = NULL;
}

/* ---- signals ---------------------------------------------------------------------------------- */

#define HRSP (RSP0 - 0x400) /* rsp of a handler */
#define FRAME (HRSP + 8) /* its ucontext */
static uint32_t handler, restorer; /* their sites */

/* a handler at 2000, which reads at the logged rdx, and what it returns to at 3000 */
static void handler_map(void)
{
	handler = site(0x2000, MAP_SITE_ENTRY, nop);
	op(SEM_LOG, 8, SEM_RDX, SEM_NONE, SEM_NONE, 0);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	block(0x2000, 1, 2);
	insn();
	rec(0x2000, PTRACE_R, 1, SEM_RDX, 0);
	insn();
	ret_ops(0x2001);
	restorer = site(0x3000, MAP_SITE_ENTRY, nop);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	block(0x3000, 2, 2);
	insn();
	insn();
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
}

static void put_signal(struct run_signal s)
{
	s.rip += BIAS;
	s.gpr[SEM_RSP] = s.gpr[SEM_RSP] ? s.gpr[SEM_RSP] : RSP0;
	put_event(RUN_EV_SIGNAL, sizeof(s));
	put(&s, sizeof(s));
}

/* the signal comes behind the last `bytes` bytes of the stream */
static void put_cut(uint32_t bytes, struct run_signal s)
{
	cuts[ncut++] = (struct run_cut){(uint32_t)nstream - bytes, bytes};
	put_signal(s);
}

static void put_handler(uint64_t rdx, uint64_t rsp)
{
	put_mark(RUN_MARK_ENTRYX, 100 + handler);
	put64(rsp);
	put64(rdx);
}

static void put_restorer(uint64_t rsp)
{
	put_mark(RUN_MARK_ENTRYX, 100 + restorer);
	put64(rsp + 8);
}

static void put_return(uint64_t rsp)
{
	put_restorer(rsp);
	put_event(RUN_EV_SIGRET, rsp + 8);
}

static void again(const uint8_t *region, uint32_t bytes)
{
	put(region, bytes);
}

/* The map of test_stop; its region: rdi, rax, the branch's outcome. `stored` of it are there when the signal
 * comes, the last `bytes` of them from the log pointer on. */
static void interrupted(const char *what, uint32_t vaddr, uint32_t stored, uint32_t bytes, uint16_t ahead,
			uint64_t rcx, size_t before, int signals)
{
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .ahead = ahead, .frame = FRAME, .rip = vaddr};
	uint64_t region[2] = {0x6000, 0x7777};
	struct ptrace_rec want[120];
	uint8_t raw[17];
	size_t n = 0, k = 0;
	char line[100];

	s.gpr[SEM_RSI] = 0x5000;
	s.gpr[SEM_RCX] = rcx;
	s.gpr[SEM_RDI] = 0x6000;
	memcpy(raw, region, 16);
	raw[16] = 0;
	stop_map();
	handler_map();
	nstream = 8;
	put(raw, stored);
	for (int i = 0; i < signals; i++) {
		put_cut(bytes, s);
		put_handler(0x9000 + i, HRSP);
		put_return(HRSP);
		again(raw + stored - bytes, bytes);
	}
	put(raw + stored, sizeof(raw) - stored);
	put_event(RUN_EV_EXIT, 0);
	for (; k < 102; k++) {
		for (int i = 0; k == before && i < signals; i++) {
			want[n++] = (struct ptrace_rec)REC(0x2000, 0x9000 + (uint64_t)i, 1, R);
			want[n++] = (struct ptrace_rec)REC(0x2001, HRSP, 8, R);
		}
		if (k < 100)
			want[n++] = (struct ptrace_rec)REC(0x1010, 0x5000 + 4 * k, 4, R);
		else if (k == 100)
			want[n++] = (struct ptrace_rec)REC(0x1020, 0x6000, 1, W);
		else
			want[n++] = (struct ptrace_rec)REC(0x1021, 0x5000, 1, R);
	}
	for (int i = 0; before == 102 && i < signals; i++) {
		want[n++] = (struct ptrace_rec)REC(0x2000, 0x9000 + (uint64_t)i, 1, R);
		want[n++] = (struct ptrace_rec)REC(0x2001, HRSP, 8, R);
	}
	snprintf(line, sizeof(line), "signal %s", what);
	expect(line, go(), WALK_EXIT, want, n);
	check(st.instructions == 1 + 300 + 3 + 1 + 4ull * (unsigned)signals, line);
}

static void test_signals(void)
{
	for (int n = 1; n <= 3; n++) {
		interrupted("in the loop, before its access", 0x1010, 0, 0, 0, 57, 57, n);
		interrupted("behind the access", 0x1011, 0, 0, 0, 57, 58, n);
		interrupted("behind the count", 0x1012, 0, 0, 0, 57, 57, n);
		interrupted("at the loop's end", 0x1020, 0, 0, 0, 100, 100, n);
		interrupted("behind its log", 0x1020, 8, 8, 8, 100, 100, n);
		interrupted("behind its log, committed", 0x1020, 8, 0, 8, 100, 100, n);
		interrupted("the log pointer put back", 0x1021, 8, 6, 0, 100, 101, n);
		interrupted("behind the write", 0x1021, 8, 8, 0, 100, 101, n);
		interrupted("before the log behind it", 0x1022, 8, 8, 0, 100, 102, n);
		interrupted("at a branch", 0x1022, 16, 16, 0, 100, 102, n);
		interrupted("behind its outcome", 0x1022, 17, 17, 1, 100, 102, n);
		interrupted("behind its outcome, committed", 0x1022, 17, 0, 1, 100, 102, n);
	}
}

/* a handler within a handler, on another stack above; the inner one comes before the outer's first mark, at its
 * first instruction, at its return, and in what it returns to */
static void test_nested(void)
{
	const uint64_t alt = RSP0 + 0x10000;
	struct ptrace_rec outer[] = {REC(0x2000, 0x9000, 1, R), REC(0x2001, HRSP, 8, R)},
			  inner[] = {REC(0x2000, 0x9100, 1, R), REC(0x2001, alt, 8, R)};
	static const uint32_t rip[] = {0x2000, 0x2000, 0x2001, 0x3000, 0x3002};

	for (size_t k = 0; k < NELEM(rip); k++) {
		struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1000},
				  t = {.where = RUN_STOP_IN_COPY, .frame = alt + 8, .rip = rip[k]};
		struct ptrace_rec want[4];
		size_t n = 0, at = k < 2 ? 0 : k == 2 ? 1 : 2;
		char line[60];

		s.gpr[SEM_RBX] = 0xb;
		t.gpr[SEM_RSP] = k < 3 ? HRSP : HRSP + 8;
		t.gpr[SEM_RDX] = 0x9000;
		t.where = k == 4 ? RUN_STOP_IN_HOOK : RUN_STOP_IN_COPY;
		reset();
		leader(0x1000, 0, MAP_LEADER_RETURN);
		block(0x1000, 0, 1);
		op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
		handler_map();
		put_cut(0, s);
		if (k)
			put_handler(0x9000, HRSP);
		if (k > 2)
			put_restorer(HRSP);
		k == 4 ? put_signal(t) : put_cut(0, t);
		put_handler(0x9100, alt);
		put_return(alt);
		if (!k)
			put_handler(0x9000, HRSP);
		if (k <= 2)
			put_restorer(HRSP);
		put_event(RUN_EV_SIGRET, FRAME);
		put_event(RUN_EV_EXIT, 0);
		for (size_t i = 0; i <= 2; i++) {
			for (size_t x = 0; i == at && x < 2; x++)
				want[n++] = inner[x];
			if (i < 2)
				want[n++] = outer[i];
		}
		snprintf(line, sizeof(line), "a signal in a handler, %zu", k);
		expect(line, go(), WALK_EXIT, want, 4);
		check(st.instructions == 1 + 2 * 4, line);
	}
}

/* A handler that leaves by longjmp, to a place in the caller of what it interrupted; on its stack or another. What
 * was interrupted has run half of its block. Frames of the caller are as before. */
static void test_handler_left(void)
{
	static const uint64_t stacks[] = {HRSP, RSP0 + 0x10000, 0x10000};
	uint32_t resync, call;

	for (size_t k = 0; k < NELEM(stacks); k++) {
		struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = stacks[k] + 8, .rip = 0x1101};
		struct ptrace_rec want[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x1100, 0xb, 1, R),
					    REC(0x2000, 0x9000, 1, R),	 REC(0x1200, RSP0, 4, W),
					    REC(0x1201, RSP0 - 8, 8, W), REC(0x2100, RSP0 - 8, 8, R)};
		uint32_t jump;

		s.gpr[SEM_RBX] = 0xb;
		s.gpr[SEM_RSP] = RSP0 - 8;
		reset();
		leader(0x1000, 0, MAP_LEADER_RETURN);
		block(0x1000, 0, 1);
		call_ops(0x1000);
		call = op(SEM_CALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
		ops[call].imm = SEM_TARGETS(nop, NONE32);
		block(0x1100, 0, 3);
		insn();
		rec(0x1100, PTRACE_R, 1, SEM_RBX, 0);
		insn();
		rec(0x1101, PTRACE_R, 2, SEM_RBX, 0);
		insn();
		op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
		resync = site(0x1200, MAP_SITE_RESYNC, nop);
		op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
		block(0x1200, 0, 2);
		rec(0x1200, PTRACE_W, 4, SEM_RSP, 0);
		call_ops(0x1201);
		call = op(SEM_CALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
		jump = nop;
		block(0x1210, 0, 1);
		op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
		ops[call].imm = SEM_TARGETS(nop, jump);
		block(0x2100, 3, 1);
		ret_ops(0x2100);
		handler = site(0x2000, MAP_SITE_ENTRY, nop);
		op(SEM_LOG, 8, SEM_RDX, SEM_NONE, SEM_NONE, 0);
		op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
		block(0x2000, 1, 2);
		rec(0x2000, PTRACE_R, 1, SEM_RDX, 0);
		op(SEM_JMPX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
		put_cut(0, s);
		put_handler(0x9000, stacks[k]);
		put_mark(RUN_MARK_RESYNC, 100 + resync);
		put64(RSP0);
		put_event(RUN_EV_EXIT, 0);
		expect("a handler that is left", go(), WALK_EXIT, want, 6);
		check(st.instructions == 1 + 1 + 2 + 2 + 1 + 1, "a handler that is left: instructions");
		put_mark(RUN_MARK_RET, 0);
	}
}

static void put_resume(uint64_t frame, uint32_t rip, uint64_t rbx, uint64_t rflags)
{
	struct run_resume r = {.frame = frame, .rip = rip ? BIAS + rip : 0xdead0000, .rflags = rflags};

	r.gpr[SEM_RBX] = rbx;
	r.gpr[SEM_RSP] = RSP0;
	put_event(RUN_EV_RESUME, sizeof(r));
	put(&r, sizeof(r));
}

/*   1000  W (rbx)    1001  R (rbx,2); log rcx; R (rcx)    1002  je 1000, computed     1010  exit
 * A handler that changes rip, rbx and flags; also one whose signal came at the system call. */
static void test_resume(void)
{
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1001};
	struct ptrace_rec want[] = {REC(0x1000, 0xb, 1, W),   REC(0x2000, 0x9000, 1, R),
				    REC(0x2001, HRSP, 8, R),  REC(0x1001, 0xc00, 2, R),
				    REC(0x1001, 0xccc, 1, R), REC(0x2000, 0x9001, 1, R),
				    REC(0x2001, HRSP, 8, R),  REC(0x1000, 0xd00, 1, W),
				    REC(0x1001, 0xd00, 2, R), REC(0x1001, 0xddd, 1, R)};

	for (int opaque = 0; opaque < 2; opaque++) {
		reset();
		s.gpr[SEM_RBX] = 0xb;
		leader(0x1000, 0, MAP_LEADER_RETURN);
		block(0x1000, 0, 3);
		insn();
		rec(0x1000, PTRACE_W, 1, SEM_RBX, 0);
		insn();
		rec(0x1001, PTRACE_R, 2, SEM_RBX, 0);
		op(SEM_LOG, 8, SEM_RCX, SEM_NONE, SEM_NONE, 0);
		rec(0x1001, PTRACE_R, 1, SEM_RCX, 0);
		insn();
		op(SEM_COND, 0, SEM_T0, SEM_NONE, SEM_FR, 4);
		op(SEM_JCC, 0, SEM_NONE, SEM_T0, SEM_NONE, SEM_TARGETS(0, nop + 1));
		block(0x1010, 0, 1);
		op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
		handler_map();
		put_cut(0, s);
		put_handler(0x9000, HRSP);
		put_restorer(HRSP);
		put_resume(FRAME, 0x1001, 0xc00, 0x202);
		put64(0xccc);
		put_signal((struct run_signal){.where = RUN_STOP_IN_HOOK, .frame = FRAME, .rip = 0x1010});
		put_handler(0x9001, HRSP);
		put_restorer(HRSP);
		put_resume(FRAME, opaque ? 0 : 0x1000, 0xd00, 0x202);
		if (!opaque)
			put64(0xddd);
		put_event(RUN_EV_EXIT, 0);
		expect("a handler that changes registers", go(), WALK_EXIT, want, opaque ? 7 : 10);
		check(st.instructions == (opaque ? 1 + 2 + 2 * 4 : 1 + 2 + 2 * 4 + 4),
		      "a handler that changes registers: instructions");
	}
}

/*   1000  call 1100    1005  R (rbx,1), R (xmm lane,2)
 *   1100  rbx = 0xcc    1101  syscall    1103  R (rax,4); ret
 * The replay of a recording ends before the system call; another image goes on with it. No table tells rbx. */
static void hand_map(void)
{
	uint32_t to;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 2);
	op(SEM_IMM, 8, SEM_V(1, 0), SEM_NONE, SEM_NONE, 0x1a0);
	adjust(-8);
	to = op(SEM_CALL, 0, 0, SEM_NONE, 0, 0);
	leader(0x1005, nop, MAP_LEADER_RETURN);
	ops[to].imm = SEM_TARGETS(nop + 4, nop);
	block(0x1005, 0, 2);
	rec(0x1005, PTRACE_R, 1, SEM_RBX, 0);
	rec(0x1005, PTRACE_R, 2, SEM_V(1, 0), 0);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
	block(0x1100, 1, 2);
	insn();
	op(SEM_IMM, 8, SEM_RBX, SEM_NONE, SEM_NONE, 0xcc);
	insn();
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, nop + 1));
	leader(0x1103, nop, 0);
	block(0x1103, 1, 2);
	rec(0x1103, PTRACE_R, 4, SEM_RAX, 0);
	ret_ops(0x1103);
}

static void test_hand(void)
{
	struct ptrace_rec want[] = {REC(0x1103, 0xa0, 4, R), REC(0x1103, RSP0 - 8, 8, R),
				    REC(0x1005, 0xb, 1, R), REC(0x1005, 0x1a0, 2, R)};
	struct run_resume r = {.rip = BIAS + 0x1101, .rflags = 0x202};

	for (int other = 0; other < 2; other++) { /* 1: the replay ended elsewhere */
		uint64_t n;

		hand_map();
		put_event(RUN_EV_EXEC, BIAS + (other ? 0x1103 : 0x1101));
		start_rsp = RSP0;
		expect("a replay that ends", go(), WALK_EXIT, want, 0);
		check(res.exec && handed && st.instructions == 4, "what it has left");
		n = st.instructions;
		hand_map();
		r.gpr[SEM_RBX] = 0xcc;
		r.gpr[SEM_RSP] = start_rsp = RSP0 - 8;
		put_event(RUN_EV_RESUME, sizeof(r));
		put(&r, sizeof(r));
		put_mark(RUN_MARK_SYSCALL, 39);
		put64(0xa0);
		put_event(RUN_EV_EXIT, 0);
		if (other) {
			expect("callers that are not at hand", go_from(0x1101, false), WALK_LOST, want, 2);
			continue;
		}
		expect("callers from the image before", go_from(0x1101, false), WALK_EXIT, want, 4);
		check(n + st.instructions == 4 + 2 + 2, "the system call is counted once");
	}
	hand_map();
	put_event(RUN_EV_EXEC, 0);
	start_rsp = RSP0;
	expect("an exec", go(), WALK_EXIT, want, 0);
	check(res.exec && !handed, "leaves nothing");
}

/* entered where the map has no entry: untraced code jumps into the middle of a block */
static void test_unexpected(void)
{
	struct ptrace_rec want[] = {REC(0x1101, 0xe00, 2, R)};

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	op(SEM_JMPX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	block(0x1100, 0, 3);
	insn();
	rec(0x1100, PTRACE_R, 1, SEM_RBX, 0);
	insn();
	rec(0x1101, PTRACE_R, 2, SEM_RBX, 0);
	insn();
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
	put_event(RUN_EV_UNEXPECTED, BIAS + 0x1101);
	put_resume(0, 0x1101, 0xe00, 0x202);
	put_event(RUN_EV_EXIT, 0);
	expect("an unexpected entry", go(), WALK_EXIT, want, 1);
	check(st.instructions == 1 + 2 && res.unexpected == 1, "an unexpected entry: instructions");
	ops[4] = (struct sem_op){SEM_LOAD, 8, SEM_RCX, SEM_RSP, SEM_NONE, 0};
	expect("an unexpected entry that needs memory", go(), WALK_LOST, want, 0);
}

/* rep movsb is interrupted twice, and before its first element */
static void test_part(void)
{
	struct sem_vec movs = {.kind = SEM_REP_MOVS, .count = SEM_RCX, .df = SEM_DF};
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1001};
	static const uint64_t left[] = {5, 5, 3, 1};
	struct ptrace_rec want[18];
	size_t n = 0;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 3);
	insn();
	op(SEM_IMM, 8, SEM_RSI, SEM_NONE, SEM_NONE, 0x7000);
	op(SEM_IMM, 8, SEM_RDI, SEM_NONE, SEM_NONE, 0x8000);
	op(SEM_IMM, 8, SEM_RCX, SEM_NONE, SEM_NONE, 5);
	insn();
	op(SEM_RECREP, 1, SEM_NONE, SEM_RSI, SEM_RDI, SEM_RECIMM(0, 0x1001));
	memcpy(&ops[nop++], &movs, 16);
	insn();
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
	handler_map();
	for (uint64_t done = 0, i = 0; i <= 4; i++) {
		uint64_t to = i < 4 ? 5 - left[i] : 5;

		for (; done < to; done++) {
			want[n++] = (struct ptrace_rec)REC(0x1001, 0x7000 + done, 1, R);
			want[n++] = (struct ptrace_rec)REC(0x1001, 0x8000 + done, 1, W);
		}
		if (i == 4)
			break;
		s.gpr[SEM_RCX] = 5 - done;
		s.gpr[SEM_RSI] = 0x7000 + done;
		s.gpr[SEM_RDI] = 0x8000 + done;
		put_cut(0, s);
		put_handler(0x9000, HRSP);
		put_return(HRSP);
		want[n++] = (struct ptrace_rec)REC(0x2000, 0x9000, 1, R);
		want[n++] = (struct ptrace_rec)REC(0x2001, HRSP, 8, R);
	}
	put_event(RUN_EV_EXIT, 0);
	expect("a string instruction in parts", go(), WALK_EXIT, want, n);
	check(st.instructions == 3 + 4 * 4, "a string instruction in parts: instructions");
}

/* rep cmpsb has run, rcx behind it is not in the log yet */
static void test_part_count(void)
{
	struct sem_vec cmps = {.kind = SEM_REP_CMPS, .count = SEM_T0, .df = SEM_DF};
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1002};
	struct ptrace_rec want[] = {
		REC(0x1001, 0x7000, 1, R), REC(0x1001, 0x8000, 1, R), REC(0x1001, 0x7001, 1, R),
		REC(0x1001, 0x8001, 1, R), REC(0x2000, 0x9000, 1, R), REC(0x2001, HRSP, 8, R),
		REC(0x2000, 0x9000, 1, R), REC(0x2001, HRSP, 8, R),   REC(0x1002, 0x33, 1, R)};

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 4);
	insn();
	op(SEM_IMM, 8, SEM_RSI, SEM_NONE, SEM_NONE, 0x7000);
	op(SEM_IMM, 8, SEM_RDI, SEM_NONE, SEM_NONE, 0x8000);
	op(SEM_IMM, 8, SEM_RCX, SEM_NONE, SEM_NONE, 5);
	insn();
	op(SEM_LOG, 8, SEM_T0 + 1, SEM_NONE, SEM_NONE, 0);
	op(SEM_SUB, 8, SEM_T0, SEM_RCX, SEM_T0 + 1, 0);
	op(SEM_RECREP, 1, SEM_NONE, SEM_RSI, SEM_RDI, SEM_RECIMM(0, 0x1001));
	memcpy(&ops[nop++], &cmps, 16);
	insn();
	op(SEM_LOG, 8, SEM_RBX, SEM_NONE, SEM_NONE, 0);
	rec(0x1002, PTRACE_R, 1, SEM_RBX, 0);
	insn();
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
	handler_map();
	s.gpr[SEM_RCX] = 3;
	for (int i = 0; i < 2; i++) {
		put_cut(0, s);
		put_handler(0x9000, HRSP);
		put_return(HRSP);
	}
	put64(3);
	put64(0x33);
	put_event(RUN_EV_EXIT, 0);
	expect("a count that is not logged yet", go(), WALK_EXIT, want, 9);
}

/* each turn of the loop looks the same: in registers, or but for memory */
static void test_same(void)
{
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1010};

	for (int idle = 0; idle < 2; idle++) {
		reset();
		leader(0x1000, 0, MAP_LEADER_RETURN);
		block(0x1000, 0, 1);
		op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(1, 0));
		ops[1].imm = SEM_TARGETS(nop, 0);
		block(0x1010, 0, 1);
		insn();
		if (!idle)
			rec(0x1010, PTRACE_W, 1, SEM_RSP, 0);
		op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop - 2 + idle, 0));
		handler_map();
		put_cut(0, s);
		put_handler(0x9000, HRSP);
		put_event(RUN_EV_EXIT, 0);
		check(go() == (idle ? WALK_EXIT : WALK_LOST) && (idle || strstr(res.why, "looks the same")),
		      idle ? "an endless loop that does nothing" : "a loop all of whose turns look the same");
	}
}

/* A function is called from two places in each of three turns, nothing is logged. What it uses itself is the same each time:
 * the caller's count tells the turn, in a register that it passes on, or in one that no instruction of it writes; the
 * return address tells the place. */
static void turns_map(unsigned count)
{
	uint32_t head, call[2], end;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	insn();
	op(SEM_IMM, 8, count, SEM_NONE, SEM_NONE, 3);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	head = block(0x1010, 0, 1);
	insn();
	call_ops(0x1010);
	call[0] = op(SEM_CALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	block(0x1015, 0, 1);
	insn();
	call_ops(0x1015);
	call[1] = op(SEM_CALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	block(0x101a, 0, 1);
	insn();
	op(SEM_ADD, 8, count, count, SEM_NONE, (uint64_t)-1);
	end = op(SEM_JCC, 0, SEM_NONE, count, SEM_NONE, 0);
	ops[end].imm = SEM_TARGETS(head, nop);
	exit_block(0x1020);
	for (int i = 0; i < 2; i++)
		ops[call[i]].imm = SEM_TARGETS(nop, call[i] + 1);
	block(0x1100, 1, 2);
	groups[1].flags = 1 * MAP_G_UNWRITTEN; /* rbx */
	insn();
	rec(0x1100, PTRACE_W, 1, SEM_RSP, 0);
	insn();
	ret_ops(0x1101);
	handler_map();
}

static void test_turns(void)
{
	for (unsigned k = 0; k < 2 * 3 * 2; k++) {
		struct run_signal s = {
			.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1100, .nstack = 512};
		unsigned count = k & 1 ? SEM_RBX : SEM_RCX, turn = k / 4, place = k / 2 & 1;
		uint64_t to = BIAS + (place ? 0x101a : 0x1015);
		struct ptrace_rec want[20];
		size_t n = 0;

		turns_map(count);
		s.gpr[count] = 3 - turn;
		s.gpr[SEM_RSP] = RSP0 - 8;
		memcpy(s.stack + RUN_SIGNAL_BELOW, &to, 8);
		put_cut(0, s);
		put_handler(0x9000, HRSP);
		put_return(HRSP);
		put_event(RUN_EV_EXIT, 0);
		for (unsigned i = 0; i < 6; i++) {
			want[n++] = (struct ptrace_rec)REC(i & 1 ? 0x1015 : 0x1010, RSP0 - 8, 8, W);
			if (i == turn * 2 + place) {
				want[n++] = (struct ptrace_rec)REC(0x2000, 0x9000, 1, R);
				want[n++] = (struct ptrace_rec)REC(0x2001, HRSP, 8, R);
			}
			want[n++] = (struct ptrace_rec)REC(0x1100, RSP0 - 8, 1, W);
			want[n++] = (struct ptrace_rec)REC(0x1101, RSP0 - 8, 8, R);
		}
		expect(k & 1 ? "the turn that a kept register tells"
			     : "the turn that a passed register tells",
		       go(), WALK_EXIT, want, n);
		groups[1].flags = 0;
		check(k & 1 ? go() == WALK_LOST : go() == WALK_EXIT,
		      "a register that may be written tells nothing");
	}
}

static void test_bad_cuts(void)
{
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1010};

	s.gpr[SEM_RSI] = 0x5000;
	s.gpr[SEM_RCX] = 57;
	for (int k = 0; k < 8; k++) {
		enum walk_end end;

		stop_map();
		handler_map();
		nstream = 8;
		if (k == 1)
			s.rip = 0x1017; /* no instruction */
		if (k == 3)
			s.where = RUN_STOP_IN_HOOK;
		put_cut(0, s);
		s.rip = 0x1010;
		s.where = RUN_STOP_IN_COPY;
		put_handler(0x9000, HRSP);
		if (k == 2)
			cuts[0].at = 4;
		if (k == 4)
			stream[8] = 7;
		if (k == 5)
			cuts[0].bytes = 4096;
		if (k == 6) {
			put_restorer(HRSP);
			put_event(RUN_EV_SIGRET, FRAME + 16);
		}
		if (k == 7) {
			cuts[ncut++] = cuts[0];
		}
		put_event(RUN_EV_EXIT, 0);
		end = go();
		check(k ? end == (k == 5 || k == 7 ? WALK_LOG_ENDS : WALK_LOST) : end == WALK_EXIT, res.why);
	}
}

/* the instructions of an interrupted block, for those who write them down */
static void test_signal_blocks(void)
{
	struct run_signal s = {.where = RUN_STOP_IN_COPY, .frame = FRAME, .rip = 0x1011};
	size_t n = 0;

	stop_map();
	handler_map();
	nstream = 8;
	s.gpr[SEM_RSI] = 0x5000;
	s.gpr[SEM_RCX] = 0;
	put_cut(0, s);
	put_handler(0x9000, HRSP);
	put_return(HRSP);
	put64(0x6000);
	put64(0x7777);
	put8(0);
	put_event(RUN_EV_EXIT, 0);
	check(go_from(0x1000, true) == WALK_EXIT, "blocks around a handler");
	while (n < ngot && got[n].kind != PTRACE_R)
		n++;
	check(got[n + 1].kind == WALK_BLOCK && !got[n + 1].addr && got[n + 1].ip == BIAS + 0x1011,
	      "the block stops");
	check(got[n + 2].kind == WALK_BLOCK && got[n + 2].ip == BIAS + 0x2000, "the handler's");
	while (n < ngot && got[n].ip != BIAS + 0x3000)
		n++;
	check(got[n + 1].kind == WALK_BLOCK && got[n + 1].ip == BIAS + 0x1011 && got[n + 1].size == 2,
	      "the block goes on");
}

static void test_ijmp(void)
{
	struct ptrace_rec want[] = {REC(0x1010, 0xb, 1, R)};
	uint32_t at;

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	op(SEM_IJMP_LOG, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	at = nop;
	leader(0x1010, at, MAP_LEADER_TARGET);
	block(0x1010, 0, 1);
	rec(0x1010, PTRACE_R, 1, SEM_RBX, 0);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, 0));
	put32((uint32_t)(BIAS + 0x1010));
	put_event(RUN_EV_EXIT, 0);
	expect("jump table", go(), WALK_EXIT, want, 1);
	blocks[1].group = 1;
	expect("a leader of another group needs a mark", go(), WALK_EXIT, want, 0);
}

/* what the PLT's first entry does: push, jump to code of another group, which takes it off and goes on */
static void test_pushed(void)
{
	struct ptrace_rec want[] = {REC(0x1000, RSP0 - 8, 8, W), REC(0x2000, RSP0 - 8, 8, R)};

	reset();
	leader(0x1000, 0, MAP_LEADER_RETURN);
	block(0x1000, 0, 1);
	call_ops(0x1000);
	op(SEM_JMPX, 0, SEM_NONE, SEM_NONE, SEM_NONE, 0);
	site(0x2000, MAP_SITE_ENTRY, nop);
	leader(0x2000, nop + 1, MAP_LEADER_ENTRY);
	op(SEM_JMP, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(nop + 1, 0));
	block(0x2000, 1, 2);
	rec(0x2000, PTRACE_R, 8, SEM_RSP, 0);
	adjust(8);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, 0));
	put_mark(RUN_MARK_ENTRY, 100);
	put_event(RUN_EV_EXIT, 0);
	expect("a jump with something pushed", go(), WALK_EXIT, want, 2);
	check(!st.opaque_entries && !st.callbacks, "nothing untraced ran between a jump and its target");
}

/* ---- streams that say how they begin ------------------------------------------------------------ */

static struct run_thread_start begin_at(uint32_t vaddr)
{
	struct run_thread_start s = {.rip = BIAS + vaddr, .rflags = 0x202, .fsbase = 0xf5, .modules = 1};

	s.gpr[SEM_RSP] = RSP0;
	s.gpr[SEM_RBX] = 0xbb;
	return s;
}

static void put_start(const struct run_thread_start *s, const void *stack)
{
	put_event(RUN_EV_START, sizeof(*s) + s->stack_size);
	put(s, sizeof(*s));
	put(stack, s->stack_size);
}

/* 2010: behind a system call; pops rbx and returns. 1005: where main goes on */
static void thread_map(void)
{
	reset();
	memset(rodata, 1, 64);
	leader(0x1005, nop, MAP_LEADER_RETURN);
	block(0x1005, 0, 3);
	rec(0x1005, PTRACE_R, 1, SEM_RBX, 0);
	op(SEM_LOAD, 8, SEM_RCX, SEM_RSP, SEM_NONE, 8);
	rec(0x1006, PTRACE_R, 1, SEM_RCX, 0);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
	leader(0x2010, nop, 0);
	block(0x2010, 1, 2);
	rec(0x2010, PTRACE_R, 8, SEM_RSP, 0);
	adjust(8);
	ret_ops(0x2011);
	site(0x3000, MAP_SITE_ENTRY, nop);
	leader(0x3000, nop, MAP_LEADER_ENTRY);
	block(0x3000, 2, 2);
	rec(0x3000, PTRACE_R, 2, SEM_FSBASE, 0);
	op(SEM_CALLX, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, nop + 1));
	leader(0x3005, nop, MAP_LEADER_RETURN);
	op(SEM_RMARK, 0, SEM_NONE, SEM_NONE, SEM_NONE, 5);
	exit_block(0x3005);
}

/* How to unwind 2000-20ff: rbx was pushed. LSB Core 5.0, 10.6 */
static void unwind_table(void)
{
	static const uint8_t cie[] = {20, 0,	0,    0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
				      1,  0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};
	int32_t hdr[] = {0x3b031b01, 0x50 - 0x44, 1, 0x2000 - 0x9040, 0x9080 - 0x9040};
	int32_t fde[] = {20, 0x84 - 0x60, 0x2000 - 0x9088, 0x100, 0x83100e00, 2};

	memcpy(rodata + 0x40, hdr, sizeof(hdr));
	memcpy(rodata + 0x60, cie, sizeof(cie));
	memcpy(rodata + 0x80, fde, sizeof(fde));
}

static void test_thread_start(void)
{
	struct ptrace_rec own[] = {REC(0x3000, 0xf5, 2, R)};
	struct run_thread_start s;

	tid = 8;
	thread_map();
	s = begin_at(0x3000);
	put_start(&s, NULL);
	put_back(COPY, 0x3005, s.gpr[SEM_RSP] + 8, 5);
	put_event(RUN_EV_TIME, 99);
	put_event(RUN_EV_EXIT, 3);
	expect("a thread with a stack of its own", go(), WALK_EXIT, own, 1);
	check(res.arg == 3, "status of a thread");

	thread_map();
	s.rip = 0x1234;
	put_start(&s, NULL);
	put_mark(RUN_MARK_ENTRYX, 100);
	put64(RSP0 - 64);
	put_back(COPY, 0x3005, RSP0 - 56, 5);
	put_event(RUN_EV_EXIT, 0);
	expect("a thread that opaque code made", go(), WALK_EXIT, own, 1);

	thread_map();
	s = begin_at(0x3000);
	put_event(RUN_EV_START, sizeof(s) + 8);
	put(&s, sizeof(s));
	expect("a start whose sizes differ", go(), WALK_LOST, own, 0);
	thread_map();
	s.stack_size = ~0ull - 100;
	s.stack = 4096;
	put_event(RUN_EV_START, sizeof(s) + s.stack_size);
	put(&s, sizeof(s));
	expect("a stack that wraps", go(), WALK_LOST, own, 0);
	thread_map();
	s = begin_at(0x3000);
	s.stack = RSP0;
	s.stack_size = sizeof(rodata);
	put_start(&s, rodata);
	nstream -= 200;
	expect("a start that is cut", go(), WALK_LOG_ENDS, own, 0);
	thread_map();
	s = begin_at(0x3000);
	s.modules = 2;
	put_start(&s, NULL);
	expect("a start with a module record that is not there", go(), WALK_LOST, own, 0);
	thread_map();
	s.modules = 1;
	put_start(&s, NULL);
	put_start(&s, NULL);
	expect("a second start", go(), WALK_LOST, own, 1);
	tid = 7;
}

static void test_fork(void)
{
	uint64_t stack[4] = {0xbbbb, BIAS + 0x1005, 7, 0xcccc};
	struct ptrace_rec want[] = {REC(0x2010, RSP0, 8, R), REC(0x2011, RSP0 + 8, 8, R),
				    REC(0x1005, 0xbbbb, 1, R), REC(0x1006, 0xcccc, 1, R)};
	struct sem_vec xs = {.kind = SEM_XS_SAVE, .count = SEM_RAX, .df = SEM_RDX};
	struct run_thread_start s = begin_at(0x2010);

	tid = 8;
	s.flags = RUN_START_FORK;
	s.stack = RSP0;
	s.stack_size = sizeof(stack);
	thread_map();
	unwind_table();
	put_start(&s, stack);
	put_event(RUN_EV_EXIT, 0);
	expect("a forked process returns to its parent's caller", go(), WALK_EXIT, want, 4);
	stack[1]++;
	thread_map();
	unwind_table();
	put_start(&s, stack);
	put_event(RUN_EV_EXIT, 0);
	expect("a return address that is no return site", go(), WALK_EXIT, want, 2);
	stack[1]--;
	thread_map();
	put_start(&s, stack);
	put_event(RUN_EV_EXIT, 0);
	rodata[0x40] = 0; /* nothing says how to unwind: the target is found in memory, rbx is not */
	ops[2] = ops[4];
	ops[3] = ops[4];
	blocks[0].ninsn = 1;
	want[2].addr = 0xbb;
	expect("without a table", go(), WALK_EXIT, want, 3);

	reset();
	s = begin_at(0x1000);
	s.flags = RUN_START_FORK;
	leader(0x1000, nop, 0);
	block(0x1000, 0, 1);
	op(SEM_IMM, 8, SEM_RAX, SEM_NONE, SEM_NONE, -1);
	op(SEM_IMM, 8, SEM_RDX, SEM_NONE, SEM_NONE, 0);
	op(SEM_RECXS, 0, SEM_RECDST(0, PTRACE_W), SEM_RBX, SEM_NONE, SEM_RECIMM(0, 0x1000));
	memcpy(&ops[nop++], &xs, 16);
	op(SEM_SYSCALL, 0, SEM_NONE, SEM_NONE, SEM_NONE, SEM_TARGETS(0, NONE32));
	want[0] = (struct ptrace_rec)REC(0x1000, 0xbb, 832, W);
	put_start(&s, NULL);
	put_event(RUN_EV_EXIT, 0);
	expect("the state's layout is that of its ancestor", go(), WALK_EXIT, want, 1);
	tid = 7;
}

/* A module that another thread has loaded: an unload stands before its record, so it is not in effect from
 * the start. */
static void test_others_module(void)
{
	struct ptrace_rec want[] = {REC(0x3000, 0xf5, 2, R), REC(0x3000 + BIAS2 - BIAS, 0xf5, 2, R)};
	struct run_thread_start s = begin_at(0x3000);

	tid = 8;
	nmod = 3;
	thread_map();
	put_start(&s, NULL);
	put_mark(RUN_MARK_ENTRYX, 200);
	put64(RSP0 - 64);
	put_back(COPY2, 0x3005, RSP0 - 56, 5);
	put_event(RUN_EV_MODULE, 2); /* known by now */
	put_event(RUN_EV_EXIT, 0);
	expect("a mark in a module another thread has loaded", go(), WALK_EXIT, want, 2);

	thread_map();
	s.rip += BIAS2 - BIAS;
	s.modules = 3;
	put_start(&s, NULL);
	put_back(COPY2, 0x3005, s.gpr[SEM_RSP] + 8, 5);
	put_event(RUN_EV_EXIT, 0);
	expect("a start in a module another thread has loaded", go(), WALK_EXIT, want + 1, 1);
	thread_map();
	put_start(&s, NULL);
	put_mark(RUN_MARK_ENTRYX, 300);
	put64(RSP0 - 64);
	expect("a mark no module can have", go(), WALK_LOST, want + 1, 1);
	nmod = 1;
	tid = 7;
}

int main(void)
{
	test_loop();
	test_calls();
	test_opaque();
	test_link();
	test_resync();
	test_ends();
	test_vec();
	test_memory();
	test_memory_bound();
	test_stop();
	test_signals();
	test_nested();
	test_handler_left();
	test_resume();
	test_hand();
	test_unexpected();
	test_part();
	test_part_count();
	test_same();
	test_turns();
	test_bad_cuts();
	test_signal_blocks();
	test_ijmp();
	test_pushed();
	test_thread_start();
	test_fork();
	test_others_module();
	walk_result_free(&res);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
