/* SPDX-License-Identifier: MIT
 *
 * rt_sysout_sock.c - what a system call wrote: arrays of buffers, messages, socket addresses
 *
 * The descriptions of the buffers (struct iovec, msghdr, mmsghdr; net/socket.c, lib/iov_iter.c) are read after the
 * call. so_sock_before() makes sure that the call could not overwrite them: no buffer reaches into them.
 */
#include "rt_sysout_in.h"
#include "rt_sysout_nr.h"
#include <linux/errno.h>

enum { NIOV = 16, MAX_IOV = 1024 };

struct vec {
	uint64_t base, len;
};

struct hdr { /* struct user_msghdr */
	uint64_t name;
	uint32_t namelen, pad;
	uint64_t iov, niov, control, controllen;
	uint32_t flags, pad2;
};
_Static_assert(sizeof(struct hdr) == 56, "struct user_msghdr");

#define MMSG (sizeof(struct hdr) + 8) /* struct mmsghdr: a msghdr and a length */

/* Reads a description. One that the kernel has read for a call that succeeded (sure) is there. */
static bool load(void *to, uint64_t from, size_t n, bool sure)
{
#ifndef RT_SYSOUT_REMOTE
	if (sure) {
		__builtin_memcpy(to, (const void *)from, n);
		return true;
	}
#endif
	(void)sure;
	return !rt_copy_out(to, from, n);
}

static uint64_t get(struct vec *v, uint64_t iov, uint64_t n, bool sure)
{
	n = so_min(n, NIOV);
	return load(v, iov, n * sizeof(*v), sure) ? n : 0;
}

/* the first len bytes of what an array of struct iovec describes */
static void iovs(struct so *s, uint64_t iov, uint64_t n, uint64_t len, bool sure)
{
	struct vec v[NIOV];

	for (n = so_min(n, MAX_IOV); n && !s->stop;) {
		uint64_t got = get(v, iov, n, sure);

		if (!got) /* nor could the kernel */
			return;
		for (uint64_t i = 0; i < got; i++) {
			uint64_t done = so_min(v[i].len, len);

			so_add(s, v[i].base, done);
			so_rest(s, v[i].base, done, v[i].len);
			len -= done;
		}
		iov += got * sizeof(*v);
		n -= got;
	}
}

static bool meet(uint64_t addr, uint64_t len, uint64_t lo, uint64_t hi)
{
	return len && addr < hi && (len > ~addr || addr + len > lo);
}

/* one of the n iovecs points into [lo, hi) or at their own array */
static bool iov_odd(uint64_t iov, uint64_t n, uint64_t lo, uint64_t hi)
{
	uint64_t at = iov, end;
	struct vec v[NIOV];

	n = so_min(n, MAX_IOV);
	end = iov + n * sizeof(*v);
	while (n) {
		uint64_t got = get(v, at, n, false);

		if (!got)
			return false; /* the kernel cannot read it either */
		for (uint64_t i = 0; i < got; i++)
			if (meet(v[i].base, v[i].len, iov, end) || meet(v[i].base, v[i].len, lo, hi))
				return true;
		at += got * sizeof(*v);
		n -= got;
	}
	return false;
}

/* the message at addr may be overwritten by its own data, its buffers' array by name and control data */
static bool msg_odd(uint64_t addr, uint64_t lo, uint64_t hi)
{
	struct hdr h;
	uint64_t end;

	if (rt_copy_out(&h, addr, sizeof(h)))
		return false;
	end = h.iov + so_min(h.niov, MAX_IOV) * sizeof(struct vec);
	return iov_odd(h.iov, h.niov, lo, hi) || (h.name && meet(h.name, h.namelen, h.iov, end)) ||
	       (h.name && meet(h.name, h.namelen, lo, hi)) ||
	       (h.control && meet(h.control, h.controllen, h.iov, end)) ||
	       (h.control && meet(h.control, h.controllen, lo, hi)) || meet(lo, hi - lo, h.iov, end);
}

void so_sock_before(uint32_t nr, const uint64_t a[6], struct sys_before *b)
{
	uint64_t n = so_min((uint32_t)a[2], MAX_IOV);

	switch (nr) {
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_vmsplice:
	case __NR_process_vm_readv:
		b->odd = iov_odd(a[1], a[2], 0, 0);
		break;
	case __NR_recvmsg:
		b->odd = msg_odd(a[1], a[1], a[1] + sizeof(struct hdr));
		break;
	case __NR_recvmmsg:
		for (uint64_t i = 0; i < n && !b->odd; i++)
			b->odd = msg_odd(a[1] + i * MMSG, a[1], a[1] + n * MMSG);
		break;
	}
}

