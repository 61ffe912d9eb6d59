/* SPDX-License-Identifier: MIT
 *
 * rt_dir.c - finds or makes the run directory, this process's directory in it, the map cache
 *
 * A process belongs to a run that is going on when PTRACE_RUN names its directory, or when the
 * registry of live traced processes says so (rt_live.c). Else it makes one. A run directory that
 * is in the way is moved, unless somebody is still recording into it (`a | b`, both with the
 * same PTRACE_DIR): then the name is followed by a number.
 */
#include "rt.h"

void rt_dir_path(char *buf, const char *dir, const char *name)
{
	struct rt_str s = rt_str(buf, RT_PATH);

	rt_put(&s, dir);
	if (*name) {
		rt_put(&s, "/");
		rt_put(&s, name);
	}
	if (s.cut)
		buf[0] = 0; /* opening it fails with ENOENT */
}

bool rt_dir_is_run(const char *dir)
{
	char p[RT_PATH];

	rt_dir_path(p, dir, "run.json");
	return !rt_err(rt_sc(__NR_access, p, 0));
}

static void cache_open(void)
{
	char p[RT_PATH];
	struct rt_str s = rt_str(p, sizeof(p));

	if (rt.xdg && rt.xdg[0] == '/') {
		rt_put(&s, rt.xdg);
	} else if (rt.home && rt.home[0] == '/') {
		rt_put(&s, rt.home);
		rt_put(&s, "/.cache");
	} else {
		return;
	}
	rt_sc(__NR_mkdir, p, 0700);
	rt_put(&s, "/ptrace");
	rt_sc(__NR_mkdir, p, 0700);
	if (s.cut || rt_err(rt_sc(__NR_access, p, 7)))
		return;
	rt_dir_path(rt.cache, p, "");
	rt_dir_path(rt.live, p, "live");
	rt_sc(__NR_mkdir, rt.live, 0700);
}

/* PTRACE_DIR with %p and %t replaced, made absolute */
static int expand(char *to)
{
	struct rt_str s = rt_str(to, RT_PATH);
	const char *p = rt.dir_opt;

	if (*p != '/') {
		long n = rt_sc(__NR_getcwd, to, RT_PATH - 1); /* length with the NUL */

		if (rt_err(n))
			return (int)n;
		s.n = n - 1;
		rt_put(&s, "/");
	}
	for (; *p; p++) {
		char c[2] = {*p, 0};

		if (p[0] == '%' && p[1] == 'p') {
			rt_putu(&s, rt.pid);
			p++;
		} else if (p[0] == '%' && p[1] == 't') {
			struct __kernel_timespec ts = {0, 0};

			rt_sc(__NR_clock_gettime, 0, &ts);
			rt_putu(&s, ts.tv_sec);
			p++;
		} else {
			rt_put(&s, c);
		}
	}
	while (s.n > 1 && to[s.n - 1] == '/')
		to[--s.n] = 0;
	return s.cut ? -ENAMETOOLONG : 0;
}

/* dir is free for a new run: made, empty. -EBUSY: a run is going on there */
static int take(const char *dir)
{
	char old[RT_PATH];
	struct rt_str s = rt_str(old, sizeof(old));
	int r = (int)rt_sc(__NR_mkdir, dir, 0777);

	if (r != -EEXIST)
		return r;
	if (rt_live_run(dir))
		return -EBUSY;
	r = (int)rt_sc(__NR_rmdir, dir); /* an empty directory is taken over */
	if (r) {
		rt_put(&s, dir);
		rt_put(&s, ".old");
		if (s.cut || !rt_dir_is_run(dir))
			return -EEXIST; /* never move what is not ours */
		rt_old_remove(old);
		r = (int)rt_sc(__NR_rename, dir, old);
	}
	return r ? r : (int)rt_sc(__NR_mkdir, dir, 0777);
}

static int take_some(const char *want)
{
	struct rt_str s;
	int r = take(rt.run);

	for (uint32_t n = 1; r == -EBUSY && n < 1000; n++) {
		s = rt_str(rt.run, RT_PATH);
		rt_put(&s, want);
		rt_put(&s, ".");
		rt_putu(&s, n);
		r = s.cut ? -ENAMETOOLONG : take(rt.run);
	}
	return r;
}

static int make_run(void)
{
	char want[RT_PATH], json[RT_PATH], start[100];
	struct rt_str text = rt_str(start, sizeof(start));
	int r = expand(want);
	long fd, lock;

	if (r)
		return r;
	rt_dir_path(rt.run, want, "");
	lock = rt_live_lock();
	r = take_some(want);
	if (!r)
		rt_live_register();
	rt_live_unlock(lock);
	if (r)
		return r;
	rt.root = true;
	rt_dir_path(json, rt.run, "run.json");
	fd = rt_open(json, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (rt_err(fd))
		return (int)fd;
	rt_put(&text, "{ \"format\": \"ptrace-run\", \"version\": ");
	rt_putu(&text, RUN_VERSION);
	rt_put(&text, ", \"complete\": false }\n");
	r = rt_write_all((int)fd, start, text.n);
	rt_close((int)fd);
	if (!r && !rt_streq(rt.run, want))
		rt_say(want, " is being recorded into; this run is in ", rt.run, NULL);
	return r;
}

static int make_proc(void)
{
	for (uint32_t n = 0; n < 100000; n++) {
		char name[64];
		struct rt_str s = rt_str(name, sizeof(name));
		long r;

		rt_put(&s, "proc-");
		rt_putu(&s, rt.pid);
		rt_put(&s, ".");
		rt_putu(&s, n);
		rt_dir_path(rt.proc, rt.run, name);
		r = rt_sc(__NR_mkdir, rt.proc, 0777);
		if (r != -EEXIST)
			return (int)r;
	}
	return -EEXIST;
}

int rt_dir_next(void)
{
	return make_proc();
}

static void say(const char *dir, const char *why)
{
	char buf[RT_PATH + 64];
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, "cannot make the run directory ");
	rt_put(&s, dir);
	rt_say(buf, ": ", why, "; running untraced (set PTRACE_DIR to another place)");
}

int rt_dir_open(void)
{
	char maps[RT_PATH];
	bool joined = false;
	int r = 0;

	cache_open();
	if (rt.run_opt && rt.run_opt[0] == '/' && rt_dir_is_run(rt.run_opt)) {
		rt_dir_path(rt.run, rt.run_opt, "");
		joined = true;
	}
	if (!joined && !rt_live_join())
		r = make_run();
	if (!r)
		r = make_proc();
	if (r) {
		rt_live_leave();
		if (r == -EEXIST)
			say(rt.run, "it exists and is not a run directory");
		else if (r == -ENOTEMPTY)
			say(rt.run, "the older run in its .old cannot be removed");
		else
			say(rt.run[0] ? rt.run : rt.dir_opt, rt_strerror(r));
		return -1;
	}
	rt_dir_path(maps, rt.run, "maps");
	rt_sc(__NR_mkdir, maps, 0777);
	if (!rt.cache[0])
		rt_dir_path(rt.cache, maps, "");
	if (!rt.root)
		rt_live_register();
	return 0;
}
