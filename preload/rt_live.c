/* SPDX-License-Identifier: MIT
 *
 * rt_live.c - the registry of live traced processes: which run one belongs to, which runs are going on
 *
 *   cache/live/PID-STARTTIME -> run directory      symbolic links
 *
 * A process whose ancestor is there, or itself (before an exec), belongs to that run. So children need no variable added
 * to their environment, and may change their working directory. The start time makes a name unique (proc(5), stat
 * field 22; exec keeps it). A run is going on while a process of that name lives; what has ended and is only being
 * compressed may be moved, as the collector has it open. Who makes a run directory has the registry locked meanwhile.
 */
#include "rt.h"

/* pid's parent and start time; false if it has ended. 0 for pid is ourselves, by the number that we have in /proc: in a
 * pid namespace that has no /proc of its own it is not getpid(), which there is somebody else's. */
static bool stat_of(uint32_t *pid, uint32_t *ppid, uint64_t *start)
{
	char buf[64];
	struct rt_str s = rt_str(buf, sizeof(buf));
	struct rt_stat st;

	rt_put(&s, "/proc/");
	if (*pid)
		rt_putu(&s, *pid);
	else
		rt_put(&s, "self");
	rt_put(&s, "/stat");
	if (!rt_stat(buf, &st))
		return false;
	if (st.state == 'Z' && st.threads <= 1) /* not only its first thread has ended */
		return false;
	*pid = st.pid;
	*ppid = st.ppid;
	*start = st.start;
	return true;
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

void rt_live_register(void)
{
	char link[RT_PATH];
	uint32_t ppid;

	rt.registered = rt.pid;
	if (rt.live[0] && live_name(link, 0, &ppid))
		rt_sc(__NR_symlink, rt.run, link);
}

void rt_live_leave(void)
{
	char link[RT_PATH];
	uint32_t ppid;

	if (rt.registered && rt.live[0] && live_name(link, 0, &ppid))
		rt_sc(__NR_unlink, link);
	rt.registered = 0;
}

bool rt_live_join(void)
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
			return rt_dir_is_run(rt.run);
		}
		if (!ppid)
			return false;
		pid = ppid;
	}
	return false;
}

/* is the process of this name in the registry alive? */
static bool alive(const char *name)
{
	char now[RT_PATH];
	uint32_t pid = 0, ppid;

	for (const char *p = name; *p >= '0' && *p <= '9'; p++)
		pid = pid * 10 + (uint32_t)(*p - '0');
	return pid && live_name(now, pid, &ppid) && rt_streq(now + rt_strlen(rt.live) + 1, name);
}

bool rt_live_run(const char *dir)
{
	uint64_t buf[512];
	bool found = false;
	long fd, n;

	if (!rt.live[0])
		return false;
	fd = rt_open(rt.live, O_RDONLY | O_DIRECTORY, 0);
	if (rt_err(fd))
		return false;
	while (!found && (n = rt_sc(__NR_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long i = 0; i < n && !found;) {
			struct rt_dirent *d = (void *)((char *)buf + i);
			char link[RT_PATH], to[RT_PATH];
			long len;

			i += d->reclen;
			rt_dir_path(link, rt.live, d->name);
			len = rt_sc(__NR_readlink, link, to, RT_PATH - 1);
			if (len <= 0)
				continue;
			to[len] = 0;
			found = rt_streq(to, dir) && alive(d->name);
		}
	}
	rt_close((int)fd);
	return found;
}

/* Who holds it may have been stopped (SIGSTOP) just then: after two seconds we go on without. */
long rt_live_lock(void)
{
	struct __kernel_timespec nap = {0, 2000000};
	long fd = rt.live[0] ? rt_open(rt.live, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -ENOENT;

	for (int i = 0; !rt_err(fd) && i < 1000; i++) {
		if (rt_sc(__NR_flock, fd, 2 | 4 /* LOCK_EX | LOCK_NB */) != -EAGAIN)
			break;
		rt_sc(__NR_nanosleep, &nap, 0);
	}
	return fd;
}

void rt_live_unlock(long lock)
{
	if (!rt_err(lock))
		rt_close((int)lock);
}
