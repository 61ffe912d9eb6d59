/* SPDX-License-Identifier: MIT
 *
 * sem_lift_rec.c - records that are not one plain access per operand
 *
 *   masked EVEX operands, gathers and scatters, vmaskmov, maskmovdqu   SEM_RECVEC
 *   xsave and xrstor                                                   SEM_RECXS
 *   prefetches and cache-line hints                                    kind P
 *
 * What the mask and index registers are is in the slot (sem.h).
 */
#include "sem_lift_int.h"

bool is_masked(const ZydisDecodedInstruction *in)
{
	return in->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
	       in->avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
	       in->avx.mask.mode != ZYDIS_MASK_MODE_DISABLED && in->avx.mask.reg != ZYDIS_REGISTER_NONE &&
	       in->avx.mask.reg != ZYDIS_REGISTER_K0;
}

static void rec_slot(struct lift *l, unsigned op, struct ea e, uint16_t dst, const struct sem_vec *v)
{
	struct sem_op slot;

	put(l, op, e.w, dst, e.a, e.b, SEM_RECIMM(e.disp, l->vaddr));
	memcpy(&slot, v, sizeof(slot));
	put(l, slot.op, slot.w, slot.dst, slot.a, slot.b, slot.imm);
}

static enum ptrace_kind kind_of(opnd o)
{
	return o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? PTRACE_W : PTRACE_R;
}

/* The exception classes without fault suppression (SDM Vol. 2, 2.8): the whole operand is read
 * whatever the mask says. VDBPSADBW is E4NF.nb, VCVTNE2PS2BF16 and VGF2P8AFFINE* (eight mask bits to a
 * memory element) are E4NF there; Zydis has E4. */
static bool ignores_mask(const ZydisDecodedInstruction *in)
{
	switch (in->meta.exception_class) {
	case ZYDIS_EXCEPTION_CLASS_E1NF:
	case ZYDIS_EXCEPTION_CLASS_E2NF:
	case ZYDIS_EXCEPTION_CLASS_E3NF:
	case ZYDIS_EXCEPTION_CLASS_E4NF:
	case ZYDIS_EXCEPTION_CLASS_E5NF:
	case ZYDIS_EXCEPTION_CLASS_E6NF:
		return true;
	default:
		return in->mnemonic == ZYDIS_MNEMONIC_VDBPSADBW ||
		       in->mnemonic == ZYDIS_MNEMONIC_VCVTNE2PS2BF16 ||
		       in->mnemonic == ZYDIS_MNEMONIC_VGF2P8AFFINEQB ||
		       in->mnemonic == ZYDIS_MNEMONIC_VGF2P8AFFINEINVQB;
	}
}

static bool is_compress(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_VPCOMPRESSB:
	case ZYDIS_MNEMONIC_VPCOMPRESSW:
	case ZYDIS_MNEMONIC_VPCOMPRESSD:
	case ZYDIS_MNEMONIC_VPCOMPRESSQ:
	case ZYDIS_MNEMONIC_VCOMPRESSPS:
	case ZYDIS_MNEMONIC_VCOMPRESSPD:
	case ZYDIS_MNEMONIC_VPEXPANDB:
	case ZYDIS_MNEMONIC_VPEXPANDW:
	case ZYDIS_MNEMONIC_VPEXPANDD:
	case ZYDIS_MNEMONIC_VPEXPANDQ:
	case ZYDIS_MNEMONIC_VEXPANDPS:
	case ZYDIS_MNEMONIC_VEXPANDPD:
		return true;
	default:
		return false;
	}
}

