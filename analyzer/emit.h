/* SPDX-License-Identifier: MIT
 *
 * emit.h - what the files of the back end share
 *
 *   live.c       registers and flags live at each instruction, across calls
 *   keep.c       groups that return with the log pointer in r15
 *   patch.c      what of the original text can be patched; islands; calls to emulate
 *   emit_code.c  a buffer of machine code: labels, short branches that grow, fix-ups, address map
 *   r15.c        instructions that name r15
 *   r15_loop.c   r15 in a register throughout a loop
 *   emit_log.c   the stores into the log
 *   emit_cycle.c the copy's flow graph, and the space checks in its cycles
 *   emit_space.c where the other ones go
 *   emit_ctl.c   stubs and control transfers
 *   emit.c       one group
 *   map_write.c  all groups, the file (map_sect.c: its sections; map_out.c: into it)
 */
#ifndef EMIT_H
#define EMIT_H

#include <string.h>
#include <Zydis/Zydis.h>
#include "an.h"
#include "glue.h"
#include "run.h"

#define R15 15u
#define FLAGS_BIT (1u << 16)
#define GPR_ALL 0xffffu
#define CALLER_SAVED 0x0fc7u /* rax rcx rdx rsi rdi r8-r11 (psABI 3.2.1) */
#define NOREG 0xff

enum { X_RAX, X_RCX, X_RDX, X_RBX, X_RSP, X_RBP, X_RSI, X_RDI };

/* A decoded instruction with its bytes (of the file). */
struct dec {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	const uint8_t *b;
	uint32_t vaddr;
};
int dec_insn(const struct module *m, const struct an_insn *i, struct dec *d);
/* hardware number of the general register that contains r, or -1 */
int dec_gpr(ZydisRegister r);
/* all general registers the instruction touches in any way, bit mask */
uint32_t dec_gprs(const struct dec *d);

/* live.c's per-group data, in an_group.live. */
struct live {
	uint32_t *use,
		*def; /* per instruction, until live_module is done; def: must be overwritten entirely */
	uint32_t *before; /* live before each instruction */
	uint32_t *bin; /* live at each block's start */
	uint32_t *need; /* the same, of what is read before it is written: live.c, 3 */
	uint32_t changed; /* pass over all groups in which need grew */
	bool late; /* a callee's need was not known yet */
	uint32_t own, clob; /* caller-saved registers that callers must take for overwritten */
	uint32_t retextra; /* restored by hand-written code: live at ret */
	uint32_t ureach; /* liveret as found so far */
	uint8_t *emul; /* per instruction: call emulated in the copy (patch.c) */
	const struct form **form; /* per instruction, found by live_facts; NULL where it is not kept */
	uint32_t nop; /* ops of all of them */
	bool done;
	bool pads; /* has landing pads */
	struct live_block *sum; /* per block, while live_module runs */
};
int live_module(struct module *m, int jobs);
enum map_reason live_facts(const struct module *m, struct an_group *g); /* or why it cannot be copied */
struct form;
void live_form(struct form *f, const struct dec *d, const struct an_insn *i); /* its part of a form */
void live_drop(struct an_group *g); /* all that is kept by instruction and block; live_facts finds it again */
void live_free(struct an_group *g);

/* ---- emit_code.c ---- */

struct branch {
	uint32_t pos, label;
	uint8_t op; /* 0xeb, 0x70|cc */
	bool rel32;
};
struct lref {
	uint32_t pos, label;
	bool rel8;
}; /* disp field at pos that names a label */
struct code {
	uint8_t *b;
	uint32_t n, cap;
	struct branch *br;
	uint32_t nbr, capbr;
	struct lref *lr;
	uint32_t nlr, caplr;
	struct label {
		uint32_t pos; /* AN_NONE: nowhere yet */
		uint32_t nbr; /* branches before it */
	} * label;
	uint32_t nlabel, caplabel;
	struct map_fixup *fix;
	uint32_t nfix, capfix;
	struct emit_ref *ref;
	uint32_t nref, capref;
	struct map_xlat *xl;
	uint32_t nxl, capxl;
	bool start; /* what is appended next is the copy of instruction cur.vaddr itself, with its logs */
	struct map_xlat cur; /* state before the next instruction appended, but for: */
	uint32_t off; /* bytes of the stream stored from r15 on */
	uint32_t ahead; /* the last of them that instruction cur.vaddr, which has not run yet, has logged */
	const char *fail; /* first thing that went wrong */
};
/* All arrays are of scratch.h and gone with the group. `insns` and `blocks`: what is going to be emitted, about */
void code_init(struct code *c, uint32_t insns, uint32_t blocks);
/* what grows is made larger: one more is behind the n */
void *code_more(void *p, uint32_t n, uint32_t *cap, size_t size);
#define CODE_ROOM 16
/* where the next bytes go: there is room for CODE_ROOM */
static inline uint8_t *code_room(struct code *c)
{
	if (c->cap - c->n < CODE_ROOM)
		c->b = code_more(c->b, c->cap + CODE_ROOM, &c->cap, 1);
	return c->b + c->n;
}
void code_bytes(struct code *c, const void *p, uint32_t n); /* any number */
static inline void code_byte(struct code *c, unsigned v)
{
	*code_room(c) = (uint8_t)v;
	c->n++;
}
static inline void code_u32(struct code *c, uint32_t v)
{
	memcpy(code_room(c), &v, 4);
	c->n += 4;
}
void code_insn(struct code *c); /* an instruction starts here: notes the state */
/* 1 to 15 bytes, as memcpy, which would be called */
static inline void code_copy(uint8_t *to, const uint8_t *from, unsigned n)
{
	uint64_t a, z;

	if (n >= 8) {
		memcpy(&a, from, 8);
		memcpy(&z, from + n - 8, 8);
		memcpy(to, &a, 8);
		memcpy(to + n - 8, &z, 8);
	} else if (n >= 4) {
		memcpy(&a, from, 4);
		memcpy(&z, from + n - 4, 4);
		memcpy(to, &a, 4);
		memcpy(to + n - 4, &z, 4);
	} else {
		to[0] = from[0];
		to[n / 2] = from[n / 2];
		to[n - 1] = from[n - 1];
	}
}
/* room for n instructions and their states, which code_next then appends: one with its bytes and nothing else, behind
 * another one, of which all but `off` is in x */
