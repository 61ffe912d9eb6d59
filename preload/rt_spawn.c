/* SPDX-License-Identifier: MIT
 *
 * rt_spawn.c - starts ptrace-collect and ptrace-analyze
 *
 * Children are made with clone() and exit signal 0, and do not exec: the program sees no SIGCHLD and a wait for
 * any child (without __WALL or __WCLONE) does not find them. The collector is a grandchild, so
 * it is not a child of the program at all; it starts while the modules are loaded. Who traces the program by ptrace(2) and
 * follows its children (gdb, strace -f) does not get these (CLONE_UNTRACED): one without SIGCHLD would be taken for a thread.
 */
#include "rt.h"

#define RT_WNOHANG 1
#define RT_WALL 0x40000000
#define COLLECT_FD 3

/* the environment without what would trace or redirect the tool itself */
static char **tool_env(void)
{
	size_t n = 0, k = 0;
	char **e;

	while (rt.envp[n])
		n++;
	e = rt_alloc((n + 1) * sizeof(char *));
	for (size_t i = 0; e && i < n; i++)
		if (!rt_starts(rt.envp[i], "LD_PRELOAD=") && !rt_starts(rt.envp[i], "LD_AUDIT="))
			e[k++] = rt.envp[i];
	return e;
}

static void std_null(int err)
{
	long nul = rt_open("/dev/null", O_RDWR, 0);

	if (rt_err(nul))
		return;
	rt_sc(__NR_dup2, nul, 0);
	rt_sc(__NR_dup2, nul, 1);
	rt_sc(__NR_dup2, err < 0 ? nul : err, 2);
	rt_sc(__NR_fcntl, 2, F_SETFD, 0);
}

static void unblock_all(void)
{
	uint64_t none = 0;

	rt_sc(__NR_rt_sigprocmask, 2, &none, 0, 8);
}

static void __attribute__((noreturn)) quit(int code)
{
	for (;;)
		rt_sc(__NR_exit_group, code);
}

static uint32_t ready(void)
{
	return __atomic_load_n(&rt.ring->ready, __ATOMIC_ACQUIRE);
}

static void failed(int err)
{
	rt.ring->error = (uint32_t)-err;
	__atomic_store_n(&rt.ring->ready, 2, __ATOMIC_RELEASE);
	rt_futex_wake(&rt.ring->ready);
}

struct tool {
	int memfd;
	char **env;
};

static void __attribute__((noreturn)) collector(void *arg)
{
	const struct tool *t = arg;
	char *argv[] = {rt.collect, "--run",	  rt.run,
			"--proc",   rt.proc,	  "--live",
			rt.live,    "--compress", (char *)rt.compress_opt,
			"--spool",  rt.spool,	  rt.root ? "--root" : NULL,
			NULL,	    NULL,	  NULL};
	long r, fd;

	for (int i = 0; rt.stream_opt && i < (int)(sizeof(argv) / sizeof(argv[0])); i++) {
		if (argv[i])
			continue;
		argv[i] = "--stream";
		argv[i + 1] = (char *)rt.stream_opt;
		break;
	}

	rt_sc(__NR_setsid);
	fd = rt_sc(__NR_fcntl, t->memfd, F_DUPFD, COLLECT_FD); /* out of the way of 0 to 2 */
	if (rt_err(fd)) {
		failed(-EMFILE); /* EINVAL: the limit is below COLLECT_FD */
		quit(127);
	}
	std_null(-1);
	rt_sc(__NR_dup2, fd, COLLECT_FD);
	if (rt_err(rt_sc(__NR_close_range, COLLECT_FD + 1, ~0u, 0)))
		for (int i = COLLECT_FD + 1; i < 1024; i++) /* before Linux 5.9 */
			rt_close(i);
	unblock_all();
	r = rt_sc(__NR_execve, rt.collect, argv, t->env);
	failed((int)r);
	quit(127);
}

static long collector_pid, collector_fd = -1; /* fd: its pidfd, where the kernel has them (Linux 5.3) */

/* As vfork(2): the child has our memory and stack until it execs or exits, and we wait. A fork would copy the
 * page tables and make each page of the program fault once more. Nothing but the call lies between here and
 * fn's frames, which do not touch this one. No handler can run in the child on our memory: the program has
 * installed none yet, and exec resets what was there before. */
static long __attribute__((noinline)) vforked(void __attribute__((noreturn)) (*fn)(void *), void *arg)
{
	long pid = rt_sc(__NR_clone, CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, 0, 0, 0, 0);

	if (pid == 0) {
		fn(arg);
		quit(127);
	}
	return pid;
}

/* gives the collector a parent that is gone */
static void __attribute__((noreturn)) between(void *arg)
{
	collector_pid = vforked(collector, arg);
	quit(0);
}

