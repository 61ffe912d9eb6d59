/* SPDX-License-Identifier: MIT
 *
 * map_check.c - a map's tables and programs are consistent with each other
 *
 * What the checksums cannot tell: that whoever wrote the map made sense. Tables point into each
 * other within bounds, and control arrives only where the walker can count on it:
 *
 *   BLOCK … control            a block
 *   [RMARK] LOG … JMP block    what a stub logs before its block
 *   HALT, JMPX                 a mark says how to go on
 *
 * A block's ops but for RMARK and LOGs at its start are its instructions' (MAP_INSNOPS).
 *
 * So every cycle passes a BLOCK, whose handler makes room for the records up to the next one, or takes
 * bytes from the stream.
 */
#include "dec.h"
#include "sem_eval.h"

static bool is_block(const struct map *m, uint32_t op)
{
	return op < m->nop && m->op[op].op == SEM_BLOCK && (uint64_t)m->op[op].imm < m->nblock;
}

bool map_begins(const struct map *m, uint32_t op)
{
	for (; op < m->nop; op++)
		switch (m->op[op].op) {
		case SEM_BLOCK:
			return is_block(m, op);
		case SEM_JMP:
			return is_block(m, SEM_TAKEN(m->op[op].imm));
		case SEM_HALT:
		case SEM_JMPX:
			return true;
		default:
			if (!map_stub_op(&m->op[op]))
				return false;
			break;
		}
	return false;
}

static int bad(const struct map *m, struct ptrace_error *e, const char *what, uint32_t i)
{
	return err_set(e, PTRACE_BAD, "%s: %s %u is inconsistent: remove the map's file and record again",
		       m->path, what, i);
}

static bool insns_fit(const struct map *m, const struct map_block *b)
{
	uint32_t op = b->ops + 1, end = map_block_end(m, b->ops), n = 0;

	for (uint32_t i = 0; i < b->ninsn; i++)
		n += m->insnops[b->insn + i];
	if (end >= m->nop || n > end - b->ops)
		return false;
	for (; op < end + 1 - n; op++)
		if (!map_stub_op(&m->op[op]))
			return false;
	for (uint32_t i = 0; i < b->ninsn; i++) {
		uint32_t next = op + m->insnops[b->insn + i];

		while (op < next)
			op += 1 + sem_has_slot(m->op[op].op);
		if (op != next)
			return false;
	}
	return true;
}

int map_check(const struct map *m, struct ptrace_error *e)
{
	if (m->ninsnops != m->ninsnlen)
		return bad(m, e, "number of instructions", m->ninsnops);
	for (uint32_t i = 0; i < m->nblock; i++) {
		const struct map_block *b = &m->block[i];

		if (!is_block(m, b->ops) || b->insn > m->ninsnlen || b->ninsn > m->ninsnlen - b->insn)
			return bad(m, e, "block", i);
		if (!insns_fit(m, b))
			return bad(m, e, "instructions of block", i);
	}
	for (uint32_t i = 0; i < m->nleader; i++)
		if (!map_begins(m, m->leader[i].ops) || (i && m->leader[i].vaddr < m->leader[i - 1].vaddr))
			return bad(m, e, "leader", i);
	for (uint32_t i = 0; i < m->nsite; i++)
		if (!map_begins(m, m->site[i].ops))
			return bad(m, e, "site", i);
	for (uint32_t i = 0; i < m->nro; i++)
		if (m->ro[i].off > m->nrobytes || m->ro[i].size > m->nrobytes - m->ro[i].off ||
		    (i && (m->ro[i - 1].flags & MAP_RO_ADDRESSES) &&
		     (!(m->ro[i].flags & MAP_RO_ADDRESSES) || m->ro[i].vaddr < m->ro[i - 1].vaddr)))
			return bad(m, e, "read-only data", i);
	if (m->nstrings && m->strings[m->nstrings - 1])
		return err_set(e, PTRACE_BAD, "%s: the names are not terminated", m->path);
	return 0;
}
