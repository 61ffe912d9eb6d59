/* SPDX-License-Identifier: MIT
 *
 * rt_sysout_ioctl.c - what an ioctl wrote, by its request
 *
 * Requests made by _IOR and _IOWR have the size of what is written in them (include/uapi/asm-generic/ioctl.h), if
 * the driver keeps to that and its structure holds no pointers. Which ones do is said here by the request's type
 * (its letter); older requests are listed. Whatever else succeeds is not known.
 */
#include "rt_sysout_in.h"
#include <linux/errno.h>

#define TYPE(req) ((req) >> 8 & 0xff)
#define NR(req) ((req)&0xff)
#define SIZE(req) ((req) >> 16 & 0x3fff)
#define DIR(req) ((req) >> 30) /* 1: to the kernel, 2: from it */

/* bytes that a request of the old kind writes; 0: none */
static const struct {
	uint16_t req, size;
} known[] = {
	/* include/uapi/asm-generic/ioctls.h; drivers/tty */
	{0x5401, 36} /* TCGETS */,
	{0x5402, 0} /* TCSETS */,
	{0x5403, 0} /* TCSETSW */,
	{0x5404, 0} /* TCSETSF */,
	{0x5405, 18} /* TCGETA */,
	{0x5406, 0} /* TCSETA */,
	{0x5407, 0} /* TCSETAW */,
	{0x5408, 0} /* TCSETAF */,
	{0x5409, 0} /* TCSBRK */,
	{0x540a, 0} /* TCXONC */,
	{0x540b, 0} /* TCFLSH */,
	{0x540c, 0} /* TIOCEXCL */,
	{0x540d, 0} /* TIOCNXCL */,
	{0x540e, 0} /* TIOCSCTTY */,
	{0x540f, 4} /* TIOCGPGRP */,
	{0x5410, 0} /* TIOCSPGRP */,
	{0x5411, 4} /* TIOCOUTQ, SIOCOUTQ */,
	{0x5412, 0} /* TIOCSTI */,
	{0x5413, 8} /* TIOCGWINSZ */,
	{0x5414, 0} /* TIOCSWINSZ */,
	{0x5415, 4} /* TIOCMGET */,
	{0x5416, 0} /* TIOCMBIS */,
	{0x5417, 0} /* TIOCMBIC */,
	{0x5418, 0} /* TIOCMSET */,
	{0x5419, 4} /* TIOCGSOFTCAR */,
	{0x541a, 0} /* TIOCSSOFTCAR */,
	{0x541b, 4} /* FIONREAD, SIOCINQ */,
	{0x541d, 0} /* TIOCCONS */,
	{0x541e, 72} /* TIOCGSERIAL */,
	{0x541f, 0} /* TIOCSSERIAL */,
	{0x5420, 0} /* TIOCPKT */,
	{0x5421, 0} /* FIONBIO */,
	{0x5422, 0} /* TIOCNOTTY */,
	{0x5423, 0} /* TIOCSETD */,
	{0x5424, 4} /* TIOCGETD */,
	{0x5425, 0} /* TCSBRKP */,
	{0x5427, 0} /* TIOCSBRK */,
	{0x5428, 0} /* TIOCCBRK */,
	{0x5429, 4} /* TIOCGSID */,
	{0x542e, 32} /* TIOCGRS485 */,
	{0x542f, 32} /* TIOCSRS485: stores what was taken of it */,
	{0x5432, 16} /* TCGETX */,
	{0x5433, 0} /* TCSETX */,
	{0x5434, 0} /* TCSETXF */,
	{0x5435, 0} /* TCSETXW */,
	{0x5437, 0} /* TIOCVHANGUP */,
	{0x5441, 0} /* TIOCGPTPEER */,
	{0x5450, 0} /* FIONCLEX */,
	{0x5451, 0} /* FIOCLEX */,
	{0x5452, 0} /* FIOASYNC */,
	{0x5456, 36} /* TIOCGLCKTRMIOS */,
	{0x5457, 0} /* TIOCSLCKTRMIOS */,
	{0x5459, 4} /* TIOCSERGETLSR */,
	{0x545c, 0} /* TIOCMIWAIT */,
	{0x545d, 80} /* TIOCGICOUNT */,
	{0x5460, 8} /* FIOQSIZE */,
	/* include/uapi/linux/fs.h, hdreg.h: block devices */
	{0x0001, 4} /* FIBMAP */,
	{0x0002, 4} /* FIGETBSZ */,
	{0x125d, 0} /* BLKROSET */,
	{0x125e, 4} /* BLKROGET */,
	{0x125f, 0} /* BLKRRPART */,
	{0x1260, 8} /* BLKGETSIZE */,
	{0x1261, 0} /* BLKFLSBUF */,
	{0x1262, 0} /* BLKRASET */,
	{0x1263, 8} /* BLKRAGET */,
	{0x1264, 0} /* BLKFRASET */,
	{0x1265, 8} /* BLKFRAGET */,
	{0x1267, 2} /* BLKSECTGET */,
	{0x1268, 4} /* BLKSSZGET */,
	{0x1277, 0} /* BLKDISCARD */,
	{0x1278, 4} /* BLKIOMIN */,
	{0x1279, 4} /* BLKIOOPT */,
	{0x127a, 4} /* BLKALIGNOFF */,
	{0x127b, 4} /* BLKPBSZGET */,
	{0x127c, 4} /* BLKDISCARDZEROES */,
	{0x127d, 0} /* BLKSECDISCARD */,
	{0x127e, 2} /* BLKROTATIONAL */,
	{0x127f, 0} /* BLKZEROOUT */,
	{0x0301, 16} /* HDIO_GETGEO */,
	{0x030d, 512} /* HDIO_GET_IDENTITY */,
	/* include/uapi/linux/loop.h */
	{0x4c00, 0} /* LOOP_SET_FD */,
	{0x4c01, 0} /* LOOP_CLR_FD */,
	{0x4c02, 0} /* LOOP_SET_STATUS */,
	{0x4c03, 168} /* LOOP_GET_STATUS */,
	{0x4c04, 0} /* LOOP_SET_STATUS64 */,
	{0x4c05, 232} /* LOOP_GET_STATUS64 */,
	{0x4c06, 0} /* LOOP_CHANGE_FD */,
	{0x4c07, 0} /* LOOP_SET_CAPACITY */,
	{0x4c08, 0} /* LOOP_SET_DIRECT_IO */,
	{0x4c09, 0} /* LOOP_SET_BLOCK_SIZE */,
	{0x4c0a, 0} /* LOOP_CONFIGURE */,
	{0x4c80, 0} /* LOOP_CTL_ADD */,
	{0x4c81, 0} /* LOOP_CTL_REMOVE */,
	{0x4c82, 0} /* LOOP_CTL_GET_FREE */,
	/* include/uapi/linux/vt.h, kd.h */
	{0x5600, 4} /* VT_OPENQRY */,
	{0x5601, 8} /* VT_GETMODE */,
	{0x5602, 0} /* VT_SETMODE */,
	{0x5603, 6} /* VT_GETSTATE */,
	{0x5605, 0} /* VT_RELDISP */,
	{0x5606, 0} /* VT_ACTIVATE */,
	{0x5607, 0} /* VT_WAITACTIVE */,
	{0x4b31, 1} /* KDGETLED */,
	{0x4b32, 0} /* KDSETLED */,
	{0x4b33, 1} /* KDGKBTYPE */,
	{0x4b3a, 0} /* KDSETMODE */,
	{0x4b3b, 4} /* KDGETMODE */,
	{0x4b44, 4} /* KDGKBMODE */,
	{0x4b45, 0} /* KDSKBMODE */,
	{0x4b46, 4} /* KDGKBENT */,
	{0x4b62, 4} /* KDGKBMETA */,
	{0x4b64, 1} /* KDGKBLED */,
	{0x4b65, 0} /* KDSKBLED */,
	/* include/uapi/asm-generic/sockios.h, linux/sockios.h */
	{0x8901, 0} /* FIOSETOWN */,
	{0x8902, 0} /* SIOCSPGRP */,
	{0x8903, 4} /* FIOGETOWN */,
	{0x8904, 4} /* SIOCGPGRP */,
	{0x8905, 4} /* SIOCATMARK */,
	{0x8906, 16} /* SIOCGSTAMP */,
	{0x8907, 16} /* SIOCGSTAMPNS */,
	{0x890b, 0} /* SIOCADDRT */,
	{0x890c, 0} /* SIOCDELRT */,
	{0x894b, 4} /* SIOCOUTQNSD */,
	{0x894c, 0} /* SIOCGSKNS */,
	{0x8953, 0} /* SIOCDARP */,
	{0x8954, 68} /* SIOCGARP */,
	{0x8955, 0} /* SIOCSARP */,
	{0x89e0, 0} /* SIOCUNIXFILE */,
};