/* a received message: its description, name, control data; and len bytes of data */
static void msg(struct so *s, uint64_t addr, uint64_t len)
{
	struct hdr h;

	if (!load(&h, addr, sizeof(h), s->ret >= 0))
		return;
	so_loose(s, h.name, h.namelen);
	so_loose(s, h.control, h.controllen);
	iovs(s, h.iov, h.niov, len, s->ret >= 0);
}

/* One that failed, which may have got control data: a Unix socket's credentials when there was no data. If it was not
 * the first of several, that it failed is not seen in the result. */
static void no_msg(struct so *s, uint64_t addr)
{
	struct hdr h;

	if (rt_copy_out(&h, addr, sizeof(h)))
		return;
	so_loose(s, h.control, h.controllen);
	so_loose(s, h.name, h.namelen);
	if (s->ret >= 0)
		iovs(s, h.iov, h.niov, 0, false);
}

/* an address of a socket: its length, which the kernel stores, is that before it was cut to the buffer */
static void name(struct so *s, uint64_t addr, uint64_t len)
{
	uint32_t stored;

	if (!addr)
		return;
	if (!load(&stored, len, sizeof(stored), s->ret >= 0))
		return;
	so_loose(s, addr, s->fault ? 128 : stored); /* struct sockaddr_storage */
	so_add(s, len, 4);
}

/* Options that are more than bytes: memory that is given to the kernel for later, pointers to results. */
static bool opaque_option(const struct so *s)
{
	uint32_t level = (uint32_t)s->arg[1], opt = (uint32_t)s->arg[2];

	if (s->nr == __NR_getsockopt)
		return s->ret >= 0 && level == 6 /* SOL_TCP */ && opt == 35 /* TCP_ZEROCOPY_RECEIVE */;
	return (level == 283 /* SOL_XDP */ && opt == 4 /* XDP_UMEM_REG */) ||
	       /* IPT_SO_SET_REPLACE, EBT_SO_SET_ENTRIES: a pointer to counters */
	       ((level == 0 /* SOL_IP */ || level == 41 /* SOL_IPV6 */) && (opt == 64 || opt == 128));
}

static void option(struct so *s)
{
	uint64_t len = so_u32(s->arg[4]);

	if (s->arg[1] == 1 /* SOL_SOCKET */ && s->arg[2] == 26 /* SO_GET_FILTER */)
		len *= 8; /* in instructions */
	if (s->ret >= 0 || s->fault)
		so_loose(s, s->arg[3], len);
	so_add(s, s->arg[4], 4);
}

void so_sock(struct so *s)
{
	const uint64_t *a = s->arg;
	uint64_t ret = s->fault ? ~0ull : s->ret < 0 ? 0 : s->ret;

	switch (s->nr) {
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_vmsplice:
	case __NR_process_vm_readv:
		iovs(s, a[1], a[2], ret, s->ret >= 0);
		break;
	case __NR_process_vm_writev: /* to itself, perhaps */
		s->clip = true;
		iovs(s, a[3], a[4], ret, s->ret >= 0);
		break;
	case __NR_recvfrom:
		if (s->ret < 0 && !s->fault) {
			if (s->ret == -EINVAL) /* of the address's length: after the data */
				so_loose(s, a[1], a[2]);
			break;
		}
		so_add(s, a[1], so_min(ret, a[2])); /* MSG_TRUNC: more than there is room for */
		so_rest(s, a[1], so_min(ret, a[2]), a[2]);
		name(s, a[4], a[5]);
		break;
	case __NR_recvmsg:
		if (s->ret < 0 && !s->fault) {
			no_msg(s, a[1]);
			break;
		}
		msg(s, a[1], ret);
		so_add(s, a[1], sizeof(struct hdr));
		break;
	case __NR_recvmmsg:
		if (s->fault) { /* in the first: else it returns how many there were */
			msg(s, a[1], ret);
			ret = 1;
		}
		for (uint64_t i = 0; i < ret && !s->fault && !s->stop; i++)
			msg(s, a[1] + i * MMSG, so_u32(a[1] + i * MMSG + sizeof(struct hdr)));
		if (ret < (uint32_t)a[2])
			no_msg(s, a[1] + ret * MMSG);
		so_add(s, a[1], ret * MMSG);
		so_add(s, a[4], 16); /* what is left of the time */
		break;
	case __NR_sendmmsg:
		so_add(s, a[1], so_min(ret, (uint32_t)a[2]) * MMSG);
		break;
	case __NR_accept:
	case __NR_accept4:
	case __NR_getsockname:
	case __NR_getpeername:
		name(s, a[1], a[2]);
		break;
	case __NR_getsockopt:
		s->stop |= opaque_option(s);
		option(s);
		break;
	case __NR_setsockopt:
		s->stop |= opaque_option(s);
		break;
	}
}
