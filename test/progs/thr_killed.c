// SPDX-License-Identifier: MIT
// BREAKS: SIGKILL from a child while four threads compute: no thread gets to run anything of ours, yet what
// each had logged is there.
// BUILD: cc -O2 -pthread
// STATUS: 137
// KILLED: yes
#include <pthread.h>
#include <signal.h>

#include "check.h"

static volatile unsigned turns[4];

static void *spin(void *arg)
{
	for (unsigned n = 0;; n++) {
		work(n, 50);
		turns[(long)arg]++;
	}
	return NULL;
}

int main(void)
{
	pid_t me = getpid();
	pthread_t t;

	printf("thr_killed\n");
	fflush(stdout);
	for (long i = 0; i < 3; i++)
		CHECK(!pthread_create(&t, NULL, spin, (void *)i));
	for (int i = 0; i < 3; i++)
		while (turns[i] < 100)
			usleep(100);
	if (!fork()) {
		usleep(2000);
		kill(me, SIGKILL);
		_exit(0);
	}
	spin((void *)3l);
	return 1;
}
