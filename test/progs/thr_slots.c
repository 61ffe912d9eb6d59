// SPDX-License-Identifier: MIT
// BREAKS: processes that end while threads of theirs compute: what the tracer keeps for those threads is free again. There is room
// for some sixty at once here, several times as many come and go.
// BUILD: cc -O2 -pthread
// STATUS: 4
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "turns.h"

int main(int argc, char **argv)
{
	struct rlimit file = {160 << 20, 160 << 20}; // the ring is a file, too
	pthread_t t;
	int st;

	if (argc == 1) {
		CHECK(!setrlimit(RLIMIT_FSIZE, &file));
		execl("/proc/self/exe", argv[0], "limited", (char *)NULL);
		CHECK(!"exec");
	}
	for (int i = 0, n = simulated() ? 20 : 60; i < n; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			for (long k = 0; k < SPINNERS; k++)
				CHECK(!pthread_create(&t, NULL, spin, (void *)k));
			for (int k = 0; k < SPINNERS; k++)
				while (turns[k] < 2)
					usleep(100);
			exit(3);
		}
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 3);
	}
	printf("thr_slots\n");
	return 4;
}
