/* SPDX-License-Identifier: MIT
 *
 * walk_vec.c - ops that give many records: gathers, scatters, masked moves, string
 * instructions, xsave areas; and the comparison of a verify map
 *
 * Order and sizes are those of trace.h. What such an instruction writes is not modelled, so the
 * bytes are forgotten in shadow memory.
 */
#include <string.h>
#include "sem_eval.h"
#include "walk.h"

#define ADDRESSES (1ull << 57) /* bytes a process can have: more elements than that cannot be */
#define XSAVE_MAX (1u << 20) /* far above any processor's */

static int put(struct walker *w, uint32_t vip, uint64_t addr, uint32_t size, unsigned kind)
{
	*w->out++ = (struct ptrace_rec){
		.ip = w->m->bias + vip, .addr = addr, .size = size, .tid = w->index, .kind = kind};
	((struct bcount *)(uintptr_t)w->pc[1].imm)->extra++;
	if (kind == PTRACE_W && !mem_forget(w->mem, addr, size))
		return lost(w, "shadow memory reached its bound (raise --memory)");
	return w->out >= w->outlim ? flush(w) : 0;
}

static const struct sem_op *op_at(const struct walker *w)
{
	return &w->m->map->op[w->pc - w->m->code];
}

static uint64_t address(const struct walker *w, const struct sem_op *o)
{
	return (o->a == SEM_NONE ? 0 : w->r[o->a]) + (o->b == SEM_NONE ? 0 : w->r[o->b] << o->w) +
	       (uint64_t)(int64_t)SEM_REC_DISP(o->imm);
}

/* bit i = element i is active; reads the mask from the stream */
static int read_mask(struct walker *w, const struct sem_vec *v, uint64_t *mask)
{
	*mask = v->n >= 64 ? ~0ull : (1ull << v->n) - 1;
	if (v->mask == SEM_MASK_K) {
		uint64_t k = 0;

		if (!need(w, v->mask_bytes))
			return seek_dry(w);
		memcpy(&k, w->p, v->mask_bytes);
		w->p += v->mask_bytes;
		*mask &= k;
	} else if (v->mask == SEM_MASK_REG) {
		*mask &= w->r[v->count];
	} else if (v->mask == SEM_MASK_VEC) {
		size_t n = (size_t)v->n * v->mask_bytes;

		if (!need(w, n))
			return seek_dry(w);
		for (unsigned i = 0; i < v->n && i < 64; i++)
			if (!(w->p[(i + 1) * v->mask_bytes - 1] >> 7)) /* sign bit of the element */
				*mask &= ~(1ull << i);
		w->p += n;
	}
	return 0;
}

static int elements(struct walker *w, const struct sem_op *o, const struct sem_vec *v, uint64_t mask,
		    const uint8_t *idx)
{
	uint32_t size = SEM_REC_SIZE(o->dst), ip = SEM_REC_IP(o->imm);
	uint64_t base = address(w, o);
	unsigned kind = SEM_REC_KIND(o->dst), n = 0;

	if (v->flags & SEM_VEC_BCAST)
		mask = mask ? 1 : 0;
	for (unsigned i = 0; i < v->n && i < 64; i++) {
		uint64_t a = base;

		if (!(mask >> i & 1))
			continue;
		if (v->idx_bytes == 4) {
			int32_t x;

			memcpy(&x, idx + 4 * i, 4);
			a += (uint64_t)(int64_t)x << v->idx_scale;
		} else if (v->idx_bytes == 8) {
			uint64_t x;

			memcpy(&x, idx + 8 * i, 8);
			a += x << v->idx_scale;
		} else {
			a += (uint64_t)size * (v->flags & SEM_VEC_COMPRESS ? n : i);
		}
		n++;
		if (v->flags & SEM_VEC_READ_WRITE) {
			if (put(w, ip, a, size, PTRACE_R) || put(w, ip, a, size, PTRACE_W))
				return 1;
		} else if (put(w, ip, a, size, kind)) {
			return 1;
		}
	}
	return 0;
}

int walk_recvec(struct walker *w)
{
	const struct sem_op *o = op_at(w);
	uint8_t idx[64 * 8];
	struct sem_vec v;
	uint64_t mask;
	size_t n;

	memcpy(&v, o + 1, sizeof(v));
	n = (size_t)v.n * v.idx_bytes;
	if (v.n > 64 || (v.idx_bytes != 0 && v.idx_bytes != 4 && v.idx_bytes != 8) || v.idx_scale > 3 ||
	    (v.mask == SEM_MASK_VEC && v.mask_bytes != 1 && v.mask_bytes != 4 && v.mask_bytes != 8) ||
	    (v.mask == SEM_MASK_K && v.mask_bytes > 8) || v.mask > SEM_MASK_REG ||
	    (v.mask == SEM_MASK_REG && v.count >= SEM_NREGS) ||
	    (v.n && v.mask_bytes > 0 && (size_t)v.n * v.mask_bytes > LOG_MIN))
		return lost(w, "%s: a vector access this decoder does not know", w->m->map->path);
	if (read_mask(w, &v, &mask))
		return 1;
	if (!need(w, n))
		return seek_dry(w);
	memcpy(idx, w->p, n);
	w->p += n;
	return elements(w, o, &v, mask, idx);
}

