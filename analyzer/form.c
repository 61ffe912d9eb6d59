/* SPDX-License-Identifier: MIT
 *
 * form.c - see form.h
 *
 * The table only grows: an entry never changes once it can be found, so lookups take no lock. Who finds the
 * place taken by another thread's entry uses that. It is the program's, not a module's: what follows from
 * bytes holds in all of them.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "form.h"
#include "plan.h"

#define SLOTS (1u << 18)
#define MOST (SLOTS / 2) /* kept; later ones are found anew each time */

static _Atomic(struct form *) table[SLOTS];
static atomic_uint kept;

#define ROOM ((size_t)1 << 15)
static _Thread_local char *room_at;
static _Thread_local size_t room_left;
_Static_assert(sizeof(struct form) + 64 * (sizeof(struct sem_op) + FORM_NOTE) <= ROOM, "one has room");

/* bytes of a direct branch that hold its distance. Prefixes are none of the opcodes compared with, so the
 * opcode is where it is looked for (SDM Vol. 2, appendix A). */
static unsigned distance(const uint8_t *b, const struct an_insn *i)
{
	unsigned n = i->len;

	if (i->flow != FLOW_JMP && i->flow != FLOW_JCC && i->flow != FLOW_CALL)
		return 0;
	if (n >= 5 && (b[n - 5] == 0xe8 || b[n - 5] == 0xe9))
		return 4;
	if (n >= 6 && b[n - 6] == 0x0f && (b[n - 5] & 0xf0) == 0x80)
		return 4;
	return n == 2 ? 1 : 0;
}

/* whole: 16 bytes are readable */
static void make_key(uint64_t key[2], const uint8_t *b, bool whole, const struct an_insn *i)
{
	unsigned n = i->len - distance(b, i); /* at most 15 */

	key[0] = key[1] = 0;
	if (whole) {
		memcpy(key, b, 16);
		key[0] &= ~0ull >> (n < 8 ? 64 - 8 * n : 0);
		key[1] &= n > 8 ? ~0ull >> (128 - 8 * n) : 0;
	} else {
		memcpy(key, b, n);
	}
	if (i->disp)
		memset((uint8_t *)key + i->disp, 0, 4);
	key[1] |= (uint64_t)(i->len | i->flow << 4) << 56;
}

static bool rip_relative(const struct dec *d)
{
	return (d->in.attributes & ZYDIS_ATTRIB_HAS_MODRM) && d->in.raw.modrm.mod == 0 &&
	       d->in.raw.modrm.rm == 5;
}

/* Makes the operand that is relative to rip one at FAR, for address 0. No other address is as far. */
#define FAR (1ll << 40)
static void move_away(struct dec *d)
{
	for (unsigned k = 0; k < d->in.operand_count; k++)
		if (d->op[k].type == ZYDIS_OPERAND_TYPE_MEMORY && d->op[k].mem.base == ZYDIS_REGISTER_RIP)
			d->op[k].mem.disp.value = FAR;
}

/* ops lifted for address 0: which of them name it */
static void note_addresses(struct form *f)
{
	for (int k = 0; k < f->n; k++) {
		if (f->op[k].op == SEM_REC || gr_has_slot2(&f->op[k]))
			f->rec |= 1ull << k;
		if (f->op[k].op == SEM_MODADDR)
			f->mod |= 1ull << k;
		if (f->op[k].op == SEM_MODADDR && f->op[k].imm >= FAR) {
			f->rip |= 1ull << k;
			f->op[k].imm -= FAR;
		}
		k += gr_has_slot2(&f->op[k]);
	}
}

/* ops of d, of which nothing that is relative to rip is kept where that can be; true if the rest may be kept, too */
static bool lift(const struct module *m, const struct an_insn *i, struct dec *d, bool rip, struct form *f)
{
	if (rip == (i->disp != 0)) {
		if (rip)
			move_away(d);
		f->n = sem_lift(&d->in, d->op, 0, NULL, f->op, SEM_LIFT_MAX, f->ea);
		if (f->n <= 64) {
			note_addresses(f);
			return true;
		}
		dec_insn(m, i, d); /* as it was */
	}
	f->n = sem_lift(&d->in, d->op, i->vaddr, NULL, f->op, SEM_LIFT_MAX, f->ea);
	return false;
}

