/* SPDX-License-Identifier: MIT
 *
 * report.c - statistics, dumps and explanations of what discovery found
 */
#include <inttypes.h>
#include <string.h>
#include "elf_priv.h"
#include "glue.h"
#include "report.h"

static const char *const reason_name[MAP_R_NREASONS] = {
	"certain",
	"undecodable",
	"overlapping instructions",
	"address escapes",
	"not relocatable",
	"read as data",
	"restartable sequence",
	"indirect jump",
	"too short to patch",
	"on the avoid list",
	"signal return",
	"not reached",
	"limit",
	"no system calls in it (sparse)",
};

const char *report_reason(unsigned reason)
{
	return reason < MAP_R_NREASONS ? reason_name[reason] : "?";
}

static const char *const flow_name[] = {"", "jmp", "jcc", "ijmp", "call", "icall", "ret", "syscall", "halt"};

struct counts {
	uint64_t insns, bytes, blocks, jumps, exact, inexact, leaves, calls, returns, short_ret, taken,
		suspect, alt;
	uint64_t tailx, icalls, twice, landing;
};

static void count_group(const struct module *m, const struct an_group *g, struct counts *c)
{
	c->insns += g->ninsn;
	c->blocks += g->nblock;
	c->suspect += g->suspect;
	c->taken += g->sum->addr_taken;
	c->tailx += g->sum->tailx;
	for (uint32_t i = 0; i < g->ninsn; i++)
		c->bytes += g->insn[i].len;
	for (uint32_t i = 0; i < g->nblock; i++) {
		const struct an_block *b = &g->block[i];
		const struct an_insn *in = &g->insn[b->first + b->n - 1];

		c->twice += !!(b->flags & AN_B_TWICE);
		c->landing += !!(b->flags & AN_B_LANDING);
		c->calls += in->flow == FLOW_CALL;
		c->icalls += in->flow == FLOW_ICALL;
		if (in->flow == FLOW_IJMP) {
			c->jumps++;
			if (b->table == AN_NONE)
				c->leaves++;
			else if (g->table[b->table].exact)
				c->exact++;
			else
				c->inexact++;
		}
		if (b->flags & AN_B_RETURN) {
			uint32_t room = 0;

			/* bytes up to the next place that must stay intact: a call, or somebody's entry */
			for (uint32_t k = b->first; k < g->ninsn && room < 5; k++) {
				if (k != b->first && g->insn[k].block != g->insn[k - 1].block &&
				    glue_stub(m, g, g->insn[k].block) != STUB_NONE)
					break;
				if (g->insn[k].flow == FLOW_CALL || g->insn[k].flow == FLOW_ICALL)
					break;
				room += g->insn[k].len;
			}
			c->returns++;
			c->short_ret += room < 5;
		}
	}
}

void report_stats(const struct module *m, FILE *f)
{
	uint64_t bytes[MAP_R_NREASONS] = {0}, num[MAP_R_NREASONS] = {0}, text = 0, pad = 0;
	const struct elf_priv *x = elf_priv(m);
	struct counts c = {0};

	for (uint32_t i = 0; i < m->ngroup; i++)
		count_group(m, &m->group[i], &c);
	for (uint32_t i = 0; i < m->nopaque; i++) {
		bytes[m->opaque[i].reason] += m->opaque[i].end - m->opaque[i].start;
		num[m->opaque[i].reason]++;
	}
	for (uint32_t i = 0; i < x->text.n; i++)
		text += x->text.v[i].end - x->text.v[i].start;
	for (uint32_t v = m->text_lo; v < m->text_hi; v++)
		pad += m->live_byte[v - m->text_lo] == AN_BYTE_PAD;
	fprintf(f, "module            %s\n", m->soname);
	fprintf(f, "text              %" PRIu64 " bytes, padding %" PRIu64 "\n", text, pad);
	fprintf(f,
		"groups            %u, %" PRIu64 " suspect, %" PRIu64 " address taken, %" PRIu64
		" may leave by a jump\n",
		m->ngroup, c.suspect, c.taken, c.tailx);
	fprintf(f, "certain           %" PRIu64 " instructions, %" PRIu64 " bytes, %" PRIu64 " blocks\n",
		c.insns, c.bytes, c.blocks);
	fprintf(f,
		"indirect jumps    %" PRIu64 ": exact %" PRIu64 ", inexact %" PRIu64 ", leave %" PRIu64 "\n",
		c.jumps, c.exact, c.inexact, c.leaves);
	fprintf(f, "calls             direct %" PRIu64 ", indirect %" PRIu64 "\n", c.calls, c.icalls);
	fprintf(f,
		"return sites      %" PRIu64 ", short %" PRIu64 ", returns-twice %" PRIu64
		", landing pads %" PRIu64 "\n",
		c.returns, c.short_ret, c.twice, c.landing);
	fprintf(f, "prefix variants   %u\n", x->nalt);
	for (int r = 1; r < MAP_R_NREASONS; r++)
		if (num[r])
			fprintf(f, "opaque            %" PRIu64 " bytes in %" PRIu64 " places: %s\n",
				bytes[r], num[r], reason_name[r]);
}

