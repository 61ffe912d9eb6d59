/* SPDX-License-Identifier: MIT
 *
 * sem_eval.h - evaluate the semantics IR (sem.h)
 *
 *   sem_srcs   which registers an op reads: a, b and the third one packed in imm
 *   sem_alu    the pure function of a value op; the caller fetches the operands
 *   sem_value  fetch from a register array, then sem_alu
 *   sem_run    reference interpreter of a straight list, with callbacks for memory
 *
 * All flag formulas: SDM Vol. 1, 3.4.3.1 and the instruction pages of Vol. 2. Undefined flags
 * come out as the same formula gives them.
 */
#ifndef SEM_EVAL_H
#define SEM_EVAL_H

#include <stdbool.h>
#include <stdint.h>
#include "sem.h"

enum { SEM_CF = 1, SEM_PF = 4, SEM_AF = 0x10, SEM_ZF = 0x40, SEM_SF = 0x80, SEM_OF = 0x800 };

static inline uint64_t sem_mask(unsigned w)
{
	return ~0ull >> (64 - 8 * w);
}

static inline int64_t sem_sx(uint64_t v, unsigned w)
{
	return (int64_t)(v << (64 - 8 * w)) >> (64 - 8 * w);
}

/* Is it an op that assigns dst from registers and imm alone? */
static inline bool sem_is_value(unsigned op)
{
	return op > SEM_END && op < SEM_LOAD;
}

/* The third register operand, in the low half of imm, or SEM_NONE. */
static inline uint16_t sem_third(const struct sem_op *o)
{
	switch (o->op) {
	case SEM_RCL:
	case SEM_RCR:
	case SEM_SHLD:
	case SEM_SHRD:
	case SEM_UDIV:
	case SEM_UREM:
	case SEM_SDIV:
	case SEM_SREM:
	case SEM_SEL:
	case SEM_FC_ADC:
	case SEM_FC_SBB:
	case SEM_FR_ADC:
	case SEM_FR_SBB:
	case SEM_FC_SHL:
	case SEM_FC_SHR:
	case SEM_FC_SAR:
	case SEM_FR_SHL:
	case SEM_FR_SHR:
	case SEM_FR_SAR:
	case SEM_FC_RCL:
	case SEM_FC_RCR:
		return (uint16_t)o->imm;
	default:
		return SEM_NONE;
	}
}

/* What stands for b when it is SEM_NONE: imm, or the count above a packed register. */
static inline uint64_t sem_imm_b(const struct sem_op *o)
{
	switch (o->op) {
	case SEM_RCL:
	case SEM_RCR:
	case SEM_FC_RCL:
	case SEM_FC_RCR:
	case SEM_FC_SHL:
	case SEM_FC_SHR:
	case SEM_FC_SAR:
	case SEM_FR_SHL:
	case SEM_FR_SHR:
	case SEM_FR_SAR:
		return (uint64_t)o->imm >> 16;
	case SEM_LEA:
	case SEM_COND:
		return 0;
	default:
		return (uint64_t)o->imm;
	}
}

/* Registers an op reads, SEM_NONE where there is none. Not for extra slots and control ops. */
static inline void sem_srcs(const struct sem_op *o, uint16_t src[3])
{
	src[0] = o->a;
	src[1] = o->b;
	src[2] = sem_third(o);
	if (o->op == SEM_IMM || o->op == SEM_MODADDR || o->op == SEM_UNK || o->op == SEM_LOG ||
	    o->op == SEM_LOGSX || o->op == SEM_PTW || o->op == SEM_PTWSX)
		src[0] = src[1] = SEM_NONE;
}

/* The 64 bits of an address, or of something near one, from its low 48: from -2^46 up. User addresses are not
 * negative and below 2^47; what is up to 2^46 away from one on either side is told apart. */
static inline uint64_t sem_address(uint64_t low)
{
	return ((low + (1ull << 46)) & ((1ull << 48) - 1)) - (1ull << 46);
}

static inline uint64_t sem_fr_szp(uint64_t r, unsigned w)
{
	r &= sem_mask(w);
	return (__builtin_parity((unsigned)r & 0xff) ? 0 : SEM_PF) | (r == 0 ? SEM_ZF : 0) |
	       (r >> (8 * w - 1) ? SEM_SF : 0);
}

