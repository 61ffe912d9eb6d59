// SPDX-License-Identifier: MIT
// BREAKS: the program's descriptors are its own: /proc/self/fd lists what it opened, the lowest free number is
// the lowest free number; in threads and children, too.
// BUILD: cc -O2 -pthread
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int inherited;

static int count(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d);
	closedir(d);
	return n;
}

static void check_fds(int open_now)
{
	int fd = open("/dev/null", O_RDONLY), lowest = 0;

	CHECK(fd >= 0);
	close(fd);
	while (fcntl(lowest, F_GETFD) >= 0)
		lowest++;
	CHECK(fd == lowest && count() == inherited + open_now);
}

static void *run(void *arg)
{
	int fd = open("/dev/null", O_RDONLY);

	check_fds(1);
	close(fd);
	return arg;
}

int main(void)
{
	pthread_t t;
	int st;
	pid_t pid;

	inherited = count();
	for (int i = 0; i < 3; i++) {
		check_fds(0);
		CHECK(!pthread_create(&t, NULL, run, NULL));
		CHECK(!pthread_join(t, NULL));
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			check_fds(0);
			_exit(0);
		}
		CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	}
	printf("sys_fds %d\n", inherited);
	return 0;
}
