/* SPDX-License-Identifier: MIT
 *
 * out_text.c - formats for people and simple tools: text, csv, raw, null
 */
#include <stdlib.h>
#include <string.h>
#include "out.h"

static const char kind_char[4] = {'R', 'W', 'P', '?'};

/* names of the instruction addresses met lately: finding one is much slower than a line */
#define NSYM 4096
struct symcache {
	uint64_t ip;
	uint32_t tid;
	char *text;
};

static const char *symbol(struct sink *s, const struct ptrace_rec *r)
{
	struct symcache *c;
	char buf[700];

	if (!s->priv)
		s->priv = xcalloc(NSYM, sizeof(*c));
	c = (struct symcache *)s->priv + (r->ip ^ r->ip >> 12) % NSYM;
	if (!c->text || c->ip != r->ip || c->tid != r->tid) {
		free(c->text);
		c->text = xprintf("%s", sym_text(s->run->sym, s->run->thread[r->tid]->proc, r->ip, true, buf,
						 sizeof(buf)));
		c->ip = r->ip;
		c->tid = r->tid;
	}
	return c->text;
}

static int end_text(struct sink *s)
{
	struct symcache *c = s->priv;

	for (int i = 0; c && i < NSYM; i++)
		free(c[i].text);
	free(c);
	s->priv = NULL;
	return 0;
}

/* thread ip kind addr size [time] [symbol] */
static int text_batch(struct sink *s, const struct ptrace_rec *rec, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		char *p = obuf_line(s->o);

		p = put_dec(p, r->tid);
		*p++ = ' ';
		p = put_hex(p, r->ip, 1);
		*p++ = ' ';
		*p++ = kind_char[r->kind & 3];
		*p++ = ' ';
		p = put_hex(p, r->addr, 1);
		*p++ = ' ';
		p = put_dec(p, r->size);
		if (s->time) {
			*p++ = ' ';
			p = put_dec(p, s->time[i]);
		}
		if (s->symbols) {
			*p++ = ' ';
			p = put_str(p, symbol(s, r), 700);
		}
		*p++ = '\n';
		obuf_done(s->o, p);
	}
	return s->o->err ? -1 : 0;
}

static int csv_begin(struct sink *s)
{
	char *p = obuf_line(s->o);

	p = put_str(p, "thread,ip,kind,address,size", 40);
	if (s->time)
		p = put_str(p, ",time", 40);
	if (s->symbols)
		p = put_str(p, ",symbol", 40);
	*p++ = '\n';
	obuf_done(s->o, p);
	return s->o->err ? -1 : 0;
}

/* a field in quotes, quotes in it doubled (RFC 4180) */
static char *quoted(char *p, const char *t)
{
	*p++ = '"';
	for (int i = 0; t[i] && i < 450; i++) {
		if (t[i] == '"')
			*p++ = '"';
		*p++ = t[i];
	}
	*p++ = '"';
	return p;
}

static int csv_batch(struct sink *s, const struct ptrace_rec *rec, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct ptrace_rec *r = &rec[i];
		char *p = obuf_line(s->o);

		p = put_dec(p, r->tid);
		p = put_str(p, ",0x", 3);
		p = put_hex(p, r->ip, 1);
		*p++ = ',';
		*p++ = kind_char[r->kind & 3];
		p = put_str(p, ",0x", 3);
		p = put_hex(p, r->addr, 1);
		*p++ = ',';
		p = put_dec(p, r->size);
		if (s->time) {
			*p++ = ',';
			p = put_dec(p, s->time[i]);
		}
		if (s->symbols) {
			*p++ = ',';
			p = quoted(p, symbol(s, r));
		}
		*p++ = '\n';
		obuf_done(s->o, p);
	}
	return s->o->err ? -1 : 0;
}

static int raw_begin(struct sink *s)
{
	struct ptrace_raw_head h = {PTRACE_RAW_MAGIC, PTRACE_RAW_VERSION, sizeof(struct ptrace_rec)};

	return obuf_put(s->o, &h, sizeof(h));
}

static int raw_batch(struct sink *s, const struct ptrace_rec *rec, size_t n)
{
	return obuf_put(s->o, rec, n * sizeof(*rec));
}

static int null_batch(struct sink *s, const struct ptrace_rec *rec, size_t n)
{
	(void)s, (void)rec, (void)n;
	return 0;
}

const struct sink sink_text = {.name = "text", .times = true, .batch = text_batch, .end = end_text};
const struct sink sink_csv = {
	.name = "csv", .times = true, .begin = csv_begin, .batch = csv_batch, .end = end_text};
const struct sink sink_raw = {.name = "raw", .binary = true, .begin = raw_begin, .batch = raw_batch};
const struct sink sink_null = {.name = "null", .batch = null_batch};

const struct sink *sink_find(const char *name)
{
	static const struct sink *const all[] = {&sink_text, &sink_csv, &sink_lackey,
						 &sink_raw,  &sink_bin, &sink_null};

	for (size_t i = 0; i < NELEM(all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
