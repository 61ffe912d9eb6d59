/* SPDX-License-Identifier: MIT
 *
 * rt_stat.c - what the kernel says of a process, or of a thread (proc(5), /proc/PID/stat)
 */
#include "rt.h"

bool rt_stat(const char *path, struct rt_stat *st)
{
	char buf[1024];
	long fd = rt_open(path, O_RDONLY, 0), n, i;
	uint64_t v = 0;

	if (rt_err(fd))
		return false;
	n = rt_read((int)fd, buf, sizeof(buf));
	rt_close((int)fd);
	memset(st, 0, sizeof(*st));
	for (i = 0; i < n && buf[i] != ' '; i++)
		st->pid = st->pid * 10 + (uint32_t)(buf[i] - '0');
	for (i = n; i > 0 && buf[i - 1] != ')'; i--)
		; /* the command name may hold anything, a parenthesis too */
	/* a blank, and then: state, parent, ..., each behind one */
	for (int field = 2; i < n; i++) {
		if (buf[i] != ' ') {
			v = v * 10 + (uint64_t)(buf[i] - '0');
			continue;
		}
		switch (field++) {
		case 3:
			st->state = buf[i - 1];
			break;
		case 4:
			st->ppid = (uint32_t)v;
			break;
		case 20:
			st->threads = (uint32_t)v;
			break;
		case 22:
			st->start = v;
			return true;
		}
		v = 0;
	}
	return false;
}
