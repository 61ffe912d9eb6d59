// SPDX-License-Identifier: MIT
// BREAKS: exec by a thread while main and another thread compute: the kernel ends them all, and the thread that
// called goes on under the process's number.
// BUILD: cc -O2 -pthread
// STATUS: 5
#include <pthread.h>

#include "turns.h"

static void *leave(void *arg)
{
	char pid[16];

	(void)arg;
	snprintf(pid, sizeof(pid), "%d", getpid());
	while (turns[0] < 50 || turns[1] < 50)
		usleep(100);
	execl("/proc/self/exe", "proc_exec_thread", pid, (char *)NULL);
	CHECK(!"exec");
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc > 1) {
		CHECK(atoi(argv[1]) == getpid() && syscall(SYS_gettid) == getpid());
		printf("proc_exec_thread %x\n", work(5, 200));
		return 5;
	}
	CHECK(!pthread_create(&t, NULL, spin, (void *)0l));
	CHECK(!pthread_create(&t, NULL, leave, NULL));
	spin((void *)1l);
	return 1;
}