/* Destination elements a broadcast datum serves, 0 when there is no broadcast. */
static unsigned broadcast_n(ZydisBroadcastMode m)
{
	static const uint8_t n[] = {
		[ZYDIS_BROADCAST_MODE_1_TO_2] = 2,   [ZYDIS_BROADCAST_MODE_1_TO_4] = 4,
		[ZYDIS_BROADCAST_MODE_1_TO_8] = 8,   [ZYDIS_BROADCAST_MODE_1_TO_16] = 16,
		[ZYDIS_BROADCAST_MODE_1_TO_32] = 32, [ZYDIS_BROADCAST_MODE_1_TO_64] = 64,
		[ZYDIS_BROADCAST_MODE_2_TO_4] = 4,   [ZYDIS_BROADCAST_MODE_2_TO_8] = 8,
		[ZYDIS_BROADCAST_MODE_2_TO_16] = 16, [ZYDIS_BROADCAST_MODE_4_TO_8] = 8,
		[ZYDIS_BROADCAST_MODE_4_TO_16] = 16, [ZYDIS_BROADCAST_MODE_8_TO_16] = 16,
	};

	return n[m];
}

/* of a mask register, those with a bit for each of n elements */
static unsigned mask_bytes(unsigned n)
{
	return n > 32 ? 8 : n > 16 ? 4 : n > 8 ? 2 : 1;
}

static bool masked_operand(struct lift *l, opnd o)
{
	const ZydisDecodedInstruction *in = l->in;
	unsigned size = o->element_size / 8, n = o->element_count;
	struct sem_vec v = {.mask = SEM_MASK_K};
	struct ea e = ea_of(l, o, NONE, 0);

	if (broadcast_n(in->avx.broadcast.mode)) {
		v.flags = SEM_VEC_BCAST;
		n = broadcast_n(in->avx.broadcast.mode);
		size = width(o);
	} else if (is_compress(in->mnemonic)) {
		v.flags = SEM_VEC_COMPRESS;
	}
	if (!size || !n || n > 64)
		return false;
	v.n = n;
	v.mask_bytes = mask_bytes(n);
	v.count = ZydisRegisterGetId(in->avx.mask.reg);
	rec_slot(l, SEM_RECVEC, e, SEM_RECDST(size, kind_of(o)), &v);
	return true;
}

static unsigned vec_bytes(ZydisRegister r)
{
	if (r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31)
		return 64;
	if (r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM31)
		return 32;
	return r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM31 ? 16 : 0;
}

static unsigned index_bytes(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_VPGATHERDD:
	case ZYDIS_MNEMONIC_VPGATHERDQ:
	case ZYDIS_MNEMONIC_VGATHERDPS:
	case ZYDIS_MNEMONIC_VGATHERDPD:
	case ZYDIS_MNEMONIC_VPSCATTERDD:
	case ZYDIS_MNEMONIC_VPSCATTERDQ:
	case ZYDIS_MNEMONIC_VSCATTERDPS:
	case ZYDIS_MNEMONIC_VSCATTERDPD:
		return 4;
	case ZYDIS_MNEMONIC_VPGATHERQD:
	case ZYDIS_MNEMONIC_VPGATHERQQ:
	case ZYDIS_MNEMONIC_VGATHERQPS:
	case ZYDIS_MNEMONIC_VGATHERQPD:
	case ZYDIS_MNEMONIC_VPSCATTERQD:
	case ZYDIS_MNEMONIC_VPSCATTERQQ:
	case ZYDIS_MNEMONIC_VSCATTERQPS:
	case ZYDIS_MNEMONIC_VSCATTERQPD:
		return 8;
	default:
		return 0; /* gather/scatter prefetches of Xeon Phi */
	}
}

static bool vsib_operand(struct lift *l, opnd o)
{
	unsigned size = o->element_size / 8, ib = index_bytes(l->in->mnemonic), data = 0, idx;
	struct sem_vec v = {.idx_bytes = ib, .idx_scale = __builtin_ctz(o->mem.scale ? o->mem.scale : 1)};

	if (!ib || !size || l->in->address_width != 64)
		return false;
	for (int i = 0; i < l->narg && !data; i++)
		if (is_reg(l->arg[i]))
			data = vec_bytes(l->arg[i]->reg.value) / size;
	idx = vec_bytes(o->mem.index) / ib;
	v.n = data < idx ? data : idx;
	v.df = ZydisRegisterGetId(o->mem.index);
	if (l->in->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
		v.mask = SEM_MASK_K;
		v.mask_bytes = mask_bytes(v.n);
		v.count = ZydisRegisterGetId(l->in->avx.mask.reg);
	} else {
		v.mask = SEM_MASK_VEC;
		v.mask_bytes = size;
		v.count = reg_id(l->arg[2]);
	}
	rec_slot(l, SEM_RECVEC, ea_of(l, o, NONE, 0), SEM_RECDST(size, kind_of(o)), &v);
	return true;
}

