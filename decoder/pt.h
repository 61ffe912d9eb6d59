/* SPDX-License-Identifier: MIT
 *
 * pt.h - decoding Intel PT: memory image, stream, instructions
 *
 *   ptimg   what was where in memory ─▶ libipt's image, and reads of our own
 *   ptd     a stream and an image ─▶ blocks, events, losses, in order
 *   ptinsn  the instructions of a block
 *
 * libipt(3) decodes (`pt_*` are its names). What is added here is going on after a loss: libipt alone starts
 * again at the next PSB, and a stream may hold one only every few million instructions.
 */
#ifndef PT_H
#define PT_H

#include <intel-pt.h>
#include "dec.h"
#include "run_pt.h"

/* ---- pt_image.c ------------------------------------------------------------------------------- */

struct ptimg;
struct ptimg *ptimg_new(void);
void ptimg_free(struct ptimg *g);
/* Memory at [addr, addr + size) held these bytes, which stay valid as long as g does. What was given before for the
 * same addresses is replaced. If path is given, they are the file's from offset on. */
int ptimg_add(struct ptimg *g, uint64_t addr, const uint8_t *bytes, uint64_t size, const char *path,
	      uint64_t offset, struct ptrace_error *e);
/* libipt's image of all that was added up to now, owned by g; valid until the next call */
struct pt_image *ptimg_build(struct ptimg *g, struct ptrace_error *e);
/* bytes at addr, up to size of them, 0 if there are none */
size_t ptimg_read(const struct ptimg *g, uint64_t addr, uint8_t *buf, size_t size);

/* ---- pt_packet.c ------------------------------------------------------------------------------ */

/* Reads packets in order and keeps what an address in one rests on. */
struct ptpkt {
	struct pt_packet_decoder *dec;
	const uint8_t *begin, *end;
	uint64_t pos; /* offset of the next packet */
	uint64_t at; /* where libipt is */
	uint64_t ip; /* last IP, SDM 33.4.2.2 */
	bool have_ip;
	enum pt_exec_mode mode; /* of MODE.Exec, unknown before the first one */
	bool psb; /* between PSB and PSBEND: what is said there is a state, nothing happened */
	bool ovf; /* behind OVF */
	bool resumes; /* the last packet is the FUP behind an OVF: here it goes on */
	uint64_t tsc; /* of the last TSC packet, 0 before the first one */
	uint64_t novf, nptw; /* packets of these types so far */
};
int ptpkt_open(struct ptpkt *k, const struct pt_config *c); /* c stays valid */
void ptpkt_close(struct ptpkt *k);
/* next packet: 0, or a negative pt_error_code; then nothing is consumed */
int ptpkt_next(struct ptpkt *k, struct pt_packet *p);
/* offset of the first PSB at or after pos; false if there is none */
bool ptpkt_psb(const struct ptpkt *k, uint64_t pos, uint64_t *at);
/* the address in an IP packet; false if it has none */
bool ptpkt_ip(const struct ptpkt *k, const struct pt_packet_ip *p, uint64_t *ip);

/* ---- pt_dec.c --------------------------------------------------------------------------------- */

/* Bytes that a stream's buffer has in front of the stream, zero. They, and bytes of the stream that are decoded
 * already, are written to: that is how libipt is made to start where there is no PSB. */
#define PTD_HEAD 64

enum ptd_kind {
	PTD_BLOCK,
	PTD_EVENT,
	PTD_LOST, /* something is missing between what came before and what comes next */
	PTD_END,
};
struct ptd_item {
	enum ptd_kind kind;
	union {
		struct pt_block block;
		struct pt_event event;
		struct {
			int err; /* negative pt_error_code; 0: only a consequence of an earlier loss */
			uint64_t offset; /* in the stream */
			uint64_t ip; /* last known place, 0 if none */
		} lost;
	};
};

