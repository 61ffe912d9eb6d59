// SPDX-License-Identifier: MIT
/*
 * launch - run one command and say what it cost: itself, and what it left running.
 *
 *	launch [-i IN] [-o OUT] [-e ERR] [-t SECONDS] [-E NAME=VALUE]... -r REPORT -- CMD [ARG]...
 *
 * The command gets exactly the environment given by -E. launch makes itself the reaper of
 * orphans, so a collector that the traced program started is waited for and counted apart:
 * nothing else tells when a run directory is complete.
 *
 * REPORT gets lines of NAME=VALUE:
 *	status	 exit status, or 128 + signal
 *	timeout	 1 when the command was killed after -t SECONDS
 *	wall	 seconds until the command itself ended
 *	user sys seconds of CPU of the command and the children it waited for
 *	rest_cpu seconds of CPU of the orphans (the collector)
 *	rest_wall seconds from the command's end until the last orphan ended
 *	rest_timeout 1 when an orphan still ran after another -t SECONDS
 *	maxrss	 KiB, of the command
 *
 * Exit status: 0 when the report was written, whatever the command did; 2 otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ENV 128

struct options {
	const char *in, *out, *err, *report;
	unsigned int timeout; /* seconds, 0: none */
	char *env[MAX_ENV + 1];
	char **argv;
};

struct result {
	int status, timeout, rest_timeout;
	double wall, user, sys, rest_cpu, rest_wall;
	long maxrss;
};

static void die(const char *doing, const char *what)
{
	fprintf(stderr, "launch: %s %s: %s\n", doing, what, strerror(errno));
	_exit(2);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void parse(int argc, char **argv, struct options *o)
{
	int opt, envs = 0;

	while ((opt = getopt(argc, argv, "+i:o:e:t:E:r:")) != -1) {
		switch (opt) {
		case 'i':
			o->in = optarg;
			break;
		case 'o':
			o->out = optarg;
			break;
		case 'e':
			o->err = optarg;
			break;
		case 't':
			o->timeout = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'r':
			o->report = optarg;
			break;
		case 'E':
			if (envs < MAX_ENV && strchr(optarg, '=')) {
				o->env[envs++] = optarg;
				break;
			}
			/* fallthrough */
		default:
			goto usage;
		}
	}
	o->argv = argv + optind;
	if (o->argv[0] && o->report)
		return;
usage:
	fprintf(stderr, "usage: launch [-i IN] [-o OUT] [-e ERR] [-t SECONDS] "
			"[-E NAME=VALUE]... -r REPORT -- CMD [ARG]...\n");
	exit(2);
}

static void redirect(const char *path, int flags, int fd)
{
	int got = open(path, flags | O_CLOEXEC, 0666);

	if (got < 0)
		die("cannot open", path);
	if (dup2(got, fd) < 0)
		die("cannot redirect to", path);
}

static pid_t start(struct options *o)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork for", o->argv[0]);
	if (pid)
		return pid;
	setpgid(0, 0);
	redirect(o->in ? o->in : "/dev/null", O_RDONLY, 0);
	redirect(o->out ? o->out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 1);
	if (o->err)
		redirect(o->err, O_WRONLY | O_CREAT | O_TRUNC, 2);
	execve(o->argv[0], o->argv, o->env);
	die("cannot execute", o->argv[0]);
	return -1;
}

static void ring(int sig)
{
	(void)sig; /* only there to interrupt wait4 */
}

/* collect - wait for the command and then for every orphan it left */
static void collect(pid_t pid, unsigned int timeout, struct result *r)
{
	double begin = now(), end = 0;
	int running = 1;

	alarm(timeout);
	for (;;) {
		struct rusage u;
		int status;
		pid_t got = wait4(-1, &status, 0, &u);

		if (got < 0 && errno == EINTR && running && !r->timeout) {
			r->timeout = 1;
			kill(-pid, SIGKILL);
		} else if (got < 0 && errno == EINTR && !running) {
			r->rest_timeout = 1;
			break;
		} else if (got < 0 && errno == ECHILD) {
			break;
		} else if (got == pid) {
			end = now();
			running = 0;
			r->wall = end - begin;
			r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			r->user = seconds(u.ru_utime);
			r->sys = seconds(u.ru_stime);
			r->maxrss = u.ru_maxrss;
			alarm(timeout);
		} else if (got > 0) {
			r->rest_cpu += seconds(u.ru_utime) + seconds(u.ru_stime);
		}
	}
	r->rest_wall = now() - end;
}

static void report(const char *path, const struct result *r)
{
	FILE *f = fopen(path, "w");

	if (!f)
		die("cannot write", path);
	fprintf(f,
		"status=%d\ntimeout=%d\nwall=%.6f\nuser=%.6f\nsys=%.6f\nrest_cpu=%.6f\n"
		"rest_wall=%.6f\nrest_timeout=%d\nmaxrss=%ld\n",
		r->status, r->timeout, r->wall, r->user, r->sys, r->rest_cpu, r->rest_wall, r->rest_timeout,
		r->maxrss);
	if (fclose(f))
		die("cannot write", path);
}

int main(int argc, char **argv)
{
	struct sigaction bell = {.sa_handler = ring}; /* no SA_RESTART: wait4 must return */
	struct options o = {0};
	struct result r = {0};

	parse(argc, argv, &o);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		die("cannot become the reaper of", o.argv[0]);
	sigaction(SIGALRM, &bell, NULL);
	collect(start(&o), o.timeout, &r);
	report(o.report, &r);
	return 0;
}
