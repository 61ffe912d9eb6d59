/* SPDX-License-Identifier: MIT
 *
 * record.c - ptrace-record: runs a command under libptrace_rt.so
 *
 *   check what LD_PRELOAD cannot trace ─▶ fork ─▶ child: environment, exec
 *                                           └──▶ parent: forwards signals, waits, says where the run is
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record.h"

#define EXIT_USAGE 2
#define EXIT_CANNOT 126
#define EXIT_MISSING 127

static volatile pid_t child;

static int usage(FILE *f, int status)
{
	fputs("usage: ptrace-record [-m hifi|fast] [--cf WHO] [-o DIR] [-q] [--verify] [--order]\n"
	      "       [--] COMMAND [ARG...]\n"
	      "Runs COMMAND and records its memory trace into a run directory (run.dir).\n"
	      "  -m, --mode MODE   hifi (default): every address exact\n"
	      "      --cf HOW      auto (default): what the kernel says, as long as that is enough to run "
	      "it\n"
	      "                    again later, then as full; full: all that the trace needs; pt: the same,\n"
	      "                    with Intel PT or not at all; soft, replay: full, auto without Intel PT\n"
	      "  -o, --output DIR  run directory; %p is the process id, %t the time\n"
	      "      --verify      also log every address; ptrace-decode --verify compares\n"
	      "      --order       also log the time of locked instructions: threads in exact order\n"
	      "  -q, --quiet       do not say where the run directory is\n"
	      "  -h, --help    -V, --version\n"
	      "Exit status: the command's; 128+n when signal n killed it; 126 it cannot be traced or run;\n"
	      "127 not found; 2 usage.\n",
	      f);
	return status;
}

static void forward(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* the library next to this program, or in ../lib (installed) */
static int find_library(char *buf, size_t size)
{
	static const char *const where[] = {"", "../lib/", "../lib64/", "../lib/ptrace/"};
	char self[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -1;
	self[n] = 0;
	slash = strrchr(self, '/');
	slash[1] = 0;
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		if ((size_t)snprintf(buf, size, "%s%slibptrace_rt.so", self, where[i]) < size &&
		    !access(buf, R_OK))
			return 0;
	}
	return -1;
}

