/* SPDX-License-Identifier: MIT
 *
 * out_lackey.c - the lines of Valgrind's lackey --trace-mem=yes
 *
 *   I  addr,size     instruction
 *    L addr,size     load
 *    S addr,size     store
 *    M addr,size     load and store of the same place by one instruction
 *
 * The walker gives one block record before a block's accesses. Instructions are written up to
 * the one that an access belongs to; what is left of a block, when the next begins (or a handler, up to
 * the instruction that was interrupted). Prefetches
 * have no line (lackey shows none).
 */
#include <stdlib.h>
#include "out.h"

struct lackey {
	const uint8_t *len; /* lengths of the instructions not written yet */
	uint32_t n;
	uint64_t ip; /* of the first of them */
	uint64_t cur; /* the last one written */
	bool have; /* a read waits for its write */
	struct ptrace_rec read;
};

static void line(struct obuf *o, const char *what, uint64_t addr, uint64_t size)
{
	char *p = put_str(obuf_line(o), what, 3);

	p = put_hex(p, addr, 8);
	*p++ = ',';
	p = put_dec(p, size);
	*p++ = '\n';
	obuf_done(o, p);
}

static void flush_read(struct lackey *l, struct obuf *o)
{
	if (l->have)
		line(o, " L ", l->read.addr, l->read.size);
	l->have = false;
}

static void one_insn(struct lackey *l, struct obuf *o)
{
	flush_read(l, o);
	line(o, "I  ", l->ip, *l->len);
	l->cur = l->ip;
	l->ip += *l->len++;
	l->n--;
}

static int lackey_begin(struct sink *s)
{
	s->priv = xcalloc(1, sizeof(struct lackey));
	return 0;
}

static void access_line(struct lackey *l, struct obuf *o, const struct ptrace_rec *r)
{
	while (l->n && l->ip <= r->ip)
		one_insn(l, o);
	if (r->kind == PTRACE_P)
		return;
	if (r->kind == PTRACE_W && l->have && l->read.ip == r->ip && l->read.addr == r->addr &&
	    l->read.size == r->size) {
		line(o, " M ", r->addr, r->size);
		l->have = false;
		return;
	}
	flush_read(l, o);
	if (r->kind == PTRACE_W) {
		line(o, " S ", r->addr, r->size);
	} else {
		l->read = *r;
		l->have = true;
	}
}

static int lackey_batch(struct sink *s, const struct ptrace_rec *rec, size_t n)
{
	struct lackey *l = s->priv;

	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];

		if (r->kind != WALK_BLOCK) {
			access_line(l, s->o, r);
			continue;
		}
		while (l->n && (r->addr || l->ip < r->ip))
			one_insn(l, s->o);
		flush_read(l, s->o);
		l->len = (const uint8_t *)(uintptr_t)r->addr;
		l->n = r->size;
		l->ip = r->ip;
	}
	return s->o->err ? -1 : 0;
}

static int lackey_end(struct sink *s)
{
	struct lackey *l = s->priv;

	while (l && l->n)
		one_insn(l, s->o);
	if (l)
		flush_read(l, s->o);
	free(l);
	s->priv = NULL;
	return s->o->err ? -1 : 0;
}

const struct sink sink_lackey = {
	.name = "lackey", .blocks = true, .begin = lackey_begin, .batch = lackey_batch, .end = lackey_end};
