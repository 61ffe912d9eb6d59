/* SPDX-License-Identifier: MIT
 *
 * cut_net.h - between what a group's records and calls ask for, and the network that is cut
 */
#ifndef CUT_NET_H
#define CUT_NET_H

#include "cut.h"

/* A variable is what has a bit in struct gr_set: general registers by their low byte. */
#define NVAR (GR_WORDS * 64)

/* Where a value goes from here: over an edge with a capacity to a node; or, without a capacity, it is at the node. */
struct way {
	int64_t cap;
	uint32_t to;
	struct cut_tag tag; /* of the edge */
	bool own; /* nobody else is at this node: it can be led on to others as well */
};

struct cut_block {
	uint32_t first, n; /* of var[] and way[]: the variables wanted at its start */
	uint16_t
		ret; /* general registers that what is before it makes unknown: logged in a call's stub, or at its start */
	uint8_t from; /* enum from */
	bool several; /* more than one way leads to it */
};
enum from { FROM_ENTRY = 1, FROM_MARK = 2 }; /* what makes all registers unknown at its start */

/* what an edge stands for: to log ... */
enum tag {
	TAG_NONE,
	TAG_DEF, /* register `arg` after instruction `what` */
	TAG_START, /* register `arg` at the start of block `what` */
	TAG_EA, /* the addresses of the records in mask `arg` of instruction `what` */
	TAG_CTL, /* where block `what` goes at its end */
	TAG_MASK, /* the mask of op `what` */
};

struct cut {
	struct gr *gr;
	struct scratch_mark mark;
	struct flow f;
	int64_t *freq; /* per block: how often it runs */
	uint32_t *order; /* blocks, what they lead to first */
	const struct wants *wants;
	struct cut_block *b;
	/* variables at the starts of blocks, and on the way to classes of jump tables; and where they go */
	uint16_t *var;
	struct way *way;
	struct cut_class {
		uint32_t first, n, jumps; /* of var[] and way[]; blocks that jump */
		bool done;
	} * class;
	struct cut_entry {
		uint32_t node, block;
		uint8_t reg, w;
		int64_t cost;
	} * entry; /* what comes from the source at entries: depends on the round */
	uint32_t nentry;
	uint32_t nnode;
	uint8_t *side; /* per node: on the source's side of the last cut */
};

struct wants {
	uint8_t *nw; /* per op: bytes wanted of what it defines; 1 where it reads something for good */
	struct gr_set *start; /* per block: variables wanted at its start */
	uint16_t words; /* of these sets: all others are empty, but for bytes of registers */
	uint16_t *callee; /* per block: what was needed by the callee that its end leads to; */
	uint16_t *clob; /* cut_clobber */
};
/* cut_want.c: fills gr->wants and gr->meet. What is there stands: a callee may only need more. 0, -1 no memory */
int cut_want(struct gr *gr);
bool cut_leaves(const struct gr *gr, uint32_t bi); /* its indirect jump is no question: it leaves */
/* general registers that do not stand at `to` since before the call or system call at the end of a block; 0xffff: no
 * variable does */
uint16_t cut_clobber(const struct gr *gr, uint32_t bi, uint32_t to);
/* registers that the callee needs that the end of a block leads to */
uint32_t cut_callee(const struct gr *gr, uint32_t bi);
/* Registers that are always known: every definition of these is wanted, and no use is a question. */
#define CUT_KNOWN (1ull << SEM_RSP | 1ull << SEM_FSBASE | 1ull << SEM_GSBASE)
#define CUT_WANTED (CUT_KNOWN | 1ull << SEM_DF) /* where DF is written, it is known, too */
static inline bool cut_known(unsigned reg)
{
	return reg < 64 && CUT_KNOWN >> reg & 1;
}
/* what a group of records reads, its mask aside: returns how many variables */
static inline int cut_reads(const struct gr *gr, uint32_t k, uint16_t r[4])
{
	const struct sem_vec *v = (const struct sem_vec *)&gr->op[k + 1];
	bool vec = gr->op[k].op == SEM_RECVEC;
	uint16_t reg[4] = {gr->op[k].a, gr->op[k].b, vec ? SEM_NONE : v->count, vec ? SEM_NONE : v->df};
	int n = 0;

	for (int j = 0; j < 4; j++)
		if (reg[j] < SEM_NREGS && !cut_known(reg[j]))
			r[n++] = reg[j];
	return n;
}
/* a record (GK_REC) with an address that has to be known */
static inline bool cut_rec(const struct gr *gr, uint32_t k)
{
	const struct sem_op *op = &gr->op[k];

	return !(gr->note[k].flags & GN_EA) &&
	       ((op->a < SEM_NREGS && !cut_known(op->a)) || (op->b < SEM_NREGS && !cut_known(op->b)));
}

/* cut_net.c: the network and its entries; 0, 1 too many variables, -1 no memory */
int cut_net(struct cut *c);
int64_t cut_entry_cost(const struct cut *c, const struct cut_entry *e);

#endif
