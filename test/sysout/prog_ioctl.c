/* SPDX-License-Identifier: MIT
 *
 * prog_ioctl.c - ioctls on files, sockets and terminals
 */
#include "prog.h"
#include <net/if.h>
#include <sys/ioctl.h>
#include <linux/fs.h>
#include <linux/fiemap.h>

static void interfaces(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifconf *c = (struct ifconf *)out[1];

	for (unsigned req = 0x8910; req <= 0x8948; req++)
		if ((req & 1 || req == 0x8912) && req != 0x8946 && req != 0x8947 && req != 0x8911 &&
		    req != SIOCSIFNAME) {
			fill();
			if (req == SIOCGIFCONF)
				c->ifc_len = 100, c->ifc_buf = (char *)out[0];
			else
				strcpy((char *)out[1], "lo");
			RAW(ioctl, fd, req, out[1]);
		}
	fill(), c->ifc_len = 0, c->ifc_buf = NULL, RAW(ioctl, fd, SIOCGIFCONF, c);
	fill(), memset(out[0], 0, 40), *(int *)(out[0] + 16) = 1, RAW(ioctl, fd, SIOCGIFNAME, out[0]);
	fill(), memset(out[0], 0, 68), RAW(ioctl, fd, 0x8954, out[0]);
	for (unsigned req = 0x8901; req < 0x8908; req++)
		if (req != 0x8901 && req != 0x8902)
			C(ioctl, fd, req, out[0]);
	C(close, fd);
}

static void on_file(int fd)
{
	struct fiemap *m = (struct fiemap *)out[0];
	struct file_dedupe_range *d = (struct file_dedupe_range *)out[0];
	uint64_t *scan = (uint64_t *)out[0];
	int maps;

	C(ioctl, fd, FIONREAD, out[0]);
	C(ioctl, fd, FIGETBSZ, out[0]);
	C(ioctl, fd, 0x5460, out[0]);
	C(ioctl, fd, FIBMAP, out[0]);
	C(ioctl, fd, FS_IOC_GETFLAGS, out[0]);
	C(ioctl, fd, FS_IOC_GETVERSION, out[0]);
	C(ioctl, fd, FS_IOC_FSGETXATTR, out[0]);
	C(ioctl, fd, FS_IOC_GETFSLABEL, out[0]);
	C(ioctl, fd, 0x80111500, out[0]);
	C(ioctl, fd, FICLONE, 0);
	C(ioctl, fd, 0xc0096616, out[0]);
	C(ioctl, fd, 0xc0046686, out[0]);
	for (unsigned n = 0; n < 20; n += 10) {
		fill();
		*m = (struct fiemap){.fm_length = ~0ull, .fm_extent_count = n, .fm_flags = FIEMAP_FLAG_SYNC};
		RAW(ioctl, fd, FS_IOC_FIEMAP, m);
	}
	fill();
	*d = (struct file_dedupe_range){0, 4096, 1, 0, 0};
	d->info[0].dest_fd = fd;
	d->info[0].dest_offset = 8192;
	RAW(ioctl, fd, FIDEDUPERANGE, d);
	for (unsigned i = 0; i < 4; i++) /* FS_IOC_GETFSMAP: keys from all zero to all ones */
		fill(), memset(out[0], 0, 192), memset(out[0] + 128, 255, 48),
			((uint32_t *)out[0])[2] = i, RAW(ioctl, fd, 0xc0c0583b, out[0]);
	maps = open("/proc/self/pagemap", O_RDONLY);
	fill(), memset(out[0], 0, 96), scan[0] = 96, scan[2] = (uint64_t)out & ~4095ull;
	scan[3] = scan[2] + 8 * 4096, scan[5] = (uint64_t)out[2], scan[6] = 10, scan[11] = scan[10] = 2;
	scan[9] = 0;
	RAW(ioctl, maps, 0xc0606610, out[0]);
	C(close, maps);
	maps = open("/proc/self/maps", O_RDONLY);
	fill(), memset(out[0], 0, 104), scan[0] = 104, scan[2] = (uint64_t)ioctls & ~4095ull;
	((uint32_t *)out[0])[20] = 200, ((uint32_t *)out[0])[21] = 20, scan[11] = (uint64_t)out[2];
	scan[12] = (uint64_t)out[3];
	RAW(ioctl, maps, 0xc0686611, out[0]);
	C(close, maps);
}

