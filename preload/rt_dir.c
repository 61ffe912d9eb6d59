/* SPDX-License-Identifier: MIT
 *
 * rt_dir.c - finds or makes the run directory, this process's directory in it, the map cache
 *
 * A process belongs to a run that is going on when PTRACE_RUN names its directory
 * (ptrace-record sets it), or when itself (before an exec) or one of its ancestors is in the
 * registry of live traced processes: symbolic links cache/live/PID-STARTTIME -> run directory.
 * The start time makes a name unique (proc(5), stat field 22; exec keeps it). So children need
 * no variable added to their environment, and may change their working directory.
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

/* pid's parent and start time; false if it is gone. 0 for pid is ourselves, by the number that we have in /proc: in a
 * pid namespace that has no /proc of its own it is not getpid(), which there is somebody else's. */
static bool stat_of(uint32_t *pid, uint32_t *ppid, uint64_t *start)
{
	char buf[1024];
	struct rt_str s = rt_str(buf, sizeof(buf));
	long fd, n, i;
	int field = 2;
	uint64_t v = 0;

	rt_put(&s, "/proc/");
	if (*pid)
		rt_putu(&s, *pid);
	else
		rt_put(&s, "self");
	rt_put(&s, "/stat");
	fd = rt_open(buf, O_RDONLY, 0);
	if (rt_err(fd))
		return false;
	n = rt_read((int)fd, buf, sizeof(buf) - 1);
	rt_close((int)fd);
	if (n <= 0)
		return false;
	*pid = 0;
	for (i = 0; i < n && buf[i] != ' '; i++)
		*pid = *pid * 10 + (buf[i] - '0');
	for (i = n; i > 0 && buf[i - 1] != ')'; i--)
		; /* the command name may hold anything, a parenthesis too */
	for (; i < n && field <= 22; i++) {
		if (buf[i] == ' ') {
			if (field == 4)
				*ppid = (uint32_t)v;
			if (field == 22) {
				*start = v;
				return true;
			}
			field++;
			v = 0;
		} else {
			v = v * 10 + (buf[i] - '0');
		}
	}
	return false;
}

static bool live_name(char *buf, uint32_t pid, uint32_t *ppid) /* of pid, 0 ourselves */
{
	struct rt_str s;
	uint64_t start;

	if (!stat_of(&pid, ppid, &start))
		return false;
	s = rt_str(buf, RT_PATH);
	rt_put(&s, rt.live);
	rt_put(&s, "/");
	rt_putu(&s, pid);
	rt_put(&s, "-");
	rt_putu(&s, start);
	return !s.cut;
}

void rt_dir_register(void)
{
	char link[RT_PATH];
	uint32_t ppid;

	rt.registered = rt.pid;
	if (rt.live[0] && live_name(link, 0, &ppid))
		rt_sc(__NR_symlink, rt.run, link);
}

static bool is_run(const char *dir)
{
	char p[RT_PATH];

	rt_dir_path(p, dir, "run.json");
	return !rt_err(rt_sc(__NR_access, p, 0));
}

static bool join_live(void)
{
	uint32_t pid = 0;

	for (int i = 0; rt.live[0] && i < 32; i++) {
		char link[RT_PATH];
		uint32_t ppid = 0;
		long n;

		if (!live_name(link, pid, &ppid))
			return false;
		n = rt_sc(__NR_readlink, link, rt.run, RT_PATH - 1);
		if (n > 0) {
			rt.run[n] = 0;
			return is_run(rt.run);
		}
		if (!ppid)
			return false;
		pid = ppid;
	}
	return false;
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

static int make_run(void)
{
	char old[RT_PATH], json[RT_PATH], start[100];
	struct rt_str text = rt_str(start, sizeof(start));
	int r = expand(rt.run);
	long fd;

	if (r)
		return r;
	r = (int)rt_sc(__NR_mkdir, rt.run, 0777);
	if (r == -EEXIST) {
		struct rt_str s = rt_str(old, sizeof(old));

		rt_put(&s, rt.run);
		rt_put(&s, ".old");
		r = (int)rt_sc(__NR_rmdir, rt.run); /* an empty directory is taken over */
		if (r) {
			if (s.cut || !is_run(rt.run))
				return -EEXIST; /* never move what is not ours */
			rt_old_remove(old);
			r = (int)rt_sc(__NR_rename, rt.run, old);
		}
		if (!r)
			r = (int)rt_sc(__NR_mkdir, rt.run, 0777);
	}
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
	if (rt.run_opt && rt.run_opt[0] == '/' && is_run(rt.run_opt)) {
		rt_dir_path(rt.run, rt.run_opt, "");
		joined = true;
	}
	if (!joined && !join_live())
		r = make_run();
	if (!r)
		r = make_proc();
	if (r) {
		if (r == -EEXIST)
			say(rt.run, "it exists and is not a run directory");
		else
			say(rt.run[0] ? rt.run : rt.dir_opt, rt_strerror(r));
		return -1;
	}
	rt_dir_path(maps, rt.run, "maps");
	rt_sc(__NR_mkdir, maps, 0777);
	if (!rt.cache[0])
		rt_dir_path(rt.cache, maps, "");
	rt_dir_register();
	return 0;
}