static void dump_block(const struct an_group *g, uint32_t i, FILE *f)
{
	const struct an_block *b = &g->block[i];
	static const char flag[] = "ETLRwhAr";

	fprintf(f, "  block %u depth %u ", i, b->depth);
	for (int k = 0; k < 8; k++)
		if (b->flags >> k & 1)
			fputc(flag[k], f);
	for (int k = 0; k < 2; k++)
		if (b->succ[k] != AN_NONE)
			fprintf(f, " -> %u", b->succ[k]);
	if (b->table != AN_NONE) {
		const struct an_table *t = &g->table[b->table];

		fprintf(f, " %s table 0x%x [%u]:", t->exact ? "exact" : "inexact", t->vaddr, t->ntarget);
		for (uint32_t k = 0; k < t->ntarget; k++)
			fprintf(f, " %u", t->target[k]);
	}
	fputc('\n', f);
	for (uint32_t k = b->first; k < b->first + b->n; k++) {
		const struct an_insn *in = &g->insn[k];

		fprintf(f, "    %x %u %s", in->vaddr, in->len, flow_name[in->flow]);
		if (in->target != AN_NONE)
			fprintf(f, " %x", in->target);
		fprintf(f, "%s%s\n", in->flags & AN_I_NORETURN ? " noreturn" : "",
			in->flags & AN_I_SETJMP ? " twice" : "");
	}
}

static void dump_group(const struct an_group *g, FILE *f)
{
	fprintf(f, "group %u %s%s%s%s", g->id, g->name ? g->name : "?", g->suspect ? " suspect" : "",
		g->sum->addr_taken ? " taken" : "", g->sum->tailx ? " tailx" : "");
	for (uint32_t i = 0; i < g->nrange; i++)
		fprintf(f, " %x-%x", g->range[i].start, g->range[i].end);
	fputc('\n', f);
	for (uint32_t i = 0; i < g->nblock; i++)
		dump_block(g, i, f);
}

void report_dump(const struct module *m, FILE *f)
{
	for (uint32_t i = 0; i < m->ngroup; i++)
		dump_group(&m->group[i], f);
	for (uint32_t i = 0; i < m->nopaque; i++)
		fprintf(f, "opaque %x-%x %s\n", m->opaque[i].start, m->opaque[i].end,
			reason_name[m->opaque[i].reason]);
}

uint32_t report_where(const struct module *m, const char *where)
{
	const struct elf_priv *x = elf_priv(m);
	uint32_t v = AN_NONE;
	char *end;

	if (!strncmp(where, "0x", 2)) {
		v = strtoul(where, &end, 16);
		if (*end)
			v = AN_NONE;
	}
	for (uint32_t i = 0; v == AN_NONE && i < x->sym.n; i++)
		if (!strcmp(x->sym.v[i].name, where))
			v = x->sym.v[i].vaddr;
	return v;
}

int report_explain(const struct module *m, const char *where, FILE *f)
{
	const struct elf_priv *x = elf_priv(m);
	uint32_t v = report_where(m, where);

	for (uint32_t i = 0; v != AN_NONE && i < x->home.n; i++)
		if (v >= x->home.v[i].start && v < x->home.v[i].end) {
			dump_group(&m->group[x->home.v[i].group], f);
			return 0;
		}
	for (uint32_t i = 0; v != AN_NONE && i < m->nopaque; i++)
		if (v >= m->opaque[i].start && v < m->opaque[i].end) {
			fprintf(f, "opaque %x-%x: %s\n", m->opaque[i].start, m->opaque[i].end,
				reason_name[m->opaque[i].reason]);
			return 0;
		}
	fprintf(stderr,
		"ptrace-analyze: there is no code at '%s' in '%s'; give a symbol, or an address as 0x…\n",
		where, m->path);
	return -1;
}
