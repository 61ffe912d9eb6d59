/* SPDX-License-Identifier: MIT
 *
 * pt_cpu.c - the trace unit: which packet is due when (pt_cpu.h)
 *
 * Facts: Intel SDM volume 3, chapter "Intel Processor Trace": "Packet generation scenarios" (the table of what each kind
 * of instruction and event sends), "PSB+", "Internal Buffer Overflow", "Packet Definitions".
 */
#include "pt_cpu.h"

#include <string.h>

static void counted(void *arg, const uint8_t *bytes, size_t n);

void pt_cpu_init(struct pt_cpu *c, const struct pt_cpu_config *cfg,
		 void (*put)(void *arg, const uint8_t *bytes, size_t n), void *arg, uint64_t tsc)
{
	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	c->put = put;
	c->put_arg = arg;
	c->enc.put = counted;
	c->enc.arg = c;
	c->enc.no_48 = cfg->no_48;
	c->tsc_base = tsc;
	c->sent = cfg->psb_period; /* PacketByteCnt is 0: the first output is a PSB */
}

static void counted(void *arg, const uint8_t *bytes, size_t n)
{
	struct pt_cpu *c = arg;

	c->sent += n;
	c->total += n;
	c->put(c->put_arg, bytes, n);
}

/* --- time -------------------------------------------------------------------------------------- */

uint64_t pt_cpu_tsc(const struct pt_cpu *c)
{
	return c->tsc_base + c->cycles * c->cfg.tsc_bus_ratio / c->cfg.bus_ratio;
}

static uint64_t crystal(const struct pt_cpu *c)
{
	return (uint64_t)((unsigned __int128)pt_cpu_tsc(c) * c->cfg.tsc_ratio_d / c->cfg.tsc_ratio_n);
}

/* In front of every packet that time can be bound to, when enough of it has passed. */
static void cyc(struct pt_cpu *c)
{
	if (!c->cfg.cyc || c->cycles - c->cyc_sent < c->cfg.cyc_thresh)
		return;
	pt_cyc(&c->enc, c->cycles - c->cyc_sent);
	c->cyc_sent = c->cycles;
	c->n.cyc++;
}

static void tsc(struct pt_cpu *c)
{
	uint64_t ctc = crystal(c), start;

	if (!c->cfg.tsc)
		return;
	pt_tsc(&c->enc, pt_cpu_tsc(c) & 0xffffffffffffff);
	if (!c->cfg.mtc)
		return;
	/* FastCounter: TSC ticks since the crystal's last tick */
	start = (uint64_t)(((unsigned __int128)ctc * c->cfg.tsc_ratio_n + c->cfg.tsc_ratio_d - 1) /
			   c->cfg.tsc_ratio_d);
	pt_tma(&c->enc, (uint16_t)ctc, (uint16_t)((pt_cpu_tsc(c) - start) & 0x1ff));
	c->mtc_sent = ctc >> c->cfg.mtc_period;
}

void pt_cpu_tick(struct pt_cpu *c, unsigned cycles)
{
	uint64_t now;

	c->cycles += cycles;
	if (!c->cfg.mtc || !c->on)
		return;
	now = crystal(c) >> c->cfg.mtc_period;
	if (c->lost) {
		c->mtc_sent = now;
		return;
	}
	while (c->mtc_sent != now) {
		c->mtc_sent++;
		cyc(c);
		pt_mtc(&c->enc, (uint8_t)c->mtc_sent);
		c->n.mtc++;
	}
}

/* --- branches ---------------------------------------------------------------------------------- */

/* All that is held back goes out: in this order, and before any other packet. */
static void branches_out(struct pt_cpu *c)
{
	if (c->ntnt) {
		cyc(c);
		pt_tnt(&c->enc, c->tnt, c->ntnt);
		c->n.tnt++;
	}
	c->tnt = c->ntnt = 0;
	for (unsigned i = 0; i < c->ntips; i++) {
		cyc(c);
		pt_ip(&c->enc, PT_TIP, c->tips[i]);
		c->n.tip++;
	}
	c->ntips = 0;
}

static void bit(struct pt_cpu *c, bool taken)
{
	if (c->lost)
		return;
	c->tnt = c->tnt << 1 | taken;
	if (++c->ntnt == (c->cfg.long_tnt ? PT_TNT_LONG : PT_TNT_SHORT))
		branches_out(c);
}

/* may_wait: for the TNT to fill. A RET's may not: the decoder would take a later branch's bit for it. */
static void tip(struct pt_cpu *c, uint64_t target, bool may_wait)
{
	if (c->lost)
		return;
	if (c->cfg.defer && may_wait && c->ntips < sizeof(c->tips) / sizeof(c->tips[0])) {
		c->tips[c->ntips++] = target;
		return;
	}
	branches_out(c);
	cyc(c);
	pt_ip(&c->enc, PT_TIP, target);
	c->n.tip++;
}

void pt_cpu_jcc(struct pt_cpu *c, bool taken)
{
	bit(c, taken);
}

void pt_cpu_jmp(struct pt_cpu *c, uint64_t target)
{
	tip(c, target, true);
}

void pt_cpu_call(struct pt_cpu *c, uint64_t ret, bool indirect, uint64_t target)
{
	c->calls[c->calls_top++ % PT_CALLS] = ret;
	if (c->ncalls < PT_CALLS)
		c->ncalls++;
	if (indirect)
		tip(c, target, true);
}

/* Compressed where it goes where its call came from. One that does not makes the processor forget its depth:
 * nothing is compressed till there are new calls, so decoders that take such a RET's entry off their stack and
 * decoders that leave it there (libipt) agree. */