/* elements w->rep_done to `to` of the string instruction at pc, with these registers */
static int rep_range(struct walker *w, const uint64_t *r, const struct sem_vec *s, uint64_t to)
{
	const struct sem_op *o = op_at(w);
	uint64_t step = r[s->df] ? 0 - (uint64_t)o->w : o->w, n = w->rep_done;
	uint64_t src = (o->a == SEM_NONE ? 0 : r[o->a]) + n * step;
	uint64_t dst = (o->b == SEM_NONE ? 0 : r[o->b]) + n * step;
	uint32_t ip = SEM_REC_IP(o->imm);
	const struct sem_vec v = *s;

	if (o->w && to > ADDRESSES / o->w)
		return lost(w, "a string instruction with a count of %llu", (unsigned long long)to);
	for (; n < to; n++, src += step, dst += step) {
		if (v.kind == SEM_REP_MOVS || v.kind == SEM_REP_LODS || v.kind == SEM_REP_CMPS)
			if (put(w, ip, src, o->w, PTRACE_R))
				return 1;
		if (v.kind == SEM_REP_LODS)
			continue;
		if (put(w, ip, dst, o->w,
			v.kind == SEM_REP_MOVS || v.kind == SEM_REP_STOS ? PTRACE_W : PTRACE_R))
			return 1;
	}
	return 0;
}

static int rep_slot(struct walker *w, struct sem_vec *v)
{
	memcpy(v, op_at(w) + 1, sizeof(*v));
	return v->count >= SEM_NREGS || v->df >= SEM_NREGS || v->kind > SEM_REP_SCAS
		       ? lost(w, "%s: a string access this decoder does not know", w->m->map->path)
		       : 0;
}

int walk_recrep(struct walker *w)
{
	struct sem_vec v;

	if (rep_slot(w, &v) || rep_range(w, w->r, &v, w->r[v.count]))
		return 1;
	w->rep_done = 0;
	return 0;
}

/* pc is at the instruction's first op */
int walk_rep_part(struct walker *w, uint32_t op, uint64_t n)
{
	const struct map *m = w->m->map;
	struct xop *pc = w->pc;
	uint64_t r[WALK_NREGS];
	struct sem_vec v;
	int k;

	memcpy(r, w->r, sizeof(r));
	for (uint32_t i = pc - w->m->code; i < op; i++) /* its addresses, where a segment is added */
		if (sem_is_value(m->op[i].op))
			r[m->op[i].dst] = sem_value(&m->op[i], r, w->m->bias);
	w->pc = w->m->code + op;
	k = rep_slot(w, &v) || rep_range(w, r, &v, n);
	w->rep_done = n;
	w->pc = pc;
	return k;
}

/* SDM Vol. 1, 13.4: legacy area and header 576 bytes; then the components, at their CPUID offsets
 * in the standard format, packed in order in the compacted one (13.4.3), where tile data and
 * configuration (17, 18) are aligned to 64. */
static uint64_t xsave_size(const struct run_start *s, uint64_t rfbm, bool compact)
{
	uint64_t size = 576;

	for (int i = 2; i < 63; i++) {
		uint64_t n = s->xsave_comp[0][i], off = s->xsave_comp[1][i];

		if (!(rfbm >> i & 1))
			continue;
		if (compact)
			size = (i >= 17 ? (size + 63) & ~63ull : size) + n;
		else if (off + n > size)
			size = off + n;
	}
	return size;
}

int walk_recxs(struct walker *w)
{
	const struct sem_op *o = op_at(w);
	const struct run_start *s = proc_cpu(w->proc);
	struct sem_vec v;
	uint64_t rfbm, size;

	memcpy(&v, o + 1, sizeof(v));
	if (v.count >= SEM_NREGS || v.df >= SEM_NREGS || v.kind > SEM_XS_RSTOR)
		return lost(w, "%s: a state save this decoder does not know", w->m->map->path);
	if (!s)
		return lost(w, "the size of an xsave area needs the start state, which is missing");
	rfbm = ((uint32_t)w->r[v.count] | w->r[v.df] << 32) & s->xcr0;
	size = xsave_size(s, rfbm, v.kind == SEM_XS_SAVEC);
	if (size > XSAVE_MAX)
		return lost(w, "an xsave area of %llu bytes: the start state is wrong",
			    (unsigned long long)size);
	return put(w, SEM_REC_IP(o->imm), address(w, o), (uint32_t)size,
		   v.kind == SEM_XS_RSTOR ? PTRACE_R : PTRACE_W);
}

/* A SEM_VCHK that differs, or reaches back further than it may; p at the logged address. */
int walk_vchk(struct walker *w, uint64_t back)
{
	struct walk_result *res = w->res;
	const struct ptrace_rec *rec;
	uint64_t want;

	if (back >= REC_KEEP)
		return lost(w, "a check of record %llu back", (unsigned long long)back);
	memcpy(&want, w->p, 8);
	rec = w->out - 1 - back;
	w->st->wrong++;
	if (res->ndiff < NELEM(res->diff))
		res->diff[res->ndiff++] = (struct walk_diff){
			rec->ip, want, rec->addr, log_pos(w->log, w->p), rec->size, rec->kind};
	w->p += 8;
	return 0;
}
