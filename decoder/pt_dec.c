/* SPDX-License-Identifier: MIT
 *
 * pt_dec.c - a stream, block by block, with a new start as soon as possible after each loss
 *
 *     PSB … TNT TNT TIP x  ……………  TIP y  TNT … PSB …
 *                        │ lost          ▲      ▲
 *                        └───────────────┴──────┴─▶ libipt could go on here
 *                                        └─▶ here it goes on
 *
 * libipt starts at a PSB only, which comes every few KiB to MiB of stream. What it needs to start is what a PSB is
 * followed by: an address and the mode of execution. A TIP packet with an address says as much, given the packets
 * before it. So over the bytes up to the end of such a packet, which are decoded or lost by then, a PSB is
 * written, with that address, and libipt is made to start there:
 *
 *     before   … TNT  MTC  TIP y │ TNT …
 *     after    … PSB TSC MODE.Exec FUP y PSBEND │ TNT …
 *
 * What a start at a PSB has and such a one has not: after a PSB the processor does not compress a return whose call
 * was before it (SDM 33.4.2.2). Here a return can be met that only says "taken", to a call that was not seen. That
 * is found (the stack of calls is empty), and looked for the next start again.
 */
#include <stdlib.h>
#include <string.h>
#include "pt.h"

enum { GROUP = 16 + 8 + 2 + 9 + 2 };
enum { LOOPS = 128 };
_Static_assert(GROUP <= PTD_HEAD, "a group fits before the first packet");

int ptd_open(struct ptd *d, const struct pt_config *c, uint8_t *buf, size_t size, struct pt_image *image,
	     bool (*known)(void *ctx, uint64_t ip), void *ctx, uint64_t start_ip, struct ptrace_error *e)
{
	uint64_t at;

	*d = (struct ptd){.cfg = *c, .known = known, .ctx = ctx};
	d->cfg.size = sizeof(d->cfg);
	d->cfg.begin = buf;
	d->cfg.end = buf + PTD_HEAD + size;
	d->blk = pt_blk_alloc_decoder(&d->cfg);
	if (!d->blk || pt_blk_set_image(d->blk, image) < 0 || ptpkt_open(&d->pkt, &d->cfg) < 0) {
		ptd_close(d);
		return err_set(e, PTRACE_BAD, "libipt refuses to decode: its version is %u.%u",
			       pt_library_version().major, pt_library_version().minor);
	}
	/* what comes before the first PSB begins somewhere in a packet; without any, the stream is taken to begin with one */
	d->pkt.pos = PTD_HEAD;
	if (!start_ip || (ptpkt_psb(&d->pkt, PTD_HEAD, &at) && at == PTD_HEAD))
		ptpkt_psb(&d->pkt, PTD_HEAD, &d->pkt.pos);
	else
		d->start_ip = start_ip;
	return 0;
}

void ptd_close(struct ptd *d)
{
	if (d->blk)
		pt_blk_free_decoder(d->blk);
	if (d->pkt.dec)
		ptpkt_close(&d->pkt);
	d->blk = NULL;
}

/* Has libipt start as if at the end of the packets read so far execution were at ip. */
static int start_at(struct ptd *d, uint64_t ip)
{
	struct pt_packet_mode_exec mode = pt_set_exec_mode(d->pkt.mode ? d->pkt.mode : ptem_64bit);
	uint8_t *p = d->cfg.begin + d->pkt.pos - GROUP;

	d->start = d->pkt.pos - GROUP;
	d->artificial = true;
	for (int i = 0; i < 8; i++, p += 2)
		memcpy(p, "\x02\x82", 2);
	if (d->pkt.tsc) {
		*p = 0x19; /* TSC: 7 bytes */
		memcpy(p + 1, &d->pkt.tsc, 7);
	} else {
		memset(p, 0, 8); /* PAD */
	}
	p += 8;
	*p++ = 0x99; /* MODE.Exec */
	*p++ = (uint8_t)(mode.csl | mode.csd << 1);
	*p++ = 0xdd; /* FUP, 8 bytes of address */
	memcpy(p, &ip, 8);
	p += 8;
	memcpy(p, "\x02\x23", 2); /* PSBEND */
	return pt_blk_sync_set(d->blk, d->start);
}

static int start_psb(struct ptd *d, uint64_t at)
{
	d->start = at;
	d->by = ppt_psb;
	d->artificial = false;
	return pt_blk_sync_set(d->blk, at);
}

/* endless() found it to be so from there: no place to start at. A stream may have thousands of such addresses, one after
 * the other. */
static bool goes_round(const struct ptd *d, uint64_t ip)
{
	return d->round[ip % NELEM(d->round)] == ip;
}

