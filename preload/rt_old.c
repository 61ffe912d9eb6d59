/* SPDX-License-Identifier: MIT
 *
 * rt_old.c - removes run.dir.old to make room for the next one
 *
 * Only a directory that has a run.json is touched; two levels of files is all a run directory
 * has, so nothing deeper is followed, but for what a decoder that was killed while it replayed has left: a
 * run directory in replay-*.
 */
#include "rt.h"

#define TOP 3

static bool is_replay(const char *name)
{
	static const char prefix[] = "replay-";

	for (size_t i = 0; i < sizeof(prefix) - 1; i++)
		if (name[i] != prefix[i])
			return false;
	return true;
}

/* depth: how many levels of directories below dir may be followed */
static void clear(const char *dir, int depth)
{
	uint64_t buf[512];
	long fd, n;

	fd = rt_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (rt_err(fd))
		return;
	while ((n = rt_sc(__NR_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long i = 0; i < n;) {
			struct rt_dirent *d = (void *)((char *)buf + i);
			char path[RT_PATH];

			i += d->reclen;
			if (rt_streq(d->name, ".") || rt_streq(d->name, ".."))
				continue;
			rt_dir_path(path, dir, d->name);
			if (!rt_err(rt_sc(__NR_unlink, path)) || depth == 0)
				continue;
			clear(path, depth < TOP ? depth - 1 : is_replay(d->name) ? 2 : 0);
			rt_sc(__NR_rmdir, path);
		}
	}
	rt_close((int)fd);
}

int rt_old_remove(const char *dir)
{
	char json[RT_PATH];

	rt_dir_path(json, dir, "run.json");
	if (rt_err(rt_sc(__NR_access, json, 0)))
		return -ENOENT;
	clear(dir, TOP);
	return (int)rt_sc(__NR_rmdir, dir);
}
