/* SPDX-License-Identifier: MIT
 *
 * replay.c - the trace of an image of which only the system calls were recorded
 *
 *   ptrace-replay ─▶ the program once more, under the runtime ─▶ ptrace-collect ─▶ FIFO ─▶ log.c
 *
 * It runs while it is decoded. What it makes (a run directory without a log) is in a directory of its own in the run's,
 * or, if that cannot be written to, in TMPDIR, until it has been decoded. Its modules and maps stand in for the
 * recording's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "dec.h"

#define PIPE_SIZE (1 << 20) /* a chunk at a time */
#define LINGER_MS 5000 /* for ptrace-collect to begin its files, and to finish them */

struct replay {
	pid_t pid; /* of ptrace-replay; 0: it has been waited for */
	int status; /* its exit status then */
	int fd; /* another descriptor of the FIFO: when it ends, all writers are gone */
	char *top, *run, *fifo; /* directory; the run directory in it; */
	char *dir; /* of the process image, in that; NULL: not there yet */
};

/* ---- its directory -------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path) && errno != ENOENT;
}

static int make_top(struct replay *y, const struct proc *p, struct ptrace_error *e)
{
	const char *tmp = getenv("TMPDIR");

	y->top = xprintf("%s/replay-XXXXXX", p->run->dir);
	if (!mkdtemp(y->top)) {
		free(y->top);
		y->top = xprintf("%s/ptrace-replay-XXXXXX", tmp && *tmp ? tmp : "/tmp");
		if (!mkdtemp(y->top)) {
			err_set(e, PTRACE_IO, "cannot make a directory for a replay: %s: %s", y->top,
				strerror(errno));
			free(y->top);
			y->top = NULL;
			return -1;
		}
	}
	y->run = xprintf("%s/run", y->top);
	y->fifo = xprintf("%s/log", y->top);
	if (mkfifo(y->fifo, 0600))
		return err_set(e, PTRACE_IO, "cannot make %s: %s", y->fifo, strerror(errno));
	return 0;
}

/* the only process image in it */
static char *find_dir(const char *run)
{
	DIR *h = opendir(run);
	struct dirent *d;
	char *dir = NULL;

	while (h && !dir && (d = readdir(h)))
		if (!strncmp(d->d_name, "proc-", 5))
			dir = xprintf("%s/%s", run, d->d_name);
	if (h)
		closedir(h);
	return dir;
}

/* ---- ptrace-replay -------------------------------------------------------------------------- */

