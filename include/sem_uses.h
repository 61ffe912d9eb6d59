/* SPDX-License-Identifier: MIT
 *
 * sem_uses.h - how much of its operands an op's result depends on
 */
#ifndef SEM_USES_H
#define SEM_USES_H

#include "sem.h"

struct sem_use {
	uint16_t reg;
	uint8_t w; /* bytes: 1, 4 or 8 */
};

/* how an op's operands and its imm are read */
enum sem_shape {
	SEM_S_NONE, /* no register operand */
	SEM_S_AB, /* a, b (or imm), w bytes */
	SEM_S_LOW, /* as SEM_S_AB; low bytes of the result depend only on low bytes of the operands */
	SEM_S_FULL, /* a, b in full */
	SEM_S_ABI, /* a, b, and the register imm in full */
	SEM_S_ABOLD, /* a, b, and the register imm & 0xffff (old flags) in full */
	SEM_S_DIV, /* a, b, and the register imm, w bytes */
	SEM_S_INS,
	SEM_S_INSH,
	SEM_S_CRC,
	SEM_S_SHLL,
};

static inline enum sem_shape sem_shape(uint8_t code)
{
	switch (code) {
	case SEM_IMM:
	case SEM_MODADDR:
	case SEM_UNK:
	case SEM_LOG:
	case SEM_LOGSX:
	case SEM_PTW:
	case SEM_PTWSX:
		return SEM_S_NONE;
	case SEM_MOV:
	case SEM_ADD:
	case SEM_SUB:
	case SEM_AND:
	case SEM_OR:
	case SEM_XOR:
	case SEM_NOT:
	case SEM_NEG:
	case SEM_MUL:
		return SEM_S_LOW;
	case SEM_SHL:
		return SEM_S_SHLL;
	case SEM_INS:
		return SEM_S_INS;
	case SEM_INSH:
		return SEM_S_INSH;
	case SEM_CRC32:
		return SEM_S_CRC;
	case SEM_EXTH:
	case SEM_LEA:
	case SEM_COND:
	case SEM_LOAD:
	case SEM_LOADRO:
	case SEM_BEXTR:
	case SEM_BZHI:
		return SEM_S_FULL;
	case SEM_SEL:
	case SEM_FC_ADC:
	case SEM_FC_SBB:
	case SEM_FR_ADC:
	case SEM_FR_SBB:
		return SEM_S_ABI;
	case SEM_RCL:
	case SEM_RCR:
	case SEM_FC_RCL:
	case SEM_FC_RCR:
	case SEM_SHLD:
	case SEM_SHRD:
	case SEM_FC_SHL:
	case SEM_FC_SHR:
	case SEM_FC_SAR:
	case SEM_FR_SHL:
	case SEM_FR_SHR:
	case SEM_FR_SAR:
		return SEM_S_ABOLD;
	case SEM_UDIV:
	case SEM_UREM:
	case SEM_SDIV:
	case SEM_SREM:
		return SEM_S_DIV;
	case SEM_SX:
	case SEM_ROL:
	case SEM_ROR:
	case SEM_SAR:
	case SEM_SHR:
	case SEM_UMULH:
	case SEM_SMULH:
	case SEM_BSWAP:
	case SEM_TZCNT:
	case SEM_LZCNT:
	case SEM_POPCNT:
	case SEM_PEXT:
	case SEM_PDEP:
	case SEM_CMPEQ:
	case SEM_FC_ADD:
	case SEM_FC_SUB:
	case SEM_FC_BT:
	case SEM_FC_NZ:
	case SEM_FR_ADD:
	case SEM_FR_SUB:
	case SEM_FR_LOGIC:
	case SEM_FR_INC:
	case SEM_FR_DEC:
	case SEM_FR_Z:
		return SEM_S_AB;
	default:
		return SEM_S_FULL; /* bsf, bsr (old destination), and whatever is added later */
	}
}

static inline int sem_use_put(struct sem_use *u, int n, unsigned reg, unsigned w)
{
	if (reg >= SEM_NREGS)
		return n;
	u[n] = (struct sem_use){(uint16_t)reg, (uint8_t)(w == 2 ? 4 : w)};
	return n + 1;
}

/* operand registers of a value op and the bytes of each that matter when `nw` bytes of the result do; returns
 * their number (at most 4) */
static inline int sem_uses(const struct sem_op *op, unsigned nw, struct sem_use u[4])
{
	unsigned w = op->w, low = nw < w ? nw : w;
	int n = 0;

	switch (sem_shape(op->op)) {
	case SEM_S_NONE:
		return 0;
	case SEM_S_LOW:
		n = sem_use_put(u, n, op->a, low);
		return sem_use_put(u, n, op->b, low);
	case SEM_S_SHLL:
		n = sem_use_put(u, n, op->a, low);
		return sem_use_put(u, n, op->b, 1);
	case SEM_S_AB:
		n = sem_use_put(u, n, op->a, w);
		return sem_use_put(u, n, op->b, w);
	case SEM_S_FULL:
		if (op->op == SEM_LEA) {
			n = sem_use_put(u, n, op->a, nw);
			return sem_use_put(u, n, op->b, nw);
		}
		n = sem_use_put(u, n, op->a, 8);
		return sem_use_put(u, n, op->b, 8);
	case SEM_S_ABI:
		n = sem_use_put(u, n, op->a, op->op == SEM_SEL ? 8 : w);
		n = sem_use_put(u, n, op->b, op->op == SEM_SEL ? 8 : w);
		return sem_use_put(u, n, (uint64_t)op->imm < SEM_NREGS ? (unsigned)op->imm : SEM_NONE, 8);
	case SEM_S_ABOLD:
		n = sem_use_put(u, n, op->a, w);
		n = sem_use_put(u, n, op->b, w);
		return sem_use_put(u, n, op->imm & 0xffff, 8);
	case SEM_S_DIV:
		n = sem_use_put(u, n, op->a, w);
		n = sem_use_put(u, n, op->b, w);
		return sem_use_put(u, n, (uint64_t)op->imm < SEM_NREGS ? (unsigned)op->imm : SEM_NONE, w);
	case SEM_S_INS:
		if (nw > op->w)
			n = sem_use_put(u, n, op->a, nw);
		return sem_use_put(u, n, op->b, low);
	case SEM_S_INSH:
		n = sem_use_put(u, n, op->a, nw);
		return nw > 1 ? sem_use_put(u, n, op->b, 1) : n;
	case SEM_S_CRC:
		n = sem_use_put(u, n, op->a, 4);
		return sem_use_put(u, n, op->b, w);
	}
	return n;
}

#endif