struct ptd {
	struct pt_config cfg;
	struct pt_block_decoder *blk;
	struct ptpkt pkt;
	bool (*known)(void *ctx, uint64_t ip); /* the image holds it */
	void *ctx;
	int status; /* what libipt said last */
	bool synced;
	uint64_t starts;
	uint64_t ip; /* where the last block began, or none could be read */
	bool moved; /* something was decoded since the last start */
	int err; /* of the last loss */
	bool artificial; /* the last start was not at a PSB: calls made before it are not known */
	uint64_t start; /* offset of that start */
	enum pt_packet_type
		by; /* ppt_psb, or the packet whose address it began at: ppt_tip, ppt_tip_pge, ppt_fup */
	uint64_t start_ip;
	struct ptd_loop {
		uint64_t offset, ip;
		uint32_t steps, limit, hits;
	} loop; /* pt_dec.c: endless() */
	uint64_t round[64]; /* starts from which it went round for ever, by hash */
};
/* buf: PTD_HEAD zero bytes, then size bytes of stream. c: cpu, errata, clock ratios; the rest is set here.
 * start_ip: where a stream that begins without PSB begins, 0 if that is not known. */
int ptd_open(struct ptd *d, const struct pt_config *c, uint8_t *buf, size_t size, struct pt_image *image,
	     bool (*known)(void *ctx, uint64_t ip), void *ctx, uint64_t start_ip, struct ptrace_error *e);
void ptd_close(struct ptd *d);
void ptd_next(struct ptd *d, struct ptd_item *it);

/* ---- pt_insn.c -------------------------------------------------------------------------------- */

struct ptinsn;
struct ptinsn *ptinsn_new(const struct ptimg *img);
void ptinsn_free(struct ptinsn *c);
/* address of the instruction that runs after the one at ip, if that needs no packet; false if it cannot be read */
bool ptinsn_next(struct ptinsn *c, uint64_t ip, enum pt_exec_mode mode, uint64_t *next);

/* ---- pt_code.c: the code of a run's modules ----------------------------------------------------- */

/* A module as loaded: the sections of libipt that it is, and what is asked about in its copy. Made once a run. */
struct ptmod {
	struct run_module m;
	struct {
		int isid;
		uint64_t lo, hi;
	} sect[8];
	uint32_t nsect;
	uint8_t *asked; /* a bit for each byte of the copy, NULL if there is no copy */
	uint8_t *valued; /* the same: ptwrites whose values are asked for; NULL if there are none */
	uint64_t copy_size;
};
struct ptcode;
struct ptcode *ptcode_of(struct ptrace_run *r); /* made on first use, NULL if it cannot be */
void ptcode_free(struct ptcode *c);
const struct ptmod *ptcode_module(struct ptcode *c, const struct modrec *rec);
/* the module's code into an image; what was at its addresses before is gone */
int ptcode_map(struct ptcode *c, struct pt_image *image, const struct ptmod *m);

/* ---- pt_stream.c: pt-TID.bin -------------------------------------------------------------------- */

/* A piece of a thread's stream in which nothing is missing that the stream does not tell itself. */
struct ptseg {
	uint8_t *buf; /* PTD_HEAD bytes, then the packets */
	size_t size; /* of the packets */
};
struct ptstream {
	struct run_pt_info info;
	struct ptseg *seg;
	uint32_t nseg;
	int failed; /* errno: tracing could not be begun for this thread */
	char why[160]; /* how it ends, where it does not end well; "" if it does */
};
/* 0, or -1 with e: there is nothing to decode */
int ptstream_open(struct ptstream *s, const char *path, struct ptrace_error *e);
void ptstream_drop(struct ptstream *s, uint32_t seg); /* no longer needed */
void ptstream_close(struct ptstream *s);
void ptstream_config(const struct ptstream *s, struct pt_config *c);

/* ---- pt_raw.c: --pt-raw ----------------------------------------------------------------------- */

struct ptraw {
	const char *stream; /* file */
	const char *cpu; /* F/M/S, NULL if not given */
	const char **image; /* FILE@ADDR[:OFFSET[:SIZE]] each */
	uint32_t nimage;
	const char *start_ip;
	bool ips; /* one address a line; else only the summary */
};
struct obuf;
/* addresses to out, the summary to standard output or, with addresses, to standard error; exit status */
int ptraw_run(const struct ptraw *r, struct obuf *out, struct ptrace_error *e);

#endif