/* 0: it is on its way, see rt_spawn_wait; or -errno */
int rt_spawn_collector(int memfd)
{
	struct tool t = {memfd, tool_env()};
	long pid, r;
	int status;

	if (!t.env)
		return -ENOMEM;
	pid = vforked(between, &t);
	if (rt_err(pid))
		return (int)pid;
	while (rt_sc(__NR_wait4, pid, &status, RT_WALL, 0) == -EINTR)
		;
	if (rt_err(collector_pid))
		return (int)collector_pid;
	if (ready() == 2)
		return -(int)rt.ring->error; /* exec failed */
	r = rt_sc(__NR_pidfd_open, collector_pid, 0);
	collector_fd = rt_err(r) ? -1 : r;
	return 0;
}

/* one that dies at once (a missing library of its own) is not waited for */
static bool gone(void)
{
	struct {
		int fd;
		short events, revents;
	} p = {(int)collector_fd, 1 /* POLLIN */, 0};

	if (collector_fd < 0)
		return rt_sc(__NR_kill, collector_pid, 0) == -ESRCH;
	return rt_sc(__NR_poll, &p, 1, 0) > 0;
}

/* until the collector is ready: 0 or -errno */
int rt_spawn_wait(void)
{
	uint64_t t0 = rt_msec();
	int r = 0;

	while (!ready() && !r) {
		rt_futex_wait(&rt.ring->ready, 0, 20);
		if (gone() && !ready())
			r = -ECHILD;
		else if (rt_msec() - t0 > 20000)
			r = -ETIMEDOUT;
	}
	if (collector_fd >= 0)
		rt_close((int)collector_fd);
	collector_fd = -1;
	if (!r && ready() != 1)
		r = -(int)rt.ring->error;
	return r;
}

struct job {
	const char *file, *out, *avoid;
	uint32_t place;
	char **env;
};

static void __attribute__((noreturn)) analyzer(void *arg)
{
	const struct job *j = arg;
	char *argv[15] = {rt.analyze, "-o", (char *)j->out}, log[RT_PATH], budget[24], hex[12];
	struct rt_str h = rt_str(hex, sizeof(hex));
	int n = 3;

	if (rt.mapflags & MAP_F_VERIFY)
		argv[n++] = "--verify";
	if (rt.mapflags & MAP_F_ORDER)
		argv[n++] = "--order";
	if (rt.mapflags & MAP_F_PT)
		argv[n++] = "--cf=pt";
	if (rt.mapflags & MAP_F_PTW) {
		struct rt_str s = rt_str(budget, sizeof(budget));

		rt_put(&s, "--ptwrite=");
		if (MAP_BUDGET(rt.mapflags) == MAP_BUDGET_ALL)
			rt_put(&s, "all");
		else
			rt_putu(&s, 1u << MAP_BUDGET(rt.mapflags));
		argv[n++] = budget;
	}
	if (rt.mapflags & MAP_F_NONDET)
		argv[n++] = rt.mapflags & MAP_F_SPARSE ? "--sparse" : "--nondet";
	if (j->avoid) {
		argv[n++] = "--avoid";
		argv[n++] = (char *)j->avoid;
	}
	if (j->place != ~0u) {
		rt_putx(&h, j->place, 8);
		argv[n++] = "--place";
		argv[n++] = hex;
	}
	argv[n] = (char *)j->file;

	rt_dir_path(log, rt.run, "analyze.log");
	std_null((int)rt_open(log, O_WRONLY | O_CREAT | O_APPEND, 0666));
	unblock_all();
	rt_sc(__NR_execve, rt.analyze, argv, j->env);
	quit(127);
}

/* An exec gives a process back SIGCHLD as its exit signal. So the analyzer is the child of one that does not exec: a
 * program with a handler, or a thread in wait(2), does not notice either (modules loaded later, a switch). */
static void __attribute__((noreturn)) around(void *arg)
{
	int status = 0;
	long pid = vforked(analyzer, arg);

	while (!rt_err(pid) && rt_sc(__NR_wait4, pid, &status, RT_WALL, 0) == -EINTR)
		;
	quit(rt_err(pid) ? 127 : status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff);
}

/* 0 when the tool exited with 0, else its wait status or -errno */
int rt_spawn_analyzer(const char *file, const char *out, const char *name, const char *avoid, uint32_t place)
{
	struct __kernel_timespec nap = {0, 1000000};
	uint64_t t0 = rt_msec();
	struct job j = {file, out, avoid, place, tool_env()};
	bool said = false;
	int status = 0;
	long pid, r;

	if (!j.env)
		return -ENOMEM;
	pid = rt_sc(__NR_clone, CLONE_UNTRACED, 0, 0, 0, 0);
	if (pid == 0)
		around(&j);
	if (rt_err(pid))
		return (int)pid;
	for (;;) {
		r = rt_sc(__NR_wait4, pid, &status, RT_WNOHANG | RT_WALL, 0);
		if (r == pid)
			return status;
		if (rt_err(r) && r != -EINTR)
			return (int)r;
		rt_sc(__NR_nanosleep, &nap, 0);
		if (nap.tv_nsec < 30000000)
			nap.tv_nsec += nap.tv_nsec / 2;
		if (!said && rt_msec() - t0 > 1000) {
			rt_say("analysing ", name, "…", NULL);
			said = true;
		}
	}
}