void code_reserve(struct code *c, uint32_t n);
static inline void code_next(struct code *c, const struct map_xlat *x, const uint8_t *b, unsigned n)
{
	struct map_xlat *to = &c->xl[c->nxl++];

	*to = *x;
	to->copy_off = c->n;
	code_copy(c->b + c->n, b, n);
	c->n += n;
}
uint32_t code_labels(struct code *c, uint32_t n); /* the first of n */
static inline uint32_t code_label(struct code *c)
{
	return code_labels(c, 1);
}
void code_here(struct code *c, uint32_t label);
void code_jmp(struct code *c, uint32_t label);
void code_jcc(struct code *c, unsigned cc, uint32_t label);
void code_jmp_mod(struct code *c, uint32_t vaddr); /* jmp rel32 to the module */
void code_ref(struct code *c, int cc, uint32_t group, uint32_t block); /* cc < 0: jmp */
/* disp32 that reaches vaddr from an instruction ending `tail` bytes after the field */
void code_mod32(struct code *c, uint32_t vaddr, uint32_t tail);
void code_gs(struct code *c, unsigned op, unsigned reg, uint32_t tcb, bool w); /* op reg,%gs:tcb */
void code_lea_label(struct code *c, unsigned reg, uint32_t label);
void code_r15mem(struct code *c, unsigned reg, uint32_t off); /* modrm of reg, off(%r15) */
void code_advance(struct code *c, int32_t n); /* lea n(%r15),%r15 */
int code_relax(struct code *c); /* final bytes; all offsets translated */
static inline uint32_t code_at(const struct code *c, uint32_t label)
{
	return c->label[label].pos;
}
void *grow(void *p, uint32_t n, uint32_t *cap, size_t size);

/* ---- one group being emitted ---- */

struct em {
	const struct module *m;
	const struct an_group *g;
	const struct plan *p;
	const struct live *lv;
	struct code c;
	uint32_t *body, *stubl; /* labels per block */
	uint32_t *logfirst; /* nblock + 1: first log of each block */
	uint32_t log, logafter,
		logend; /* those of the instruction being emitted; from logafter on those behind it */
	uint32_t *bytes; /* logged by each block's body */
	uint32_t *sbytes; /* logged by each block's stub, mark included */
	uint8_t *tells; /* each block's body has a ptwrite */
	struct flowl {
		uint32_t at, end; /* labels, AN_NONE if there is none */
	} * flow; /* MAP_F_PT, per block: the instruction at its end that decides where control goes */
	uint32_t *off_in; /* log offset from r15 at the block's start (emit_space.c) */
	uint32_t *nflow; /* has it flow predecessors within the copy? */
	uint8_t *chk_body, *chk_stub;
	uint8_t *stub; /* enum stub */
	uint32_t since; /* bytes since the last check, for long blocks */
	struct cold {
		uint32_t label, resume;
		uint32_t vaddr;
		bool saved;
		uint8_t rot;
	} * cold;
	uint32_t ncold, capcold;
	struct leave {
		uint32_t label, target, vaddr;
	} * leave; /* exits to opaque code, out of line */
	uint32_t nleave, capleave;
	struct pool {
		uint32_t label, vaddr;
	} * pool; /* return addresses of emulated calls */
	uint32_t npool, cappool;
	struct xentry {
		uint32_t label, join, site, vaddr;
	} * xent; /* unexpected rsp at an entry */
	uint32_t nxent, capxent;
	struct xentry *xback; /* return sites where unseen code comes back; site: rcx is borrowed */
	uint32_t nxback, capxback;
	uint8_t *lid; /* per block: loop that keeps r15 in a register, 0 none, else rot[lid - 1] */
	struct rot {
		uint8_t reg;
		bool write;
	} * rot;
	uint32_t nrot, caprot;
	struct edge {
		uint32_t label, from, to;
	} * edge; /* into or out of such loops */
	uint32_t nedge, capedge;
	uint8_t cur_rot; /* register that holds r15 in what is being emitted, or NOREG */
	struct emit_site *site;
	uint32_t nsite, capsite;
	uint64_t logbytes;
	uint32_t *ptw; /* labels of the ptwrites, per log of the plan; NULL if it has none */
	uint32_t nptw;
	struct map_place place; /* copy_off: a label */
};