static inline uint64_t sem_fr_add(uint64_t a, uint64_t b, uint64_t r, unsigned w)
{
	uint64_t of = (a ^ r) & (b ^ r);

	return sem_fr_szp(r, w) | ((a ^ b ^ r) & SEM_AF) | (of >> (8 * w - 1) & 1) << 11;
}

static inline uint64_t sem_fr_sub(uint64_t a, uint64_t b, uint64_t r, unsigned w)
{
	uint64_t of = (a ^ b) & (a ^ r);

	return sem_fr_szp(r, w) | ((a ^ b ^ r) & SEM_AF) | (of >> (8 * w - 1) & 1) << 11;
}

static inline uint64_t sem_rotl(uint64_t a, unsigned n, unsigned w)
{
	unsigned bits = 8 * w;

	n %= bits;
	a &= sem_mask(w);
	return n ? (a << n | a >> (bits - n)) & sem_mask(w) : a;
}

/* Rotate the width + 1 bits cf:a left by n; the result's carry goes to *out. */
static inline uint64_t sem_rcl(uint64_t a, unsigned n, uint64_t cf, unsigned w, uint64_t *out)
{
	unsigned bits = 8 * w;
	unsigned __int128 x = (unsigned __int128)(cf & 1) << bits | (a & sem_mask(w));

	n %= bits + 1;
	if (n)
		x = x << n | x >> (bits + 1 - n);
	*out = (uint64_t)(x >> bits) & 1;
	return (uint64_t)x & sem_mask(w);
}

static inline unsigned sem_count(uint64_t c, unsigned w)
{
	return c & (w == 8 ? 63 : 31);
}

/* CF after a shift by n: the last bit shifted out. */
static inline uint64_t sem_fc_shift(unsigned op, uint64_t a, unsigned n, uint64_t old, unsigned w)
{
	unsigned bits = 8 * w;

	if (!n)
		return old & 1;
	if (op == SEM_FC_SHL)
		return n > bits ? 0 : a >> (bits - n) & 1;
	if (op == SEM_FC_SHR)
		return (a & sem_mask(w)) >> (n - 1) & 1;
	return (uint64_t)(sem_sx(a, w) >> (n - 1)) & 1;
}

static inline uint64_t sem_fr_shift(unsigned op, uint64_t a, unsigned n, uint64_t old, unsigned w)
{
	uint64_t top, r;

	if (!n)
		return old;
	if (op == SEM_FR_SHL) {
		r = a << n;
		top = (r ^ a << (n - 1)) >> (8 * w - 1) & 1;
	} else if (op == SEM_FR_SHR) {
		r = (a & sem_mask(w)) >> n;
		top = a >> (8 * w - 1) & 1;
	} else {
		r = (uint64_t)(sem_sx(a, w) >> n);
		top = 0;
	}
	return sem_fr_szp(r, w) | top << 11;
}

static inline uint64_t sem_shld(bool right, uint64_t a, uint64_t b, uint64_t c, unsigned w)
{
	unsigned n = sem_count(c, w), bits = 8 * w;

	a &= sem_mask(w);
	b &= sem_mask(w);
	if (!n || n >= bits)
		return n ? 0 : a;
	return (right ? a >> n | b << (bits - n) : a << n | b >> (bits - n)) & sem_mask(w);
}

static inline uint64_t sem_udiv(bool rem, uint64_t lo, uint64_t d, uint64_t hi, unsigned w)
{
	unsigned __int128 n, q;

	lo &= sem_mask(w);
	hi &= sem_mask(w);
	d &= sem_mask(w);
	if (hi >= d)
		return 0;
	n = (unsigned __int128)hi << (8 * w) | lo;
	q = n / d;
	return rem ? (uint64_t)(n - q * d) : (uint64_t)q;
}

static inline uint64_t sem_sdiv(bool rem, uint64_t lo, uint64_t d, uint64_t hi, unsigned w)
{
	__int128 n, q, sd = sem_sx(d, w);

	n = (__int128)((unsigned __int128)(__int128)sem_sx(hi, w) << (8 * w) | (lo & sem_mask(w)));
	if (!sd || (sd == -1 && n == (__int128)((unsigned __int128)1 << 127)))
		return 0;
	q = n / sd;
	if (q != sem_sx((uint64_t)q, w))
		return 0;
	return (uint64_t)(rem ? n - q * sd : q) & sem_mask(w);
}

