// SPDX-License-Identifier: MIT
// BREAKS: what the kernel writes into the program's memory and the program then uses as an index: read into the
// stack, scattered reads, messages with control data, getdents, another process's memory, clone's thread ids,
// time from system calls, a signal set.
// BUILD: cc -O2
// ORACLE: yes
// VARIANTS: O0 clang
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

static unsigned table[256];

static unsigned use(const void *p, size_t n)
{
	const unsigned char *c = p;
	unsigned s = 0;

	for (size_t i = 0; i < n; i++)
		s = s * 31 + table[c[i]]++ + c[i];
	return s;
}

static unsigned by_read(int in, int out)
{
	unsigned char idx[8], t[256] = { 0 };
	unsigned s = 0;

	for (int r = 0; r < 10; r++) {
		for (int i = 0; i < 8; i++)
			idx[i] = work(r * 8 + i, 2);
		CHECK(write(out, idx, 8) == 8);
		memset(idx, 0xff, 8);
		CHECK(read(in, idx, 8) == 8);
		for (int i = 0; i < 8; i++)
			s = s * 31 + t[idx[i]]++;
	}
	return s;
}

static unsigned by_message(void)
{
	char a[3], b[5], ctl[CMSG_SPACE(sizeof(int))], c = 0;
	struct iovec out = { "message", 7 }, in[2] = { { a, 3 }, { b, 5 } };
	struct msghdr m = { .msg_iov = &out, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl) };
	int sv[2], fd[2], got;

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) && !pipe(fd));
	memset(ctl, 0, sizeof(ctl));
	CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd[1], sizeof(int));
	CHECK(sendmsg(sv[0], &m, 0) == 7);
	m.msg_iov = in;
	m.msg_iovlen = 2;
	memset(ctl, 0, sizeof(ctl));
	CHECK(recvmsg(sv[1], &m, 0) == 7);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	CHECK(got > fd[1] && write(got, "y", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'y');
	close(got);
	close(fd[0]);
	close(fd[1]);
	close(sv[0]);
	close(sv[1]);
	return use(a, 3) + use(b, 4) + table[got & 3];
}

static unsigned by_peer(void)
{
	unsigned char far[32], near[32];
	struct iovec l = { near, 32 }, r = { far, 32 };
	int go[2], st;
	pid_t pid;

	for (int i = 0; i < 32; i++)
		far[i] = work(i, 2);
	CHECK(!pipe(go));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) { /* holds the same bytes at the same address */
		(void)!read(go[0], near, 1);
		_exit(near[0]);
	}
	memset(far, 0, sizeof(far));
	CHECK(process_vm_readv(pid, &l, 1, &r, 1, 0) == 32);
	CHECK(write(go[1], near, 1) == 1);
	CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == near[0]);
	close(go[0]);
	close(go[1]);
	return use(near, 32);
}

static unsigned by_kernel(void)
{
	sigset_t set, old;
	int sv[2], len;
	socklen_t n = sizeof(len);

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL) && !sigprocmask(SIG_SETMASK, NULL, &old));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	CHECK(!getsockopt(sv[0], SOL_SOCKET, SO_TYPE, &len, &n));
	close(sv[0]);
	close(sv[1]);
	return use(&old, 8) + table[len & 255] + use(&len, 4);
}

static unsigned by_dents(void)
{
	char buf[1024];
	unsigned s = 0;
	long n;
	int fd = open("/proc/self/ns", O_RDONLY | O_DIRECTORY); /* the same names in every run */

	CHECK(fd >= 0);
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			unsigned short len;

			memcpy(&len, buf + at + 16, 2);
			s += work(buf[at + 19], 3) + table[buf[at + 19] & 255]; /* in whatever order */
			at += len;
		}
	}
	CHECK(!n);
	close(fd);
	return s;
}

int main(void)
{
	unsigned s;
	int fd[2];

	CHECK(!pipe(fd));
	s = by_read(fd[0], fd[1]);
	s = s * 31 + by_message();
	s = s * 31 + by_peer();
	s = s * 31 + by_kernel();
	s = s * 31 + by_dents();
	printf("sys_writes %x\n", s);
	return 0;
}