/* On to the next place that libipt can start at. 1 when it did, 0 at the end, else what was wrong there. */
static int resync(struct ptd *d)
{
	struct ptpkt *k = &d->pkt;
	uint64_t at, ip;

	if (d->start_ip) {
		ip = k->ip = d->start_ip;
		k->have_ip = true;
		d->start_ip = 0;
		d->by = ppt_tip;
		d->status = start_at(d, ip);
		return d->status < 0 ? d->status : 1;
	}
	for (;;) {
		struct pt_packet p;
		int rc;

		at = k->pos;
		rc = ptpkt_next(k, &p);
		if (rc == -pte_eos) {
			return 0;
		} else if (rc < 0) {
			/* no packet: where the next one begins is not known */
			if (!ptpkt_psb(k, k->pos + 1, &k->pos))
				return 0;
		} else if (p.type == ppt_psb) {
			d->status = start_psb(d, at);
			return d->status == -pte_eos ? 0 : d->status < 0 ? d->status : 1;
		} else if (!k->psb && (p.type == ppt_tip || p.type == ppt_tip_pge || k->resumes) &&
			   ptpkt_ip(k, &p.payload.ip, &ip) && d->known(d->ctx, ip) && !goes_round(d, ip)) {
			d->by = p.type;
			d->status = start_at(d, ip);
			if (d->status >= 0)
				return 1;
		}
	}
}

/* Packets up to where libipt was are done with. */
static void skip_decoded(struct ptd *d)
{
	struct ptpkt *k = &d->pkt;
	uint64_t off;

	if (pt_blk_get_offset(d->blk, &off) < 0)
		return;
	while (k->pos < off) {
		struct pt_packet p;

		if (ptpkt_next(k, &p) < 0 && !ptpkt_psb(k, k->pos + 1, &k->pos))
			k->pos = off;
	}
}

/* Blocks that are walked through without using up anything of the stream, again and again: the stream does not fit
 * the image (or ended in a loop), and libipt would go round for ever. Found as a cycle is (Brent): blocks that
 * begin where a remembered one did. A packet can hold 47 branches, so some may. A block as long as they get is
 * most likely a loop; certainly if it ends near its beginning. */
static bool endless(struct ptd *d, const struct pt_block *b)
{
	struct ptd_loop *l = &d->loop;
	uint64_t off = 0;

	pt_blk_get_offset(d->blk, &off);
	if (off != l->offset) {
		*l = (struct ptd_loop){.offset = off, .ip = b->ip, .limit = 1};
	} else if (b->ip == l->ip) {
		l->hits++;
	} else if (++l->steps >= l->limit) {
		l->ip = b->ip;
		l->steps = 0;
		if (l->limit < 1u << 20)
			l->limit *= 2;
	}
	if (b->ninsn >= 0xff00)
		l->hits += b->end_ip - b->ip + 0xff00 < 2 * 0xff00 ? LOOPS : 16;
	/* nothing more to come: what is walked through once more did not happen, for all that is known */
	if (l->hits < (d->status & pts_eos ? 1 : LOOPS))
		return false;
	d->round[b->ip % NELEM(d->round)] = b->ip;
	return true;
}

static void lost(struct ptd *d, struct ptd_item *it, int err)
{
	uint64_t sync;

	if (err == -pte_retstack_empty && d->artificial && pt_blk_get_sync_offset(d->blk, &sync) >= 0 &&
	    sync == d->start)
		err = 0; /* a consequence of the artificial start */
	if (err == -pte_nomap && !d->moved && d->err == -pte_nomap)
		err = 0; /* still where it was */
	else
		d->err = err;
	skip_decoded(d);
	d->synced = false;
	it->kind = PTD_LOST;
	it->lost.err = err;
	it->lost.offset = d->pkt.pos - PTD_HEAD;
	it->lost.ip = d->ip;
}

static void started(struct ptd *d)
{
	d->synced = true;
	d->starts++;
	d->moved = false;
	d->loop = (struct ptd_loop){.limit = 1};
}

/* one step of libipt; false if there is nothing to hand out yet */
static bool step(struct ptd *d, struct ptd_item *it)
{
	if (d->status & pts_event_pending) {
		d->status = pt_blk_event(d->blk, &it->event, sizeof(it->event));
		d->loop = (struct ptd_loop){.limit = 1};
		it->kind = PTD_EVENT;
		return d->status >= 0;
	}
	d->status = pt_blk_next(d->blk, &it->block, sizeof(it->block));
	d->ip = it->block.ip;
	if (!it->block.ninsn)
		return false;
	it->kind = PTD_BLOCK;
	d->moved = true;
	if (d->status >= 0 && endless(d, &it->block)) {
		if (d->status & pts_eos) {
			d->status = -pte_eos;
			return false;
		}
		d->status = -pte_bad_query;
	}
	return true;
}

void ptd_next(struct ptd *d, struct ptd_item *it)
{
	int rc;

	if (!d->synced) {
		rc = resync(d);
		if (rc == 0) {
			it->kind = PTD_END;
			return;
		}
		if (rc < 0) {
			lost(d, it, rc);
			return;
		}
		started(d);
	}
	/* it takes a call or two to get to an event that is not at an instruction */
	for (int i = 0; d->status >= 0 && i < 100; i++)
		if (step(d, it))
			return;
	if (d->status == -pte_eos) {
		skip_decoded(d);
		d->synced = false;
		it->kind = PTD_END;
		return;
	}
	lost(d, it, d->status < 0 ? d->status : -pte_internal);
}
