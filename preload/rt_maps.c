/* SPDX-License-Identifier: MIT
 *
 * rt_maps.c - reads /proc/self/maps
 *
 * The file is read through a window and parsed line by line (format: proc(5)); the callback
 * must not map or unmap memory: the kernel continues a read by address.
 */
#include "rt.h"

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (c - 'a' + 10);
		else
			return v;
	}
}

static void parse(const char *p, struct rt_vma *v)
{
	v->lo = hex(&p);
	p++;
	v->hi = hex(&p);
	p++;
	v->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		  (p[2] == 'x' ? PROT_EXEC : 0);
	v->priv = p[3] == 'p';
	p += 5;
	v->off = hex(&p);
	p++;
	v->dev_major = (uint32_t)hex(&p);
	p++;
	v->dev_minor = (uint32_t)hex(&p);
	p++;
	for (v->ino = 0; *p >= '0' && *p <= '9'; p++)
		v->ino = v->ino * 10 + (*p - '0');
	while (*p == ' ')
		p++;
	v->path = p;
}

int rt_maps(rt_vma_fn *fn, void *arg)
{
	static char buf[16384]; /* one thread, and no signal runs this code */
	/* of this thread: the process's are empty once its first thread has ended */
	long fd = rt_open("/proc/thread-self/maps", O_RDONLY, 0), n = 1;
	size_t have = 0;
	bool go = true;

	if (rt_err(fd))
		return (int)fd;
	while (go && n > 0) {
		size_t i, line = 0;

		n = rt_read((int)fd, buf + have, sizeof(buf) - have);
		if (n > 0)
			have += n;
		for (i = 0; go && i < have; i++) {
			struct rt_vma v;

			if (buf[i] != '\n')
				continue;
			buf[i] = 0;
			parse(buf + line, &v);
			go = fn(&v, arg);
			line = i + 1;
		}
		for (i = line; i < have; i++)
			buf[i - line] = buf[i];
		have -= line;
		if (have == sizeof(buf))
			n = -EFBIG;
	}
	rt_close((int)fd);
	return rt_err(n) ? (int)n : 0;
}

bool rt_ours(uint64_t addr)
{
	if (addr >= rt.arena && addr < rt.next)
		return true;
	return rt_mod_at_copy(addr) != NULL;
}
