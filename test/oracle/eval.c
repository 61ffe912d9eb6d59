/* SPDX-License-Identifier: MIT
 *
 * eval.c - register values before an instruction to the records of its accesses
 *
 * Addresses depend on registers alone, so nothing is read from the program's memory.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "oracle.h"

/* Where the state components are in the standard format (SDM Vol. 1, 13.4.3). */
enum { COMP_AVX = 2, COMP_K = 5, COMP_ZMM_HI256 = 6, COMP_HI16 = 7, NCOMP = 63 };

static struct {
	uint32_t offset, size;
	bool aligned; /* at 64 bytes in the compacted format */
} comp[NCOMP];
static uint64_t xcr0;

void eval_init(void)
{
	uint32_t a, b, c, d;

	__cpuid_count(1, 0, a, b, c, d);
	if (!(c & bit_OSXSAVE))
		return;
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	xcr0 = (uint64_t)d << 32 | a;
	for (int i = 2; i < NCOMP; i++) {
		if (!(xcr0 >> i & 1))
			continue;
		__cpuid_count(0xd, i, a, b, c, d);
		comp[i].size = a;
		comp[i].offset = b;
		comp[i].aligned = c & 2;
	}
}

uint32_t eval_xsave_size(uint64_t rfbm, bool compacted)
{
	uint32_t size = 512 + 64;

	rfbm &= xcr0;
	for (int i = 2; i < NCOMP; i++) {
		if (!(rfbm >> i & 1))
			continue;
		if (!compacted) {
			if (size < comp[i].offset + comp[i].size)
				size = comp[i].offset + comp[i].size;
			continue;
		}
		if (comp[i].aligned)
			size = (size + 63) & ~63u;
		size += comp[i].size;
	}
	return size;
}

static uint64_t gpr(const struct user_regs_struct *r, unsigned n)
{
	switch (n) {
	case 0:
		return r->rax;
	case 1:
		return r->rcx;
	case 2:
		return r->rdx;
	case 3:
		return r->rbx;
	case 4:
		return r->rsp;
	case 5:
		return r->rbp;
	case 6:
		return r->rsi;
	case 7:
		return r->rdi;
	case 8:
		return r->r8;
	case 9:
		return r->r9;
	case 10:
		return r->r10;
	case 11:
		return r->r11;
	case 12:
		return r->r12;
	case 13:
		return r->r13;
	case 14:
		return r->r14;
	case 15:
		return r->r15;
	default:
		return 0;
	}
}

static void need_xstate(pid_t pid, struct xstate *xs)
{
	struct iovec iov = {xs->buf, sizeof(xs->buf)};

	if (xs->valid)
		return;
	memset(xs->buf, 0, sizeof(xs->buf));
	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) < 0) {
		fprintf(stderr, "oracle: cannot read vector registers: %s\n", strerror(errno));
		exit(125);
	}
	xs->valid = true;
}

static void vector_reg(const struct xstate *xs, unsigned n, uint8_t out[64])
{
	if (n >= 16) {
		memcpy(out, xs->buf + comp[COMP_HI16].offset + 64 * (n - 16), 64);
		return;
	}
	memset(out, 0, 64);
	memcpy(out, xs->buf + 160 + 16 * n, 16);
	if (xcr0 >> COMP_AVX & 1)
		memcpy(out + 16, xs->buf + comp[COMP_AVX].offset + 16 * n, 16);
	if (xcr0 >> COMP_ZMM_HI256 & 1)
		memcpy(out + 32, xs->buf + comp[COMP_ZMM_HI256].offset + 32 * n, 32);
}

static uint64_t sign_mask(const uint8_t *bytes, unsigned size, unsigned n)
{
	uint64_t m = 0;

	for (unsigned i = 0; i < n; i++)
		m |= (uint64_t)(bytes[i * size + size - 1] >> 7) << i;
	return m;
}

/* The active elements as a bit mask. */
static uint64_t active(pid_t pid, const struct insn *in, struct xstate *xs)
{
	uint64_t all = in->nelem >= 64 ? ~0ull : (1ull << in->nelem) - 1;
	uint8_t reg[64];
	uint64_t k;
	unsigned top;

	if (in->mask == MASK_ALL)
		return all;
	need_xstate(pid, xs);
	switch (in->mask) {
	case MASK_K:
		memcpy(&k, xs->buf + comp[COMP_K].offset + 8 * in->mask_reg, 8);
		return k & all;
	case MASK_SIGN:
		vector_reg(xs, in->mask_reg, reg);
		return sign_mask(reg, in->mask_size, in->nelem);
	default:
		/* fxsave order is relative to the top of the x87 stack; mm registers are not. */
		top = xs->buf[3] >> 3 & 7;
		return sign_mask(xs->buf + 32 + 16 * ((in->mask_reg - top) & 7), 1, 8);
	}
}