static inline uint64_t sem_pext(uint64_t a, uint64_t m)
{
	uint64_t r = 0;

	for (unsigned k = 0; m; m &= m - 1, k++)
		r |= (a >> __builtin_ctzll(m) & 1) << k;
	return r;
}

static inline uint64_t sem_pdep(uint64_t a, uint64_t m)
{
	uint64_t r = 0;

	for (; m; m &= m - 1, a >>= 1)
		r |= (a & 1) << __builtin_ctzll(m);
	return r;
}

/* CRC-32C, bit-reflected (SDM Vol. 2, CRC32: polynomial 11EDC6F41H) */
static inline uint64_t sem_crc32(uint64_t crc, uint64_t data, unsigned w)
{
	uint64_t x = (uint32_t)crc;

	for (unsigned i = 0; i < w; i++) {
		x ^= data >> (8 * i) & 0xff;
		for (int k = 0; k < 8; k++)
			x = x >> 1 ^ (x & 1 ? 0x82f63b78u : 0);
	}
	return x;
}

static inline uint64_t sem_cond(unsigned cc, uint64_t fc, uint64_t fr)
{
	uint64_t t;

	switch (cc >> 1) {
	case 0:
		t = fr >> 11;
		break;
	case 1:
		t = fc;
		break;
	case 2:
		t = fr >> 6;
		break;
	case 3:
		t = fc | fr >> 6;
		break;
	case 4:
		t = fr >> 7;
		break;
	case 5:
		t = fr >> 2;
		break;
	case 6:
		t = fr >> 7 ^ fr >> 11;
		break;
	default:
		t = (fr >> 7 ^ fr >> 11) | fr >> 6;
		break;
	}
	return (t ^ cc) & 1;
}

static inline uint64_t sem_bextr(uint64_t a, uint64_t ctl, unsigned w)
{
	unsigned start = ctl & 0xff, len = ctl >> 8 & 0xff;

	a &= sem_mask(w);
	a = start < 64 ? a >> start : 0;
	return len < 64 ? a & ((1ull << len) - 1) : a;
}

static inline uint64_t sem_bzhi(uint64_t a, uint64_t n, unsigned w)
{
	n &= 0xff;
	return a & sem_mask(w) & (n < 64 ? (1ull << n) - 1 : ~0ull);
}

static inline uint64_t sem_flag(const struct sem_op *o, uint64_t a, uint64_t b, uint64_t c)
{
	unsigned w = o->w;
	uint64_t m = sem_mask(w), am = a & m, bm = b & m, out;

	switch (o->op) {
	case SEM_FC_ADD:
		return ((am + bm) & m) < am;
	case SEM_FC_SUB:
		return am < bm;
	case SEM_FC_ADC:
		out = (am + bm) & m;
		return out < am || ((out + (c & 1)) & m) < out;
	case SEM_FC_SBB:
		return am < bm || (am == bm && (c & 1));
	case SEM_FC_SHL:
	case SEM_FC_SHR:
	case SEM_FC_SAR:
		return sem_fc_shift(o->op, a, sem_count(b, w), c, w);
	case SEM_FC_BT:
		return a >> (b & (8 * w - 1)) & 1;
	case SEM_FC_NZ:
		return (am != 0) ^ (o->imm == 1);
	case SEM_FR_ADD:
		return sem_fr_add(a, b, a + b, w);
	case SEM_FR_SUB:
		return sem_fr_sub(a, b, a - b, w);
	case SEM_FR_ADC:
		return sem_fr_add(a, b, a + b + (c & 1), w);
	case SEM_FR_SBB:
		return sem_fr_sub(a, b, a - b - (c & 1), w);
	case SEM_FR_LOGIC:
		return sem_fr_szp(a, w);
	case SEM_FR_INC:
		return sem_fr_add(a, 1, a + 1, w);
	case SEM_FR_DEC:
		return sem_fr_sub(a, 1, a - 1, w);
	case SEM_FR_SHL:
	case SEM_FR_SHR:
	case SEM_FR_SAR:
		return sem_fr_shift(o->op, a, sem_count(b, w), c, w);
	case SEM_FR_Z:
		return am ? 0 : SEM_ZF;
	case SEM_FC_RCL:
		sem_rcl(a, sem_count(b, w), c, w, &out);
		return out;
	case SEM_FC_RCR:
		sem_rcl(a, 8 * w + 1 - sem_count(b, w) % (8 * w + 1), c, w, &out);
		return out;
	default:
		return 0;
	}
}