static void devices(void)
{
	static const char *const dev[] = {"/dev/random",       "/dev/rtc0", "/dev/loop-control",
					  "/dev/watchdog",     "/dev/tty0", "/dev/console",
					  "/proc/self/ns/net", "/dev/vda",  "/dev/loop0"};
	static const unsigned req[] = {0x80045200, 0x80247009, 0x4c82,	   0x5603,    0x5600, 0x4b3b,
				       0x4b33,	   0x4b44,     0x4b64,	   0xb701,    0xb702, 0xb703,
				       0xb704,	   0x1260,     0x80081272, 0x1268,    0x1263, 0x125e,
				       0x1267,	   0x1278,     0x1279,	   0x127a,    0x127b, 0x127c,
				       0x127e,	   0x80081270, 0x0301,	   0x030d,    0x4c05, 0x4c03,
				       0x80047001, 0x80087001, 0x80045204, 0x8008700b};

	for (size_t i = 0; i < sizeof(dev) / sizeof(dev[0]); i++) {
		int fd = (int)C(open, dev[i], O_RDONLY | O_NONBLOCK | O_NOCTTY);

		for (size_t k = 0; fd >= 0 && k < sizeof(req) / sizeof(req[0]); k++) {
			long r = (i == 2) != (req[k] == 0x4c82) ? -1 : C(ioctl, fd, req[k], out[0]);

			if (r > 2 && req[k] >> 8 == 0xb7)
				C(close, r);
		}
		C(close, fd);
	}
}

void ioctls(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	char text[16384] = {1};

	if (write(fd, text, sizeof(text)) < 0)
		perror("f");
	on_file(fd);
	C(close, fd);
	C(unlink, "f");
	interfaces();
	devices();
	C(ioctl, -1, FIONREAD, out[0]);
	C(ioctl, 0, 0x12345678, out[0]);
}

void ttys(void)
{
	int m = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), s, unlock = 0;

	if (m < 0)
		return;
	C(ioctl, m, TIOCSPTLCK, &unlock);
	s = (int)C(ioctl, m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK);
	for (unsigned req = 0x5401; req <= 0x5460; req++)
		switch (req) { /* what changes things, and what waits */
		case 0x5402 ... 0x5404:
		case 0x5406 ... 0x540e:
		case 0x5410:
		case 0x5412:
		case 0x5414:
		case 0x5416 ... 0x5418:
		case 0x541a:
		case 0x541c:
		case 0x541d:
		case 0x541f ... 0x5423:
		case 0x5425 ... 0x5428:
		case 0x542f:
		case 0x5433 ... 0x5437:
		case 0x5441:
		case 0x5450 ... 0x5452:
		case 0x5457:
		case 0x545c:
			break;
		default:
			C(ioctl, m, req, out[0]);
			C(ioctl, s, req, out[0]);
		}
	C(ioctl, m, TIOCGPTN, out[0]);
	C(ioctl, m, TIOCGPTLCK, out[0]);
	C(ioctl, m, TIOCGPKT, out[0]);
	C(ioctl, m, TIOCGDEV, out[0]);
	C(ioctl, s, TIOCGEXCL, out[0]);
	C(ioctl, s, 0x802c542a, out[0]); /* TCGETS2 */
	C(ioctl, s, TIOCGWINSZ, BAD);
	fill(), ioctl(s, 0x5401, out[0]), RAW(ioctl, s, 0x5402, out[0]);
	C(write, m, "line\n", 5);
	C(read, s, out[0], 100);
	C(read, s, out[0], 100);
	C(read, m, out[0], 100);
	C(close, s);
	C(read, m, out[0], 100);
	C(close, m);
}