/* everything; true if it may be kept */
static bool find_all(const struct module *m, const struct an_insn *i, struct form *f)
{
	struct dec d;
	bool keep, rip;

	f->n = -1;
	f->plain = false;
	f->rec = f->mod = f->rip = 0;
	f->writes = TV_ALL;
	if (dec_insn(m, i, &d)) {
		f->reason = MAP_R_DECODE;
		return false;
	}
	rip = rip_relative(&d);
	f->reason = emit_can(&d, i, m->mapflags);
	f->gprs = (uint16_t)dec_gprs(&d);
	f->plain = i->flow == FLOW_NEXT && !(f->gprs >> R15 & 1) && d.in.mnemonic != ZYDIS_MNEMONIC_ENDBR64;
	f->nslot = 0;
	if (i->flow == FLOW_NEXT && (f->gprs >> R15 & 1)) {
		uint8_t b[32];

		f->nslot = (uint8_t)r15_slot(&d, b);
		memcpy(f->slot, b, f->nslot);
	}
	live_form(f, &d, i);
	f->writes = tv_form(&d.in, d.op);
	keep = lift(m, i, &d, rip, f);
	if (f->n >= 0)
		gr_form(f, &d.in, i->flow);
	return keep;
}

/* Forms lie close together, those that are met first, which are met most, among themselves: room for one of n bytes at the
 * thread's own end. NULL: no memory */
static void *room(size_t n)
{
	if (n > room_left) {
		room_at = malloc(ROOM);
		room_left = room_at ? ROOM : 0;
	}
	return room_at;
}

static const struct form *put(_Atomic(struct form *) *slot, const struct form *f)
{
	size_t n = sizeof(*f) + (f->n > 0 ? f->n : 0) * (sizeof(*f->op) + FORM_NOTE);
	struct form *q, *other = NULL;

	if (atomic_load_explicit(&kept, memory_order_relaxed) >= MOST || !(q = room(n)))
		return f;
	memcpy(q, f, n);
	if (!atomic_compare_exchange_strong(slot, &other, q))
		return f; /* same bytes or not: what was found stands */
	atomic_fetch_add_explicit(&kept, 1, memory_order_relaxed);
	n = (n + 15) & ~(size_t)15;
	room_at += n;
	room_left -= n;
	return q;
}

static uint64_t hash(const uint64_t key[2])
{
	return (key[0] ^ key[1] * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu >> 32;
}

/* the one with this key, NULL if there is none yet: *h is the place to put it */
static const struct form *look_up(const uint64_t key[2], uint64_t *h)
{
	for (;; ++*h) {
		const struct form *q = atomic_load_explicit(&table[*h % SLOTS], memory_order_acquire);

		if (!q || (q->key[0] == key[0] && q->key[1] == key[1]))
			return q;
	}
}

#define AT_ONCE 16

static void find_some(const struct module *m, const struct an_insn *i, uint32_t n, const struct form **out)
{
	uint64_t key[AT_ONCE][2], h[AT_ONCE];

	for (uint32_t k = 0; k < n; k++) {
		const uint8_t *b = elf_at(m, i[k].vaddr, 16);
		bool all = b != NULL;

		if (!b)
			b = elf_at(m, i[k].vaddr, i[k].len);
		key[k][0] = key[k][1] = 0; /* no instruction's */
		if (b)
			make_key(key[k], b, all, &i[k]);
		h[k] = hash(key[k]);
		__builtin_prefetch(&table[h[k] % SLOTS]);
	}
	for (uint32_t k = 0; k < n; k++) {
		out[k] = atomic_load_explicit(&table[h[k] % SLOTS], memory_order_acquire);
		__builtin_prefetch(out[k]);
	}
	for (uint32_t k = 0; k < n; k++)
		if (out[k] && (out[k]->key[0] != key[k][0] || out[k]->key[1] != key[k][1]))
			out[k] = look_up(key[k], &h[k]);
}

void form_find(const struct module *m, const struct an_insn *i, uint32_t n, const struct form **out)
{
	for (uint32_t k = 0; k < n; k += AT_ONCE)
		find_some(m, i + k, n - k < AT_ONCE ? n - k : AT_ONCE, out + k);
}

const struct form *form_get(const struct module *m, const struct an_insn *i, void *tmp)
{
	const uint8_t *b = elf_at(m, i->vaddr, i->len);
	struct form *f = tmp;
	const struct form *q;
	uint64_t key[2], h;

	if (!b) {
		f->n = -1;
		f->reason = MAP_R_DECODE;
		f->writes = TV_ALL;
		return f;
	}
	make_key(key, b, elf_at(m, i->vaddr, 16) != NULL, i);
	h = hash(key);
	q = look_up(key, &h);
	if (q)
		return q;
	f->key[0] = key[0];
	f->key[1] = key[1];
	return find_all(m, i, f) ? put(&table[h % SLOTS], f) : f;
}

const struct form *form_of(const struct module *m, const struct an_group *g, uint32_t i, void *tmp)
{
	const struct live *l = g->live;
	struct form *f = tmp;

	if (!l || !l->form)
		return form_get(m, &g->insn[i], tmp);
	if (l->form[i])
		return l->form[i];
	find_all(m, &g->insn[i], f);
	return f;
}
