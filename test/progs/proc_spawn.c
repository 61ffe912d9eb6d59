// SPDX-License-Identifier: MIT
// BREAKS: posix_spawn: clone with CLONE_VM | CLONE_VFORK and a stack of its own; file actions and attributes
// run in the child, in our memory; a program that is not there.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "check.h"

extern char **environ;

int main(void)
{
	char *argv[] = { "sh", "-c", "read x; echo \"got $x\"; exit 6", NULL }, buf[64];
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	int in[2], out[2], st, err;
	sigset_t none;
	ssize_t n;
	pid_t pid;

	CHECK(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in[0], 0);
	posix_spawn_file_actions_adddup2(&fa, out[1], 1);
	posix_spawn_file_actions_addchdir_np(&fa, "/");
	posix_spawnattr_init(&at);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&at, &none);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	CHECK(!posix_spawn(&pid, "/bin/sh", &fa, &at, argv, environ));
	close(in[0]);
	close(out[1]);
	CHECK(write(in[1], "words\n", 6) == 6);
	n = read(out[0], buf, sizeof(buf) - 1);
	CHECK(n > 0);
	buf[n - 1] = 0;
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	err = posix_spawnp(&pid, "no-such-program-here", NULL, NULL, argv, environ);
	printf("proc_spawn %s %d %s\n", buf, WEXITSTATUS(st), strerror(err));
	return 0;
}
