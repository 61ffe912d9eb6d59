// SPDX-License-Identifier: MIT
// BREAKS: a program that lowers its own limits on files, file size, locked memory and address space to what it
// has: threads and children after that need no more than they do untraced.
// BUILD: cc -O2 -pthread
// THREADS: 7
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

static void *run(void *arg)
{
	return (void *)(unsigned long)work((long)arg, 3000);
}

static void limit(int what, rlim_t n)
{
	struct rlimit r = { n, n };

	CHECK(!setrlimit(what, &r));
}

int main(void)
{
	char path[] = "/tmp/proc_rlimit.XXXXXX";
	int fd = mkstemp(path), st;
	pthread_attr_t a;
	unsigned s = 0;
	pthread_t t;
	pid_t pid;
	void *r;

	CHECK(fd >= 0 && !unlink(path));
	signal(SIGXFSZ, SIG_IGN);
	limit(RLIMIT_NOFILE, 5);
	limit(RLIMIT_FSIZE, 100);
	limit(RLIMIT_MEMLOCK, 0);
	limit(RLIMIT_CORE, 0);
	CHECK(open("/dev/null", O_RDONLY) == 4 && open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
	close(4);
	for (int i = 0; i < 10; i++)
		s += write(fd, "0123456789abcdef", 16) == 16;
	CHECK(s == 6);
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (long i = 0; i < 3; i++) {
		CHECK(!pthread_create(&t, &a, run, (void *)i));
		CHECK(!pthread_join(t, &r));
		s = s * 31 + (unsigned)(unsigned long)r;
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(work(i, 3000) & 63);
		CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
		s = s * 31 + WEXITSTATUS(st);
	}
	printf("proc_rlimit %x\n", s);
	return 0;
}
