/* SPDX-License-Identifier: MIT
 *
 * pt_enc.c - Intel PT packets as bytes: the SDM's tables (pt_enc.h)
 */
#include "pt_enc.h"

#include <assert.h>

static uint8_t *le(uint8_t *p, uint64_t v, unsigned bytes)
{
	while (bytes--) {
		*p++ = (uint8_t)v;
		v >>= 8;
	}
	return p;
}

static void put(struct pt_enc *e, const uint8_t *b, const uint8_t *end)
{
	e->put(e->arg, b, end - b);
}

/* Most packets: 02, an opcode, the payload. */
static void ext(struct pt_enc *e, uint8_t opcode, uint64_t payload, unsigned bytes)
{
	uint8_t b[10] = {0x02, opcode};

	put(e, b, le(b + 2, payload, bytes));
}

void pt_pad(struct pt_enc *e, unsigned n)
{
	static const uint8_t zero;

	while (n--)
		e->put(e->arg, &zero, 1);
}

void pt_psb(struct pt_enc *e)
{
	uint8_t b[16];

	for (int i = 0; i < 16; i += 2) {
		b[i] = 0x02;
		b[i + 1] = 0x82;
	}
	put(e, b, b + 16);
	e->last_ip = 0;
	e->whole = false;
}

void pt_psbend(struct pt_enc *e)
{
	ext(e, 0x23, 0, 0);
}

void pt_ovf(struct pt_enc *e)
{
	ext(e, 0xf3, 0, 0);
	e->whole = true;
}

void pt_tracestop(struct pt_enc *e)
{
	ext(e, 0x83, 0, 0);
}

void pt_tnt(struct pt_enc *e, uint64_t bits, unsigned n)
{
	uint64_t payload = bits | 1ull << n; /* the stop bit stands before the oldest */
	uint8_t b;

	assert(n >= 1 && n <= PT_TNT_LONG && bits >> n == 0);
	if (n > PT_TNT_SHORT) {
		ext(e, 0xa3, payload, 6);
		return;
	}
	b = (uint8_t)(payload << 1);
	e->put(e->arg, &b, 1);
}

uint64_t pt_ip_read(uint64_t last_ip, enum pt_ipbytes form, uint64_t payload)
{
	switch (form) {
	case PT_IP_16:
		return (last_ip & ~0xffffull) | (payload & 0xffff);
	case PT_IP_32:
		return (last_ip & ~0xffffffffull) | (payload & 0xffffffff);
	case PT_IP_SEXT48:
		return (uint64_t)((int64_t)(payload << 16) >> 16);
	case PT_IP_48:
		return (last_ip & ~0xffffffffffffull) | (payload & 0xffffffffffff);
	case PT_IP_64:
		return payload;
	default:
		return last_ip;
	}
}

static unsigned form_bytes(enum pt_ipbytes form)
{
	switch (form) {
	case PT_IP_NONE:
		return 0;
	case PT_IP_16:
		return 2;
	case PT_IP_32:
		return 4;
	case PT_IP_64:
		return 8;
	default:
		return 6;
	}
}

enum pt_ipbytes pt_ip_shortest(const struct pt_enc *e, uint64_t ip)
{
	static const enum pt_ipbytes forms[] = {PT_IP_16, PT_IP_32, PT_IP_48, PT_IP_SEXT48, PT_IP_64};

	for (unsigned i = e->whole ? 3 : 0; i < 5; i++) {
		if (forms[i] == PT_IP_48 && e->no_48)
			continue;
		if (pt_ip_read(e->last_ip, forms[i], ip) == ip)
			return forms[i];
	}
	return PT_IP_64;
}

void pt_ip_form(struct pt_enc *e, enum pt_ip_packet kind, enum pt_ipbytes form, uint64_t ip)
{
	uint8_t b[9] = {(uint8_t)(kind | form << 5)};

	assert(form == PT_IP_NONE || pt_ip_read(e->last_ip, form, ip) == ip);
	put(e, b, le(b + 1, ip, form_bytes(form)));
	if (form == PT_IP_NONE)
		return;
	e->last_ip = ip;
	e->whole = false;
}