/* drivers/net and net/core/dev_ioctl.c: struct ifreq, of 40 bytes, its union without a pointer */
static bool ifreq(uint32_t req)
{
	if (req == 0x8912 /* SIOCGIFCONF */ || req == 0x8946 /* SIOCETHTOOL */)
		return false;
	return (req >= 0x8910 && req <= 0x8943) || req == 0x8947 /* SIOCGMIIPHY */ ||
	       req == 0x8948 /* SIOCGMIIREG */ || req == 0x8970 /* SIOCGIFMAP */ ||
	       req == 0x8971 /* SIOCSIFMAP */;
}

/* The size in the request is what it says, and there are no pointers in it. */
static bool kept(uint32_t req)
{
	switch (TYPE(req)) {
	case '!': /* seccomp */
	case 'T': /* tty, pty, tun */
	case 0x12: /* block devices */
	case 'E': /* input devices */
	case 'H': /* hidraw */
	case 'R': /* random */
	case 'W': /* watchdog */
	case 'v': /* version of a file */
	case 0x15: /* identity of a file system */
	case 0x89: /* sockets: time stamps */
	case 0xb7: /* name spaces */
	case '$': /* perf_event: those that are not below */
		return req != 0xc008240a; /* PERF_EVENT_IOC_QUERY_BPF: an array behind it */
	case 0xff: /* pidfd */
		return NR(req) <= 11;
	case 'p': /* real time clock */
		return NR(req) <= 0x20;
	case 'X': /* XFS and what others took from it: freeze, trim, attributes, space */
		return NR(req) == 31 || NR(req) == 32 || (NR(req) >= 40 && NR(req) <= 43) || NR(req) == 57 ||
		       NR(req) == 119 || NR(req) == 120 || NR(req) == 121;
	case 'f': /* attributes and versions of a file, ext4, fs-verity and encryption without their buffers */
		return NR(req) <= 10 || NR(req) == 12 || NR(req) == 15 || NR(req) == 19 || NR(req) == 21 ||
		       NR(req) == 24 || NR(req) == 25 || NR(req) == 26 || NR(req) == 133;
	case 0x94: /* btrfs, of it what all file systems have: clone; label; sub-volume */
		return NR(req) == 9 || NR(req) == 13 || NR(req) == 25 || NR(req) == 49 || NR(req) == 50 ||
		       NR(req) == 18 || NR(req) == 17 || NR(req) == 31 || NR(req) == 60;
	}
	return false;
}