/* Element size of the AVX and SSE moves whose mask is the sign bits of a vector register. */
static unsigned sign_mask_bytes(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
		return 4;
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return 8;
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
		return 1;
	default:
		return 0;
	}
}

/* the mask is the second operand of all of them; (v)maskmovdqu's memory operand is hidden */
static bool sign_masked(struct lift *l, opnd o, unsigned size)
{
	struct sem_vec v = {.mask = SEM_MASK_VEC, .mask_bytes = size, .n = width(o) / size};

	v.count = reg_id(l->arg[1]);
	rec_slot(l, SEM_RECVEC, ea_of(l, o, NONE, 0), SEM_RECDST(size, kind_of(o)), &v);
	return true;
}

static bool is_hidden(opnd o)
{
	return o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
}

static bool one_operand(struct lift *l, opnd o, bool *plain)
{
	unsigned size = sign_mask_bytes(l->in->mnemonic);
	bool by_mask = is_masked(l->in) && !(kind_of(o) == PTRACE_R && ignores_mask(l->in));

	if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return true;
	if (size || by_mask || o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
		*plain = false;
		if (size)
			return sign_masked(l, o, size);
		return o->mem.type == ZYDIS_MEMOP_TYPE_VSIB ? vsib_operand(l, o) : masked_operand(l, o);
	}
	if (o->mem.type != ZYDIS_MEMOP_TYPE_MEM || !o->actions || !o->size || width(o) >= 1u << 14)
		return false;
	return !is_hidden(o) || l->in->mnemonic == ZYDIS_MNEMONIC_MOVDIR64B;
}

/* *plain: every operand got plain records, so that memory written can be stored as unknown.
 * False when an operand cannot be described: an implicit one nobody knows, MIB, unknown size. */
bool recs_any(struct lift *l, bool *plain)
{
	struct ea e[ZYDIS_MAX_OPERAND_COUNT];

	*plain = true;
	for (int i = 0; i < l->in->operand_count; i++)
		if (is_mem(&l->ops[i]) && !one_operand(l, &l->ops[i], plain))
			return false;
	if (!*plain)
		return true;
	for (int i = 0; i < l->in->operand_count; i++) {
		opnd o = &l->ops[i];

		if (!is_mem(o) || o->mem.type != ZYDIS_MEMOP_TYPE_MEM)
			continue;
		e[i] = ea_of(l, o, NONE, 0);
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			rec(l, o, e[i], width(o), PTRACE_R);
		set_at(l, o, e[i]);
	}
	for (int i = 0; i < l->in->operand_count; i++) {
		opnd o = &l->ops[i];

		if (is_mem(o) && (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			rec(l, o, e[i], width(o), PTRACE_W);
	}
	return true;
}

/* prefetch, clflush, clwb, cldemote: 64 bytes at the address as computed */
void lift_hint(struct lift *l, int arg)
{
	(void)arg;
	for (int i = 0; i < l->narg; i++)
		if (is_mem(l->arg[i]))
			rec(l, l->arg[i], ea_of(l, l->arg[i], NONE, 0), 64, PTRACE_P);
}

/* arg: enum sem_xs. xrstor may replace every vector and mask register. */
void lift_xsave(struct lift *l, int arg)
{
	struct sem_vec v = {.kind = arg, .count = SEM_RAX, .df = SEM_RDX};
	enum ptrace_kind kind = arg == SEM_XS_RSTOR ? PTRACE_R : PTRACE_W;

	rec_slot(l, SEM_RECXS, ea_of(l, l->arg[0], NONE, 0), SEM_RECDST(0, kind), &v);
	if (arg != SEM_XS_RSTOR)
		return;
	for (int r = SEM_V0; r < SEM_NREGS; r++)
		unk(l, r);
}
