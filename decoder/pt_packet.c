/* SPDX-License-Identifier: MIT
 *
 * pt_packet.c - packets one after the other, and the last IP
 *
 * An address in a packet is compressed against the one before it (SDM volume 3, 33.4.2.2 "IP compression"), so
 * whoever wants to start at a packet must have read those in front of it, back to a PSB.
 */
#define _GNU_SOURCE
#include <string.h>
#include "pt.h"

int ptpkt_open(struct ptpkt *k, const struct pt_config *c)
{
	*k = (struct ptpkt){.begin = c->begin, .end = c->end};
	k->dec = pt_pkt_alloc_decoder(c);
	return k->dec ? pt_pkt_sync_set(k->dec, 0) : -pte_nomem;
}

void ptpkt_close(struct ptpkt *k)
{
	pt_pkt_free_decoder(k->dec);
	k->dec = NULL;
}

bool ptpkt_psb(const struct ptpkt *k, uint64_t pos, uint64_t *at)
{
	static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
	const uint8_t *p;

	if (pos >= (uint64_t)(k->end - k->begin))
		return false;
	p = memmem(k->begin + pos, k->end - k->begin - pos, psb, sizeof(psb));
	if (!p)
		return false;
	*at = p - k->begin;
	return true;
}

bool ptpkt_ip(const struct ptpkt *k, const struct pt_packet_ip *p, uint64_t *ip)
{
	switch (p->ipc) {
	case pt_ipc_suppressed:
		return false;
	case pt_ipc_update_16:
		*ip = (k->ip & ~0xffffull) | (p->ip & 0xffff);
		return k->have_ip;
	case pt_ipc_update_32:
		*ip = (k->ip & ~0xffffffffull) | (p->ip & 0xffffffff);
		return k->have_ip;
	case pt_ipc_update_48:
		*ip = (k->ip & ~0xffffffffffffull) | (p->ip & 0xffffffffffff);
		return k->have_ip;
	case pt_ipc_sext_48:
		*ip = (uint64_t)((int64_t)(p->ip << 16) >> 16);
		return true;
	case pt_ipc_full:
		*ip = p->ip;
		return true;
	}
	return false;
}

int ptpkt_next(struct ptpkt *k, struct pt_packet *p)
{
	bool ovf = k->ovf;
	int n = k->at == k->pos ? 0 : pt_pkt_sync_set(k->dec, k->pos);

	k->at = k->pos;
	if (n >= 0)
		n = pt_pkt_next(k->dec, p, sizeof(*p));
	if (n < 0)
		return n;
	k->at = k->pos += (unsigned int)n;
	k->resumes = ovf && p->type == ppt_fup;
	switch (p->type) {
	case ppt_psb:
		k->ip = 0;
		k->have_ip = true;
		k->psb = true;
		break;
	case ppt_psbend:
		k->psb = false;
		break;
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_fup:
		k->have_ip |= ptpkt_ip(k, &p->payload.ip, &k->ip);
		ovf = false;
		break;
	case ppt_mode:
		if (p->payload.mode.leaf == pt_mol_exec)
			k->mode = pt_get_exec_mode(&p->payload.mode.bits.exec);
		break;
	case ppt_tsc:
		k->tsc = p->payload.tsc.tsc;
		break;
	case ppt_ovf:
		k->novf++;
		k->psb = false;
		ovf = true;
		break;
	case ppt_ptw:
		k->nptw++;
		break;
	case ppt_tnt_8:
	case ppt_tnt_64:
		ovf = false;
		break;
	default:
		break;
	}
	k->ovf = ovf;
	return 0;
}