/* net/ethtool/ioctl.c: the commands that programs ask for, by number; what is written where the command was */
static bool ethtool(struct so *s, uint64_t p)
{
	static const uint16_t get[][2] = {
		{0x01, 44} /* GSET */,
		{0x03, 196} /* GDRVINFO */,
		{0x0a, 8} /* GLINK */,
		{0x0e, 92} /* GCOALESCE */,
		{0x10, 36} /* GRINGPARAM */,
		{0x12, 16} /* GPAUSEPARAM */,
		{0x14, 8} /* GRXCSUM */,
		{0x16, 8} /* GTXCSUM */,
		{0x18, 8} /* GSG */,
		{0x1e, 8} /* GTSO */,
		{0x20, 44} /* GPERMADDR */,
		{0x23, 8} /* GGSO */,
		{0x25, 8} /* GFLAGS */,
		{0x2b, 8} /* GGRO */,
		{0x41, 44} /* GET_TS_INFO */,
		{0x4c, 1572} /* GLINKSETTINGS: 48 and three masks of at most 127 words */,
	};
	uint32_t cmd = so_u32(p);

	for (uint32_t i = 0; i < sizeof(get) / sizeof(get[0]); i++)
		if (get[i][0] == cmd) {
			so_loose(s, p, get[i][1]);
			return true;
		}
	return false;
}