/* DIR made absolute and its %p, %t left to the runtime; NULL when too long */
static char *absolute(const char *dir)
{
	char cwd[4096], *out;

	if (dir[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		return strdup(dir);
	return asprintf(&out, "%s/%s", cwd, dir) < 0 ? NULL : out;
}

static void environment(const char *lib, const char *dir, const char *mode, const char *cf, int verify,
			int order)
{
	const char *old = getenv("LD_PRELOAD");
	char *both = NULL;

	if (old && *old && asprintf(&both, "%s:%s", lib, old) > 0)
		lib = both;
	setenv("LD_PRELOAD", lib, 1);
	setenv("PTRACE_DIR", dir, 1);
	if (mode)
		setenv("PTRACE_MODE", mode, 1);
	if (cf)
		setenv("PTRACE_CF", cf, 1);
	if (verify)
		setenv("PTRACE_VERIFY", "1", 1);
	if (order)
		setenv("PTRACE_ORDER", "1", 1);
	unsetenv("PTRACE_ORACLE");
	unsetenv("PTRACE_RUN");
}

/* what the runtime made of DIR: it names the process that it replaced by %p */
static char *expanded(const char *dir)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	for (; *dir; dir++) {
		if (dir[0] == '%' && dir[1] == 'p') {
			fprintf(f, "%d", (int)child);
			dir++;
		} else {
			fputc(*dir, f);
		}
	}
	fclose(f);
	return out;
}

/* the run directory that the runtime took for the child: it follows DIR by a number where another run was going on
 * there. Malloced; NULL if there is none */
static char *taken(const char *dir)
{
	char *name, *proc;
	int none;

	for (int n = 0;; n++) {
		if ((n ? asprintf(&name, "%s.%d", dir, n) : asprintf(&name, "%s", dir)) < 0)
			return NULL;
		if (access(name, F_OK) || asprintf(&proc, "%s/proc-%d.0", name, (int)child) < 0) {
			free(name);
			return NULL;
		}
		none = access(proc, F_OK);
		free(proc);
		if (!none)
			return name;
		free(name);
	}
}

static int status_of(int st)
{
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

static int run(char **argv, const char *path)
{
	static const int sigs[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
	struct sigaction sa = {.sa_handler = forward, .sa_flags = SA_RESTART};
	sigset_t block, old;
	int st;

	/* blocked until the handlers know the child */
	sigemptyset(&block);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigaddset(&block, sigs[i]);
	sigprocmask(SIG_BLOCK, &block, &old);
	child = fork();
	if (child < 0) {
		fprintf(stderr, "ptrace-record: cannot fork: %s\n", strerror(errno));
		return EXIT_CANNOT;
	}
	if (!child) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		execv(path, argv);
		fprintf(stderr, "ptrace-record: cannot run %s: %s\n", path, strerror(errno));
		_exit(errno == ENOENT ? EXIT_MISSING : EXIT_CANNOT);
	}
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		struct sigaction cur;

		/* what is ignored (nohup) stays ignored. A terminal sends its signals to the child, too:
		 * those only must not end this process first */
		sigaction(sigs[i], NULL, &cur);
		if (cur.sa_handler != SIG_IGN)
			sigaction(sigs[i], &sa, NULL);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	while (waitpid(child, &st, 0) < 0)
		if (errno != EINTR)
			return EXIT_CANNOT;
	return status_of(st);
}

static void say_where(const char *dir)
{
	char *real = expanded(dir), *run = taken(real);

	if (run || strstr(real, "%t"))
		fprintf(stderr, "ptrace-record: run directory %s\n", run ? run : real);
	else
		fprintf(stderr, "ptrace-record: nothing was recorded\n");
	free(run);
	free(real);
}

int main(int argc, char **argv)
{
	static const struct option opt[] = {
		{"mode", 1, NULL, 'm'},	  {"output", 1, NULL, 'o'},  {"cf", 1, NULL, 'c'},
		{"verify", 0, NULL, 'v'}, {"order", 0, NULL, 'O'},   {"quiet", 0, NULL, 'q'},
		{"help", 0, NULL, 'h'},	  {"version", 0, NULL, 'V'}, {0},
	};
	const char *dir = getenv("PTRACE_DIR"), *mode = NULL, *cf = NULL;
	char lib[4096], path[4096];
	int o, verify = 0, order = 0, quiet = 0, r;

	while ((o = getopt_long(argc, argv, "+m:o:qhV", opt, NULL)) != -1) {
		switch (o) {
		case 'm':
			mode = optarg;
			break;
		case 'o':
			dir = optarg;
			break;
		case 'c':
			cf = optarg;
			break;
		case 'v':
			verify = 1;
			break;
		case 'O':
			order = 1;
			break;
		case 'q':
			quiet = 1;
			break;
		case 'h':
			return usage(stdout, 0);
		case 'V':
			puts("ptrace-record 0.1");
			return 0;
		default:
			return usage(stderr, EXIT_USAGE);
		}
	}
	if (optind == argc)
		return usage(stderr, EXIT_USAGE);
	if (mode && strcmp(mode, "hifi")) {
		fprintf(stderr, "ptrace-record: mode %s: %s\n", mode,
			strcmp(mode, "fast") ? "unknown, use hifi"
					     : "not available in this version, use hifi");
		return EXIT_USAGE;
	}
	if (cf && strcmp(cf, "auto") && strcmp(cf, "full") && strcmp(cf, "pt") && strcmp(cf, "soft") &&
	    strcmp(cf, "replay")) {
		fprintf(stderr, "ptrace-record: --cf %s: unknown, use auto, full, pt, soft or replay\n", cf);
		return EXIT_USAGE;
	}
	if (find_library(lib, sizeof(lib))) {
		fprintf(stderr,
			"ptrace-record: cannot find libptrace_rt.so next to this program or in ../lib\n");
		return EXIT_CANNOT;
	}
	r = record_check(argv[optind], path, sizeof(path));
	if (r)
		return r;
	dir = absolute(dir && *dir ? dir : "run.dir");
	environment(lib, dir, mode, cf, verify, order);
	r = run(argv + optind, path);
	if (!quiet)
		say_where(dir);
	return r;
}