/* A borrowed register. */
struct scratch {
	uint8_t reg, slot; /* slot NOREG: was dead */
};
struct scratch scratch_get(struct em *e, uint32_t avoid, uint32_t live);
void scratch_put(struct em *e, struct scratch s);

/* r15.c */
bool r15_named(const struct dec *d);
/* bytes of d with r15 replaced by register s. 0, or -1 where that has no encoding */
int r15_patch(const struct dec *d, unsigned s, uint8_t out[16]);
void r15_emit(struct em *e, const struct dec *d, uint32_t live);
/* r15_emit can do it */
bool r15_can(const struct dec *d);
#define R15_SLOT_MAX 15
/* bytes of d with the slot for r15, which are all there is to be done, and their number; 0 if that has no encoding */
unsigned r15_slot(const struct dec *d, uint8_t out[32]);
/* appends an instruction's bytes, rip-relative operand fixed up */
void emit_bytes(struct em *e, const struct dec *d, const uint8_t *b);

/* r15_loop.c */
void rot_plan(struct em *e);
uint32_t rot_label(struct em *e, uint32_t b, uint32_t to);
void rot_edges(struct em *e);

/* emit_log.c */
void emit_log(struct em *e, const struct plan_log *l, const struct dec *d, uint32_t live);
void emit_load_operand(struct em *e, const struct dec *d, unsigned reg); /* mov operand 0, reg */

/* emit_space.c */
void space_plan(struct em *e);
void space_check(struct em *e, uint32_t vaddr, uint32_t live);
/* emit.c: what is nondet_what()'s; tcb.resume and tcb.target have been set */
void nondet_call(struct em *e, uint32_t what);
void space_cold(struct em *e);
#define SPACE_BLOCK_MAX 8192u /* a block that logs more has checks inside */

/* emit_cycle.c */
uint32_t flow_succ(const struct em *e, uint32_t b, uint32_t *out, uint32_t max);

/* emit_ctl.c */
void ctl_stub(struct em *e, uint32_t b, bool inl);
void ctl_end(struct em *e, uint32_t b, const struct dec *d, uint32_t i, uint32_t live);
void ctl_move(struct em *e, uint32_t b); /* r15 to where the end of block b wants it; its logs are written */
void ctl_cold(struct em *e);
void ctl_goto(struct em *e, uint32_t b, uint32_t to);
void flow_begin(struct em *e, uint32_t b); /* what comes next is em.flow of block b, up to flow_end */
void flow_end(struct em *e, uint32_t b);
void commit(struct em *e);
/* plain state: r15 is LP, nothing borrowed */
static inline void state(struct em *e, uint32_t vaddr)
{
	e->c.cur = (struct map_xlat){0, vaddr, 0, e->cur_rot, {NOREG, e->cur_rot}, 0, 0};
	e->c.ahead = 0;
}

/* emit.c: NULL with *why on failure */
struct emitted *emit_group(const struct module *m, const struct an_group *g, const struct plan *p,
			   const char **why);
void emitted_free(struct emitted *x);
/* the instruction can be emitted at all; else the reason */
enum map_reason emit_can(const struct dec *d, const struct an_insn *i, uint32_t mapflags);

/* keep.c: sum->priv, and sum->keeps where the copy is emitted */
void keep_private(struct module *m);
void keep_find(struct module *m);

/* patch.c */
struct patches {
	struct map_patch *p;
	uint32_t n, cap;
	uint32_t njmp, nisland, nemul, ndemoted; /* for --stats */
	struct point *pt;
	uint32_t npt;
	struct map_patch *hop; /* short jumps on the way to an island */
	uint32_t nhop, caphop;
	uint8_t *used;
};
int patch_plan(struct module *m, struct patches *ps, int jobs);
int patch_write(struct module *m, struct patches *ps, struct emitted *const *em, const uint32_t *base);
void patch_free(struct patches *ps);
/* makes the groups with bad[i] != MAP_OK opaque for that reason, and everything that knew them:
 * callee lists, tailx, live bytes. 0 or -1 */
int groups_demote(struct module *m, const uint8_t *bad, struct patches *ps);

/* map_write.c */
int map_write(struct module *m, const char *path, uint32_t flags, int jobs, char *err, size_t errlen);
int map_dump(const char *path);
/* what the last map_write did, for --stats */
struct map_stats {
	uint64_t copy, logbytes, sites, emulated, islands, jmps, demoted, xlat, ops;
};
extern struct map_stats map_stats;
/* calls fn(arg, i) for all i < n from `jobs` threads */
void par_for(uint32_t n, int jobs, void (*fn)(void *arg, uint32_t i), void *arg);

#endif