/* Structures with an array behind them, or somewhere else; true: it was one */
static bool odd(struct so *s, uint32_t req, uint64_t p)
{
	uint64_t count = 0;

	switch (req) {
	case 0x8912: /* SIOCGIFCONF: struct ifconf */
		so_loose(s, s->before->ptr[0], so_u32(p));
		so_add(s, p, 16);
		return true;
	case 0x8946: /* SIOCETHTOOL: ifr_data */
		if (!ethtool(s, so_u64(p + 16)))
			return false;
		so_add(s, p, 40);
		return true;
	case 0x400454ca: /* TUNSETIFF: struct ifreq, with the name that it got */
	case 0x800454d2: /* TUNGETIFF */
		so_loose(s, p, 40);
		return true;
	case 0x541c: /* TIOCLINUX */
		so_loose(s, p, 8);
		return true;
	case 0xc020660b: /* FS_IOC_FIEMAP: fm_mapped_extents */
		so_loose(s, p, 32 + so_min(so_u32(p + 20), so_u32(p + 24)) * 56);
		return true;
	case 0xc0c0583b: /* FS_IOC_GETFSMAP: fmh_entries of the fmh_count that there is room for */
		so_loose(s, p, 192 + so_min(so_u32(p + 8), so_u32(p + 12)) * 48);
		return true;
	case 0xc0189436: /* FIDEDUPERANGE: dest_count */
		count = so_u64(p + 16) & 0xffff;
		so_loose(s, p, 24 + count * 32);
		return true;
	case 0xc0046686: /* FS_IOC_MEASURE_VERITY: digest_size */
		so_loose(s, p, 4 + (so_u32(p) >> 16));
		return true;
	case 0xc0096616: /* FS_IOC_GET_ENCRYPTION_POLICY_EX: a policy of up to 24 bytes */
		so_loose(s, p, 32);
		return true;
	case 0xc0606610: /* PAGEMAP_SCAN: vec of page_region, as many as it returned */
		so_loose(s, so_u64(p + 40), s->ret < 0 ? 0 : 24 * (uint64_t)s->ret);
		so_add(s, p, 96);
		return true;
	case 0xc0686611: /* PROCMAP_QUERY: name and build id somewhere else */
		so_loose(s, so_u64(p + 88), so_u32(p + 80));
		so_loose(s, so_u64(p + 96), so_u32(p + 84));
		so_add(s, p, 104);
		return true;
	}
	return false;
}

void so_ioctl_before(const uint64_t arg[6], struct sys_before *b)
{
	if ((uint32_t)arg[1] == 0x8912) /* SIOCGIFCONF: ifc_buf */
		b->ptr[0] = so_u64(arg[2] + 8);
}

void so_ioctl(struct so *s)
{
	uint32_t req = (uint32_t)s->arg[1];
	uint64_t p = s->arg[2];

	if (s->ret == -ENOTTY)
		return;
	if (odd(s, req, p)) {
		s->stop |= s->fault;
		return;
	}
	if (ifreq(req)) {
		so_loose(s, p, 40);
		return;
	}
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].req == req) {
			so_loose(s, p, known[i].size);
			return;
		}
	if (!kept(req))
		s->stop = true;
	else if (DIR(req) & 2)
		so_loose(s, p, SIZE(req));
}