void pt_cpu_ret(struct pt_cpu *c, uint64_t target)
{
	if (!c->cfg.no_retc && c->ncalls && c->calls[(c->calls_top - 1) % PT_CALLS] == target) {
		c->ncalls--;
		c->calls_top--;
		c->n.retc++;
		bit(c, true);
		return;
	}
	c->ncalls = 0;
	tip(c, target, false);
}

/* --- PSB, enabling, leaving --------------------------------------------------------------------- */

static void psb(struct pt_cpu *c, uint64_t ip)
{
	branches_out(c);
	c->psb_at = c->total;
	pt_psb(&c->enc);
	c->sent = 0;
	c->ncalls = 0; /* no RET is compressed across a PSB */
	c->mode_sent = false;
	tsc(c);
	pt_cbr(&c->enc, c->cfg.bus_ratio);
	if (c->in_user) {
		pt_mode_tsx(&c->enc, false, false);
		pt_mode_exec(&c->enc, true, false, false);
		c->mode_sent = true;
		pt_ip(&c->enc, PT_FUP, ip);
	}
	pt_psbend(&c->enc);
	c->n.psb++;
}

static void ovf(struct pt_cpu *c)
{
	c->lost = false;
	c->ovf_at = c->total;
	pt_ovf(&c->enc);
	c->n.ovf++;
}

void pt_cpu_between(struct pt_cpu *c, uint64_t ip)
{
	if (!c->lost && c->sent >= c->cfg.psb_period)
		psb(c, ip);
}

void pt_cpu_on(struct pt_cpu *c)
{
	c->on = true;
	c->in_user = false;
	c->ncalls = 0;
	c->cyc_sent = c->cycles;
	c->mtc_sent = crystal(c) >> c->cfg.mtc_period;
	if (c->lost)
		return;
	if (c->sent >= c->cfg.psb_period) {
		psb(c, 0);
		return;
	}
	tsc(c);
	pt_cbr(&c->enc, c->cfg.bus_ratio);
}

void pt_cpu_user(struct pt_cpu *c, uint64_t ip)
{
	if (c->lost) { /* the overflow has resolved while the thread was in the kernel */
		cyc(c);
		ovf(c);
	}
	if (c->sent >= c->cfg.psb_period)
		psb(c, 0);
	c->in_user = true;
	if (!c->mode_sent)
		pt_mode_exec(&c->enc, true, false, false);
	c->mode_sent = true;
	cyc(c);
	pt_ip(&c->enc, PT_PGE, ip);
	c->n.pge++;
}

static void pgd(struct pt_cpu *c)
{
	cyc(c);
	pt_ip_form(&c->enc, PT_PGD, PT_IP_NONE, 0);
	c->n.pgd++;
}

static void left(struct pt_cpu *c)
{
	c->in_user = false;
	c->ncalls = 0; /* nor across a time of PacketEn = 0 */
}

void pt_cpu_sync_exit(struct pt_cpu *c)
{
	if (!c->lost) {
		branches_out(c);
		pgd(c);
	}
	left(c);
}

void pt_cpu_async_exit(struct pt_cpu *c, uint64_t ip)
{
	if (!c->lost) {
		branches_out(c);
		pt_ip(&c->enc, PT_FUP, ip);
		c->n.fup++;
		pgd(c);
	}
	left(c);
}

/* A trace that ends while the thread is in user mode ends in the interrupt that took the processor away from it. */
void pt_cpu_off(struct pt_cpu *c, uint64_t ip)
{
	if (c->in_user)
		pt_cpu_async_exit(c, ip);
	if (c->lost) /* pending: sent before TraceEn is clear */
		ovf(c);
	c->on = false;
}

/* SDM Vol. 3, "MODE.TSX packet": each with the FUP of where it takes effect; an abort's is followed by the TIP of the fallback */
void pt_cpu_abort(struct pt_cpu *c, uint64_t ip, uint64_t to)
{
	if (c->lost)
		return;
	branches_out(c);
	pt_mode_tsx(&c->enc, true, false);
	pt_ip(&c->enc, PT_FUP, ip);
	pt_mode_tsx(&c->enc, false, true);
	pt_ip(&c->enc, PT_FUP, ip);
	c->n.fup += 2;
	cyc(c);
	pt_ip(&c->enc, PT_TIP, to);
	c->n.tip++;
}

void pt_cpu_ptwrite(struct pt_cpu *c, uint64_t ip, uint64_t value, unsigned size)
{
	if (!c->cfg.ptw || c->lost)
		return;
	branches_out(c);
	cyc(c);
	pt_ptw(&c->enc, value, size, c->cfg.fup_on_ptw);
	c->n.ptw++;
	if (!c->cfg.fup_on_ptw)
		return;
	pt_ip(&c->enc, PT_FUP, ip);
	c->n.fup++;
}

/* --- overflow ----------------------------------------------------------------------------------- */

/* What had not left the unit is lost, too. */
void pt_cpu_overflow(struct pt_cpu *c)
{
	c->lost = true;
	c->tnt = c->ntnt = c->ntips = 0;
	c->ncalls = 0;
}

void pt_cpu_resolve(struct pt_cpu *c, uint64_t ip)
{
	if (!c->lost || !c->in_user)
		return;
	cyc(c);
	ovf(c);
	c->ncalls = 0;
	pt_ip(&c->enc, PT_FUP, ip);
	c->n.fup++;
	if (c->sent >= c->cfg.psb_period)
		psb(c, ip);
}