static inline uint64_t sem_bits(const struct sem_op *o, uint64_t a, uint64_t b)
{
	unsigned w = o->w, bits = 8 * w;
	uint64_t am = a & sem_mask(w), bm = b & sem_mask(w);

	switch (o->op) {
	case SEM_BSWAP:
		return w == 8 ? __builtin_bswap64(a) : __builtin_bswap32((uint32_t)a);
	case SEM_BSF:
		return bm ? (uint64_t)__builtin_ctzll(bm) : am;
	case SEM_BSR:
		return bm ? 63u - __builtin_clzll(bm) : am;
	case SEM_TZCNT:
		return am ? (uint64_t)__builtin_ctzll(am) : bits;
	case SEM_LZCNT:
		return am ? __builtin_clzll(am) - (64 - bits) : bits;
	case SEM_POPCNT:
		return __builtin_popcountll(am);
	case SEM_PEXT:
		return sem_pext(am, bm);
	case SEM_PDEP:
		return sem_pdep(am, bm);
	case SEM_CRC32:
		return sem_crc32(a, b, w);
	case SEM_BEXTR:
		return sem_bextr(a, b, w);
	default:
		return sem_bzhi(a, b, w);
	}
}

static inline uint64_t sem_mulh(bool sgn, uint64_t a, uint64_t b, unsigned w)
{
	if (sgn) {
		__int128 p = (__int128)sem_sx(a, w) * sem_sx(b, w);

		return (uint64_t)(p >> (8 * w)) & sem_mask(w);
	}
	return (uint64_t)((unsigned __int128)(a & sem_mask(w)) * (b & sem_mask(w)) >> (8 * w));
}

/* Result of a value op. b is imm (or the packed count, sem_imm_b) when o->b == SEM_NONE; c is the
 * value of register sem_third(o). a of SEM_LEA is 0 when SEM_NONE. SEM_MODADDR is not one of them
 * (add the bias to imm). */
static inline uint64_t sem_alu(const struct sem_op *o, uint64_t a, uint64_t b, uint64_t c)
{
	unsigned w = o->w;
	uint64_t out;

	switch (o->op) {
	case SEM_IMM:
		return (uint64_t)o->imm;
	case SEM_MOV:
		return a & sem_mask(w);
	case SEM_SX:
		return (uint64_t)sem_sx(a, w);
	case SEM_INS:
		return (a & ~sem_mask(w)) | (b & sem_mask(w));
	case SEM_INSH:
		return (a & ~0xff00ull) | (b & 0xff) << 8;
	case SEM_EXTH:
		return a >> 8 & 0xff;
	case SEM_LEA:
		return a + (b << w) + (uint64_t)o->imm;
	case SEM_ADD:
		return (a + b) & sem_mask(w);
	case SEM_SUB:
		return (a - b) & sem_mask(w);
	case SEM_AND:
		return a & b & sem_mask(w);
	case SEM_OR:
		return (a | b) & sem_mask(w);
	case SEM_XOR:
		return (a ^ b) & sem_mask(w);
	case SEM_SHL:
		return a << sem_count(b, w) & sem_mask(w);
	case SEM_SHR:
		return (a & sem_mask(w)) >> sem_count(b, w);
	case SEM_SAR:
		return (uint64_t)(sem_sx(a, w) >> sem_count(b, w)) & sem_mask(w);
	case SEM_ROL:
		return sem_rotl(a, sem_count(b, w), w);
	case SEM_ROR:
		return sem_rotl(a, 8 * w - sem_count(b, w) % (8 * w), w);
	case SEM_RCL:
		return sem_rcl(a, sem_count(b, w), c, w, &out);
	case SEM_RCR:
		return sem_rcl(a, 8 * w + 1 - sem_count(b, w) % (8 * w + 1), c, w, &out);
	case SEM_SHLD:
	case SEM_SHRD:
		if (sem_third(o) == SEM_NONE)
			c = (uint64_t)o->imm >> 16;
		return sem_shld(o->op == SEM_SHRD, a, b, c, w);
	case SEM_NOT:
		return ~a & sem_mask(w);
	case SEM_NEG:
		return -a & sem_mask(w);
	case SEM_MUL:
		return a * b & sem_mask(w);
	case SEM_UMULH:
	case SEM_SMULH:
		return sem_mulh(o->op == SEM_SMULH, a, b, w);
	case SEM_UDIV:
	case SEM_UREM:
		return sem_udiv(o->op == SEM_UREM, a, b, c, w);
	case SEM_SDIV:
	case SEM_SREM:
		return sem_sdiv(o->op == SEM_SREM, a, b, c, w);
	case SEM_BSWAP:
	case SEM_BSF:
	case SEM_BSR:
	case SEM_TZCNT:
	case SEM_LZCNT:
	case SEM_POPCNT:
	case SEM_PEXT:
	case SEM_PDEP:
	case SEM_CRC32:
	case SEM_BEXTR:
	case SEM_BZHI:
		return sem_bits(o, a, b);
	case SEM_SEL:
		return c ? a : b;
	case SEM_COND:
		return sem_cond((unsigned)o->imm, a, b);
	case SEM_CMPEQ:
		return ((a ^ b) & sem_mask(w)) == 0;
	default:
		return sem_flag(o, a, b, c);
	}
}