void pt_ip(struct pt_enc *e, enum pt_ip_packet kind, uint64_t ip)
{
	pt_ip_form(e, kind, pt_ip_shortest(e, ip), ip);
}

static void mode(struct pt_enc *e, uint8_t bits)
{
	uint8_t b[2] = {0x99, bits};

	put(e, b, b + 2);
}

void pt_mode_exec(struct pt_enc *e, bool lma_csl, bool csd, bool iflag)
{
	mode(e, (uint8_t)(lma_csl | csd << 1 | iflag << 2));
}

void pt_mode_tsx(struct pt_enc *e, bool intx, bool abort)
{
	mode(e, (uint8_t)(1 << 5 | intx | abort << 1));
}

void pt_pip(struct pt_enc *e, uint64_t cr3, bool nonroot)
{
	/* bits 51:5 of CR3, one bit up, bit 0 is NR */
	ext(e, 0x43, (cr3 & 0xfffffffffffe0ull) >> 4 | nonroot, 6);
}

void pt_vmcs(struct pt_enc *e, uint64_t base)
{
	ext(e, 0xc8, base >> 12, 5);
}

void pt_tsc(struct pt_enc *e, uint64_t tsc)
{
	uint8_t b[8] = {0x19};

	put(e, b, le(b + 1, tsc, 7));
}

void pt_tma(struct pt_enc *e, uint16_t ctc, uint16_t fast)
{
	/* CTC[15:0], a reserved byte, FastCounter[7:0], FastCounter[8] */
	ext(e, 0x73, ctc | (uint64_t)(fast & 0x1ff) << 24, 5);
}

void pt_mtc(struct pt_enc *e, uint8_t ctc)
{
	uint8_t b[2] = {0x59, ctc};

	put(e, b, b + 2);
}

void pt_cyc(struct pt_enc *e, uint64_t cycles)
{
	uint8_t b[10], *p = b;

	/* five bits in the first byte above Exp, then seven a byte above theirs, least significant first */
	*p = (uint8_t)(0x03 | (cycles & 31) << 3);
	cycles >>= 5;
	if (cycles)
		*p |= 4;
	p++;
	while (cycles) {
		assert(p < b + sizeof(b));
		*p = (uint8_t)((cycles & 127) << 1);
		cycles >>= 7;
		if (cycles)
			*p |= 1;
		p++;
	}
	put(e, b, p);
}

void pt_cbr(struct pt_enc *e, uint8_t ratio)
{
	ext(e, 0x03, ratio, 2);
}

void pt_ptw(struct pt_enc *e, uint64_t payload, unsigned size, bool fup)
{
	ext(e, (uint8_t)(0x12 | (size == 8) << 5 | fup << 7), payload, size);
}

void pt_exstop(struct pt_enc *e, bool fup)
{
	ext(e, (uint8_t)(0x62 | fup << 7), 0, 0);
}

void pt_mwait(struct pt_enc *e, uint32_t hints, uint32_t extensions)
{
	/* hints are 8 bits, three reserved bytes, extensions two bits of a further four bytes */
	ext(e, 0xc2, (hints & 0xff) | (uint64_t)(extensions & 3) << 32, 8);
}

void pt_pwre(struct pt_enc *e, bool hw, unsigned state, unsigned sub_state)
{
	/* first byte: bit 7 HW; second: resolved thread C-state in 7:4, sub C-state in 3:0 */
	ext(e, 0x22, (uint64_t)hw << 7 | (uint64_t)(state & 15) << 12 | (uint64_t)(sub_state & 15) << 8, 2);
}

void pt_pwrx(struct pt_enc *e, unsigned last, unsigned deepest, unsigned reason)
{
	/* last core C-state in 7:4 of the first byte, deepest in 3:0, wake reason in 3:0 of the second */
	ext(e, 0xa2, (last & 15) << 4 | (deepest & 15) | (reason & 15) << 8, 5);
}

void pt_mnt(struct pt_enc *e, uint64_t payload)
{
	uint8_t b[11] = {0x02, 0xc3, 0x88};

	put(e, b, le(b + 3, payload, 8));
}
