// SPDX-License-Identifier: MIT
// BREAKS: who am I: process, thread, parent and group numbers, by libc, by hand and by /proc, in main, a thread
// and a forked child; there are no threads and no children but the program's.
// BUILD: cc -O2 -pthread
// PT_LONG: yes
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static long status(const char *what)
{
	char line[256];
	long v = -1;
	FILE *f = fopen("/proc/thread-self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)))
			v = atol(line + strlen(what));
	fclose(f);
	return v;
}

static void check_ids(pid_t parent, int threads)
{
	char self[32], want[32];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	CHECK(n > 0);
	self[n] = 0;
	snprintf(want, sizeof(want), "%d", getpid());
	CHECK(!strcmp(self, want));
	CHECK(getpid() == syscall(SYS_getpid) && getppid() == syscall(SYS_getppid) && getppid() == parent);
	CHECK(status("Tgid:") == getpid() && status("Pid:") == syscall(SYS_gettid));
	CHECK(status("PPid:") == parent && (status("TracerPid:") == 0 || simulated()));
	CHECK(entries("/proc/self/task") == threads && status("Threads:") == threads);
}

static void *run(void *arg)
{
	CHECK(syscall(SYS_gettid) != getpid());
	check_ids(*(pid_t *)arg, 2);
	return NULL;
}

static long children(void)
{
	char line[256] = "", path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	if (!f)
		return 0; /* not in this kernel */
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	return strlen(line);
}

int main(void)
{
	pid_t parent = getppid(), me = getpid(), pid;
	pthread_t t;
	int st;

	check_ids(parent, 1);
	CHECK(children() == 0 && wait(&st) == -1 && errno == ECHILD);
	CHECK(!pthread_create(&t, NULL, run, &parent));
	CHECK(!pthread_join(t, NULL));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(getpid() == syscall(SYS_gettid) && children() == 0);
		check_ids(me, 1);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(children() == 0);
	printf("sys_ids\n");
	return 0;
}