static void __attribute__((noreturn))
exec_replay(const struct replay *y, const struct proc *p, bool verify, pid_t parent)
{
	const char *name = getenv("PTRACE_REPLAY");
	char self[4096], *slash, *tool = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *argv[] = {"ptrace-replay", "--quiet", "--output", y->run, "--stream",
			y->fifo,	 p->dir,    NULL,	NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(PTRACE_IO);
	dup2(null, 0);
	dup2(null, 1);
	if (verify) {
		argv[7] = argv[6];
		argv[6] = "--verify";
	}
	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (name && *name)
		tool = xprintf("%s", name);
	else if (slash)
		tool = xprintf("%.*s/ptrace-replay", (int)(slash - self), self);
	if (tool && (!access(tool, X_OK) || (name && *name)))
		execv(tool, argv);
	else
		execvp("ptrace-replay", argv);
	dprintf(2, "ptrace-decode: cannot execute %s: %s (set PTRACE_REPLAY)\n",
		tool ? tool : "ptrace-replay", strerror(errno));
	_exit(PTRACE_IO);
}

/* true when it has ended by now */
static bool ended(struct replay *y, bool wait)
{
	int status;
	pid_t k;

	if (!y->pid)
		return true;
	do
		k = waitpid(y->pid, &status, wait ? 0 : WNOHANG);
	while (k < 0 && errno == EINTR);
	if (!k)
		return false;
	y->status = k > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : PTRACE_IO;
	y->pid = 0;
	return true;
}

/* Until something of its log is there: its start state and modules are, then. */
static int first_bytes(struct replay *y, struct ptrace_error *e)
{
	struct pollfd f = {.fd = y->fd, .events = POLLIN};
	bool over = false;

	for (;;) {
		/* one that went well, or far, has left its log to a collector that may still be starting */
		int k = poll(&f, 1, over && y->status <= PTRACE_PARTIAL ? LINGER_MS : 50);

		if (k > 0 && f.revents)
			return f.revents & POLLIN
				       ? 0
				       : err_set(e, PTRACE_BAD, "the replay has nothing to decode");
		if (over)
			return err_set(e, PTRACE_BAD,
				       "the recording cannot be replayed (ptrace-replay: status %d)",
				       y->status);
		over = ended(y, false);
	}
}

static void forget_modules(struct proc *p)
{
	for (uint32_t i = 0; i < p->nmod; i++) {
		free(p->mod[i].path);
		free(p->mod[i].lost);
	}
	free(p->mod);
	p->mod = xcalloc(REPLAY_MODULES, sizeof(*p->mod));
	p->nmod = 0;
	p->mod_at = 0;
}

static int start(struct proc *p, bool verify, struct ptrace_error *e)
{
	struct replay *y = p->replay;
	pid_t self = getpid();

	if (make_top(y, p, e))
		return -1;
	y->fd = open(y->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (y->fd < 0)
		return err_set(e, PTRACE_IO, "cannot open %s: %s", y->fifo, strerror(errno));
	fcntl(y->fd, F_SETPIPE_SZ, PIPE_SIZE);
	y->pid = fork();
	if (!y->pid)
		exec_replay(y, p, verify, self);
	if (y->pid < 0) {
		y->pid = 0;
		return err_set(e, PTRACE_IO, "cannot start ptrace-replay: %s", strerror(errno));
	}
	if (first_bytes(y, e))
		return -1;
	y->dir = find_dir(y->run);
	if (!y->dir)
		return err_set(e, PTRACE_BAD, "the replay left no process in %s", y->run);
	forget_modules(p);
	run_replay_modules(p, y->run, y->dir);
	return 0;
}

/* waits for ptrace-collect: what it still writes is not wanted */
static void drain(struct replay *y)
{
	struct pollfd f = {.fd = y->fd, .events = POLLIN};
	static char buf[1 << 16];
	ssize_t n = 1;

	while (n > 0 && poll(&f, 1, LINGER_MS) > 0)
		n = read(y->fd, buf, sizeof(buf));
}

static int finish(struct proc *p, bool all)
{
	struct replay *y = p->replay;
	int status;

	if (y->pid && !all)
		kill(y->pid, SIGTERM);
	if (y->fd >= 0) {
		if (y->pid || y->dir)
			drain(y);
		close(y->fd);
	}
	ended(y, true);
	status = y->status;
	if (y->top)
		nftw(y->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(y->top);
	free(y->run);
	free(y->fifo);
	free(y->dir);
	free(y);
	p->replay = NULL;
	return all && status ? PTRACE_PARTIAL : PTRACE_OK;
}

struct log *replay_begin(struct proc *p, bool verify, unsigned flags, struct ptrace_error *e)
{
	char name[64];
	int fd = -1;

	p->replay = xcalloc(1, sizeof(*p->replay));
	p->replay->fd = -1;
	if (!start(p, verify, e)) {
		fcntl(p->replay->fd, F_SETFL, 0);
		fd = fcntl(p->replay->fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			err_set(e, PTRACE_IO, "cannot read the replay: %s", strerror(errno));
	}
	if (fd < 0) {
		finish(p, false);
		return NULL;
	}
	p->run->nreplay++;
	snprintf(name, sizeof(name), "the replay of pid %u image %u", p->pid, p->image);
	return log_stream(fd, name, flags);
}

bool replay_modules(struct proc *p)
{
	uint32_t n = p->nmod;

	run_replay_modules(p, p->replay->run, p->replay->dir);
	return p->nmod > n;
}

/* The helper thread of the log may be waiting for more of it: whoever wants no more ends the replay first. */
int replay_end(struct proc *p, struct log *log, bool all)
{
	int rc;

	if (!all && p->replay->pid)
		kill(p->replay->pid, SIGTERM);
	log_close(log);
	rc = finish(p, all);
	if (rc)
		run_note(p->run, "pid %u image %u: the replay did not come to the recording's end", p->pid,
			 p->image);
	return rc;
}