/* As sem_alu with the operands from r[]. `bias` is the module's load bias. */
static inline uint64_t sem_value(const struct sem_op *o, const uint64_t *r, uint64_t bias)
{
	uint16_t t = sem_third(o);

	if (o->op == SEM_MODADDR)
		return bias + (uint64_t)o->imm;
	return sem_alu(o, o->a == SEM_NONE ? 0 : r[o->a], o->b == SEM_NONE ? sem_imm_b(o) : r[o->b],
		       t == SEM_NONE ? 0 : r[t]);
}

/* Address of a SEM_REC, SEM_RECVEC, SEM_RECXS. */
static inline uint64_t sem_rec_addr(const struct sem_op *o, const uint64_t *r)
{
	return (o->a == SEM_NONE ? 0 : r[o->a]) + (o->b == SEM_NONE ? 0 : r[o->b] << o->w) +
	       (uint64_t)(int64_t)SEM_REC_DISP(o->imm);
}

static inline bool sem_has_slot(unsigned op)
{
	return op == SEM_RECVEC || op == SEM_RECREP || op == SEM_RECXS;
}

/* Reference interpreter: what a lifted instruction does. */
struct sem_env {
	void *ctx;
	uint64_t bias;
	uint64_t (*load)(void *ctx, uint64_t addr, unsigned w);
	void (*store)(void *ctx, uint64_t addr, unsigned w, uint64_t v);
	void (*rec)(void *ctx, const struct sem_op *o, const uint64_t *r); /* o[1]: the slot */
	uint64_t (*unk)(void *ctx, const struct sem_op *o); /* value of a SEM_UNK; NULL: 0 */
	void (*step)(void *ctx, const struct sem_op *o); /* may be NULL: called before every op */
};

static inline void sem_run(const struct sem_op *o, int n, uint64_t *r, const struct sem_env *e)
{
	for (const struct sem_op *end = o + n; o < end; o += 1 + sem_has_slot(o->op)) {
		if (e->step)
			e->step(e->ctx, o);
		if (sem_is_value(o->op))
			r[o->dst] = sem_value(o, r, e->bias);
		else if (o->op == SEM_LOAD || o->op == SEM_LOADRO)
			r[o->dst] = e->load(e->ctx, r[o->a] + (uint64_t)o->imm, o->w);
		else if (o->op == SEM_STORE)
			e->store(e->ctx, r[o->a] + (uint64_t)o->imm, o->w, r[o->b]);
		else if (o->op == SEM_REC || sem_has_slot(o->op))
			e->rec(e->ctx, o, r);
		else if (o->op == SEM_UNK)
			r[o->dst] = e->unk ? e->unk(e->ctx, o) : 0;
	}
}

#endif
