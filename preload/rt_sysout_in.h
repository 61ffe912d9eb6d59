/* SPDX-License-Identifier: MIT
 *
 * rt_sysout_in.h - inside of rt_sysout*.c: how a call's entry in the table says what it writes
 */
#ifndef RT_SYSOUT_IN_H
#define RT_SYSOUT_IN_H

#include <stdbool.h>
#include "rt_sysout.h"

/* what there is of a call */
enum {
	SO_UNKNOWN, /* no such call */
	SO_NONE,
	SO_LIST, /* out[] of its entry */
	SO_FN, /* so_fn(): depends on more than an entry can say */
	SO_SOCK, /* so_sock() */
	SO_CTL, /* so_ctl(): depends on a command */
	SO_IOCTL,
	SO_MAP,
	SO_STOP,
	SO_SPECIAL,
};

/* flags */
enum {
	SO_FAIL = 1, /* may write although it fails (an error in the middle, what is left of a time-out) */
	SO_CLIP = 2, /* a range may be longer than what is written, and than what is there */
};

/* length of a range, in bytes */
enum {
	SO_FIX = 1, /* size */
	SO_RET, /* what the call returned, times size */
	SO_RETL, /* the same, but at most arg[j] of them */
	SO_RETI, /* the same, but arg[j] has 32 bits */
	SO_CNT, /* arg[j], 32 bits, times size */
};

struct so_out {
	uint8_t arg; /* the pointer's */
	uint8_t how; /* SO_FIX, ...: low half; j: high half */
	uint16_t size;
};

struct so_desc {
	uint8_t class, flags;
	struct so_out out[3]; /* how 0 ends it */
};

extern const struct so_desc so_table[];
extern const uint32_t so_ncalls;

/* a call that is being described */
struct so {
	uint32_t nr;
	const uint64_t *arg;
	long ret; /* negative where the entry has SO_FAIL, and with EFAULT */
	const struct sys_before *before;
	struct out_range *out;
	int max, n;
	bool fault; /* EFAULT: what it writes may be written in part */
	bool clip; /* ranges are cut to what can be read */
	bool map; /* it is OUT_MAP */
	bool stop; /* not known, too many */
};

static inline uint64_t so_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A range that was written. NULL is no range: wherever the kernel takes a NULL, it writes nothing. */
void so_add(struct so *s, uint64_t addr, uint64_t len);
/* one of which it is not sure that all of it is there */
void so_loose(struct so *s, uint64_t addr, uint64_t len);
/* A buffer of room bytes of which done are a call's result. When the rest of it is not all there (its last byte; one
 * with a hole in it is nobody's), the kernel may have begun to write the next piece. */
void so_rest(struct so *s, uint64_t addr, uint64_t done, uint64_t room);
/* 4 or 8 bytes at addr; 0 if they cannot be read */
uint32_t so_u32(uint64_t addr);
uint64_t so_u64(uint64_t addr);

void so_fn(struct so *s); /* rt_sysout_fn.c */
void so_sock(struct so *s); /* rt_sysout_sock.c */
void so_sock_before(uint32_t nr, const uint64_t arg[6], struct sys_before *b);
void so_ctl(struct so *s); /* rt_sysout_ctl.c */
void so_ioctl(struct so *s); /* rt_sysout_ioctl.c */
void so_ioctl_before(const uint64_t arg[6], struct sys_before *b);

#endif
