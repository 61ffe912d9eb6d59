/* SPDX-License-Identifier: MIT
 *
 * tracee.c - starting a program so that two runs have equal addresses, and looking at it
 *
 * Two runs of a deterministic program differ only in what the kernel randomises: the
 * layout (personality ADDR_NO_RANDOMIZE) and the 16 AT_RANDOM bytes, from which libc
 * makes its stack canary, pointer guard and hash seeds. Both are fixed here, in the
 * same way for the oracle's run and for the run of the tracer under test.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracee.h"

struct map {
	uint64_t start, end;
	bool is_mutable;
};

static struct map *maps;
static size_t nmaps, maxmaps;
static bool maps_valid;

static void die(const char *what, const char *on)
{
	fprintf(stderr, "oracle: %s %s: %s\n", what, on, strerror(errno));
	exit(125);
}

static void child(char **argv, char **setenvs, int n, bool traceme)
{
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		die("cannot turn off address randomisation for", argv[0]);
	for (int i = 0; i < n; i++)
		putenv(setenvs[i]);
	/* A launched program is not traced: it would outlive a killed launcher. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (traceme && ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		die("cannot trace", argv[0]);
	raise(SIGSTOP);
	execvp(argv[0], argv);
	fprintf(stderr, "oracle: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static void fix_random(pid_t pid)
{
	static unsigned char bytes[16] = "\x11oracle's random";
	struct iovec local = {bytes, sizeof(bytes)}, remote;
	uint64_t at = tracee_auxv(pid, AT_RANDOM);

	if (!at)
		return;
	remote.iov_base = (void *)at;
	remote.iov_len = sizeof(bytes);
	if (process_vm_writev(pid, &local, 1, &remote, 1, 0) != sizeof(bytes))
		die("cannot write", "AT_RANDOM");
}

/* status: how the program stopped first. */
static void executed(pid_t pid, int status, const char *name)
{
	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	if (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
		fprintf(stderr, "oracle: %s: unexpected stop %#x at execve\n", name, status);
		exit(125);
	}
	fix_random(pid);
}

pid_t tracee_start(char **argv, char **setenvs, int n)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork for", argv[0]);
	if (pid == 0)
		child(argv, setenvs, n, true);
	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		die("lost before execve:", argv[0]);
	/* EXITKILL must go before a detach; PTRACE_DETACH drops all options with it. */
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0)
		die("cannot trace", argv[0]);
	if (ptrace(PTRACE_CONT, pid, 0, 0) < 0)
		die("cannot continue", argv[0]);
	if (waitpid(pid, &status, 0) < 0)
		die("lost at execve:", argv[0]);
	executed(pid, status, argv[0]);
	return pid;
}

pid_t tracee_seize(char **argv, char **setenvs, int n, long options)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork for", argv[0]);
	if (pid == 0)
		child(argv, setenvs, n, false);
	if (waitpid(pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
		die("lost before execve:", argv[0]);
	if (ptrace(PTRACE_SEIZE, pid, 0, options | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0 ||
	    kill(pid, SIGCONT) < 0)
		die("cannot trace", argv[0]);
	do { /* the stop it is in, SIGCONT */
		if (waitpid(pid, &status, 0) < 0)
			die("lost at execve:", argv[0]);
		if (WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_EXEC &&
		    ptrace(PTRACE_CONT, pid, 0, 0) < 0)
			die("cannot continue", argv[0]);
	} while (WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_EXEC);
	executed(pid, status, argv[0]);
	return pid;
}

uint64_t tracee_auxv(pid_t pid, uint64_t type)
{
	char path[64];
	Elf64_auxv_t av;
	uint64_t value = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("cannot read", path);
	while (read(fd, &av, sizeof(av)) == sizeof(av) && av.a_type != AT_NULL) {
		if (av.a_type == type)
			value = av.a_un.a_val;
	}
	close(fd);
	return value;
}

/* Where the initial environment strings are: fields 50 and 51 of proc_pid_stat(5). */
static bool env_range(pid_t pid, uint64_t *start, uint64_t *end)
{
	char buf[4096], path[64], *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	buf[n] = 0;
	p = strrchr(buf, ')'); /* the name may contain anything; it is field 2 */
	for (int field = 2; p && field < 50; field++)
		p = strchr(p + 1, ' ');
	return p && sscanf(p, "%lu %lu", start, end) == 2;
}

static size_t read_block(pid_t pid, uint64_t addr, void *buf, size_t n)
{
	struct iovec local = {buf, n}, remote = {(void *)addr, n};
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return got < 0 ? 0 : got;
}

void tracee_env_disarm(pid_t pid)
{
	static const char armed[] = "PTRACE_ORACLE=1";
	uint64_t start, end;
	char *env, *at;
	size_t n;

	if (!env_range(pid, &start, &end) || end <= start)
		return;
	n = end - start;
	env = malloc(n);
	if (!env || read_block(pid, start, env, n) != n)
		die("cannot read", "the environment");
	at = memmem(env, n, armed, sizeof(armed));
	while (at && at != env && at[-1])
		at = memmem(at + 1, n - (at + 1 - env), armed, sizeof(armed));
	if (at) {
		struct iovec local = {"0", 1};
		struct iovec remote = {(void *)(start + (at - env) + sizeof(armed) - 2), 1};

		if (process_vm_writev(pid, &local, 1, &remote, 1, 0) != 1)
			die("cannot write", "the environment");
	}
	free(env);
}

size_t tracee_read(pid_t pid, uint64_t addr, void *buf, size_t n)
{
	size_t first = 4096 - (addr & 4095);
	struct iovec local[2], remote[2];
	ssize_t got;

	/* Two pieces, so that an unmapped second page still gives the first. */
	if (first > n)
		first = n;
	local[0] = (struct iovec){buf, n};
	remote[0] = (struct iovec){(void *)addr, first};
	remote[1] = (struct iovec){(void *)(addr + first), n - first};
	got = process_vm_readv(pid, local, 1, remote, n > first ? 2 : 1, 0);
	return got < 0 ? 0 : got;
}

static void read_maps(pid_t pid)
{
	char line[4352], path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		die("cannot read", path);
	nmaps = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		char prot[8];

		if (sscanf(line, "%lx-%lx %7s", &start, &end, prot) != 3 || prot[2] != 'x')
			continue;
		if (nmaps == maxmaps) {
			maxmaps = maxmaps ? 2 * maxmaps : 64;
			maps = realloc(maps, maxmaps * sizeof(*maps));
			if (!maps)
				die("no memory for", path);
		}
		/* A shared mapping may have a writable twin elsewhere. */
		maps[nmaps++] = (struct map){start, end, prot[1] == 'w' || prot[3] == 's'};
	}
	fclose(f);
	maps_valid = true;
}

bool tracee_code_is_mutable(pid_t pid, uint64_t addr)
{
	if (!maps_valid)
		read_maps(pid);
	for (size_t i = 0; i < nmaps; i++) {
		if (addr >= maps[i].start && addr < maps[i].end)
			return maps[i].is_mutable;
	}
	return true;
}

void tracee_maps_changed(void)
{
	maps_valid = false;
}

bool tracee_catches(pid_t pid, int sig)
{
	char line[256], path[64];
	unsigned long mask = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "SigCgt: %lx", &mask) == 1)
			break;
	}
	fclose(f);
	return mask >> (sig - 1) & 1;
}