static uint64_t linear(const struct access *a, const struct user_regs_struct *r, uint64_t offset)
{
	if (a->addr32)
		offset = (uint32_t)offset;
	if (a->seg == 1)
		offset += r->fs_base;
	else if (a->seg == 2)
		offset += r->gs_base;
	return offset;
}

static uint64_t offset_of(const struct access *a, const struct user_regs_struct *r)
{
	uint64_t off = a->disp;

	if (a->base != REG_NONE)
		off += gpr(r, a->base);
	if (a->index_al)
		off += r->rax & 0xff;
	else if (a->index != REG_NONE && a->mode != ACC_VSIB)
		off += gpr(r, a->index) * a->scale;
	if (a->mode == ACC_BITS) {
		/* The bit offset is a signed integer of the operand's size. */
		unsigned bits = 1u << a->bit_log2;
		int64_t bit = (int64_t)(gpr(r, a->bit_reg) << (64 - bits)) >> (64 - bits);

		off += (bit >> a->bit_log2) * (bits / 8);
	}
	return off;
}

struct sink {
	struct ptrace_rec *out;
	uint64_t ip;
	int n;
};

static void put(struct sink *s, const struct access *a, uint64_t addr, uint32_t size)
{
	s->out[s->n++] = (struct ptrace_rec){
		.ip = s->ip,
		.addr = addr,
		.size = size,
		.kind = a->kind,
	};
}

static void eval_enter(struct sink *s, const struct insn *in, const struct user_regs_struct *r)
{
	struct access w = {.kind = PTRACE_W}, rd = {.kind = PTRACE_R};

	/* SDM Vol. 2, ENTER: push rbp; copy level - 1 frame pointers; push the new one. */
	put(s, &w, r->rsp - 8, 8);
	for (unsigned i = 1; i < in->level; i++) {
		put(s, &rd, r->rbp - 8 * i, 8);
		put(s, &w, r->rsp - 8 - 8 * i, 8);
	}
	if (in->level)
		put(s, &w, r->rsp - 8 - 8 * in->level, 8);
}

static void eval_vsib(struct sink *s, const struct access *a, const struct user_regs_struct *r,
		      const struct xstate *xs, uint64_t mask)
{
	uint8_t reg[64];

	vector_reg(xs, a->index, reg);
	for (unsigned i = 0; i < 64; i++) {
		int64_t idx;

		if (!(mask >> i & 1))
			continue;
		if (a->index_size == 4) {
			int32_t v;

			memcpy(&v, reg + 4 * i, 4);
			idx = v;
		} else {
			memcpy(&idx, reg + 8 * i, 8);
		}
		put(s, a, linear(a, r, offset_of(a, r) + (uint64_t)idx * a->scale), a->size);
	}
}

static void eval_elems(struct sink *s, const struct access *a, const struct user_regs_struct *r,
		       uint64_t mask)
{
	uint64_t off = offset_of(a, r);
	unsigned at = 0;

	for (unsigned i = 0; i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		if (a->mode != ACC_PACKED)
			at = i;
		put(s, a, linear(a, r, off + (uint64_t)at * a->size), a->size);
		at++;
	}
}

static uint32_t plain_size(const struct access *a, const struct user_regs_struct *r)
{
	uint64_t rfbm = r->rdx << 32 | (uint32_t)r->rax;

	if (a->size == UINT32_MAX)
		return eval_xsave_size(rfbm, true);
	if (a->size == UINT32_MAX - 1)
		return eval_xsave_size(rfbm, false);
	return a->size;
}

int eval_insn(pid_t pid, const struct insn *in, const struct user_regs_struct *r, struct xstate *xs,
	      struct ptrace_rec *out)
{
	struct sink s = {out, in->ip, 0};

	if (in->flags & INSN_REP) {
		uint64_t count = in->acc[0].addr32 ? (uint32_t)r->rcx : r->rcx;

		if (!count)
			return 0;
	}
	if (in->flags & INSN_ENTER)
		eval_enter(&s, in, r);
	for (int i = 0; i < in->nacc; i++) {
		const struct access *a = &in->acc[i];

		switch (a->mode) {
		case ACC_PLAIN:
		case ACC_BITS:
			put(&s, a, linear(a, r, offset_of(a, r)), plain_size(a, r));
			break;
		case ACC_ANY:
			if (active(pid, in, xs))
				put(&s, a, linear(a, r, offset_of(a, r)), a->size);
			break;
		case ACC_VSIB:
			need_xstate(pid, xs);
			eval_vsib(&s, a, r, xs, active(pid, in, xs));
			break;
		default:
			eval_elems(&s, a, r, active(pid, in, xs));
		}
	}
	return s.n;
}
