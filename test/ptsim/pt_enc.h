/* SPDX-License-Identifier: MIT
 *
 * pt_enc.h - Intel PT packets as bytes
 *
 * Written from the packet definition tables of the Intel SDM, volume 3, chapter "Intel Processor Trace", section
 * "Packet Definitions"; test/ptsim/unit_ptenc.c holds each against bytes worked out by hand from those
 * tables, and against libipt's packet decoder. Nothing here knows when a packet is due: that is pt_cpu.c.
 */
#ifndef PT_ENC_H
#define PT_ENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The field IPBytes of TIP, TIP.PGE, TIP.PGD, FUP (SDM, table "FUP/TIP IP Reconstruction") */
enum pt_ipbytes {
	PT_IP_NONE = 0, /* suppressed: LastIP stays */
	PT_IP_16 = 1, /* bits 15:0, the rest from LastIP */
	PT_IP_32 = 2, /* bits 31:0 */
	PT_IP_SEXT48 = 3, /* bits 47:0, sign-extended */
	PT_IP_48 = 4, /* bits 47:0, 63:48 from LastIP */
	PT_IP_64 = 6, /* all */
};

enum pt_ip_packet { PT_TIP = 0x0d, PT_PGE = 0x11, PT_PGD = 0x01, PT_FUP = 0x1d };

#define PT_TNT_SHORT 6 /* bits a short TNT holds */
#define PT_TNT_LONG 47

/* Where bytes go, and the one thing that a packet's bytes depend on. */
struct pt_enc {
	void (*put)(void *arg, const uint8_t *bytes, size_t n); /* one packet a call */
	void *arg;
	uint64_t last_ip; /* what the decoder knows of the last address */
	bool whole; /* the next address is to be whole: what decoders keep of LastIP across an OVF differs */
	bool no_48; /* never use PT_IP_48, as processors that have only the first four forms */
};

void pt_pad(struct pt_enc *e, unsigned n);
void pt_psb(struct pt_enc *e); /* and LastIP is 0 */
void pt_psbend(struct pt_enc *e);
void pt_ovf(struct pt_enc *e); /* and the next address is whole */
void pt_tracestop(struct pt_enc *e);
/* n outcomes, 1 to PT_TNT_LONG: bit n - 1 is the oldest, bit 0 the youngest. Long when it does not fit a short one. */
void pt_tnt(struct pt_enc *e, uint64_t bits, unsigned n);
/* ip in the shortest form */
void pt_ip(struct pt_enc *e, enum pt_ip_packet kind, uint64_t ip);
/* in a given form, whether it is the shortest or not; it must be able to say it */
void pt_ip_form(struct pt_enc *e, enum pt_ip_packet kind, enum pt_ipbytes form, uint64_t ip);
enum pt_ipbytes pt_ip_shortest(const struct pt_enc *e, uint64_t ip);
/* the address that a decoder with this LastIP takes out of such a packet */
uint64_t pt_ip_read(uint64_t last_ip, enum pt_ipbytes form, uint64_t payload);
void pt_mode_exec(struct pt_enc *e, bool lma_csl, bool csd, bool iflag); /* 64-bit code: lma_csl */
void pt_mode_tsx(struct pt_enc *e, bool intx, bool abort);
void pt_pip(struct pt_enc *e, uint64_t cr3, bool nonroot); /* cr3: bits 51:5 are used */
void pt_vmcs(struct pt_enc *e, uint64_t base); /* bits 51:12 are used */
void pt_tsc(struct pt_enc *e, uint64_t tsc); /* bits 55:0 */
void pt_tma(struct pt_enc *e, uint16_t ctc, uint16_t fast); /* fast: 9 bits */
void pt_mtc(struct pt_enc *e, uint8_t ctc);
void pt_cyc(struct pt_enc *e, uint64_t cycles); /* 61 bits at most */
void pt_cbr(struct pt_enc *e, uint8_t ratio);
void pt_ptw(struct pt_enc *e, uint64_t payload, unsigned size,
	    bool fup); /* size 4 or 8; fup: a FUP follows */
void pt_exstop(struct pt_enc *e, bool fup);
void pt_mwait(struct pt_enc *e, uint32_t hints, uint32_t ext);
void pt_pwre(struct pt_enc *e, bool hw, unsigned state, unsigned sub_state);
void pt_pwrx(struct pt_enc *e, unsigned last, unsigned deepest, unsigned reason);
void pt_mnt(struct pt_enc *e, uint64_t payload);

#endif
