// SPDX-License-Identifier: MIT
// BREAKS: sessions, process groups and a pseudo-terminal as a login shell has: job control, foreground, hangup
// ends the child.
// BUILD: cc -O2
// KILLED: yes
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "check.h"

int main(void)
{
	int m = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), st, s;
	char buf[256], *name;
	struct termios t;
	ssize_t n;
	pid_t pid;

	if (m < 0)
		SKIP("proc_session", "no pseudo-terminals");
	CHECK(!grantpt(m) && !unlockpt(m) && (name = ptsname(m)));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(m); /* or it never hangs up */
		signal(SIGHUP, SIG_DFL); /* ignored under nohup(1) */
		CHECK(setsid() == getpid());
		s = open(name, O_RDWR);
		CHECK(s >= 0 && tcgetpgrp(s) == getpgrp());
		CHECK(!tcgetattr(s, &t));
		t.c_lflag &= ~(tcflag_t)ECHO;
		CHECK(!tcsetattr(s, TCSANOW, &t));
		CHECK(write(s, "ready\n", 6) == 6);
		n = read(s, buf, sizeof(buf));
		CHECK(n == 6 && !memcmp(buf, "hello\n", 6));
		CHECK(write(s, "again\n", 6) == 6);
		for (unsigned i = 0;; i++)
			usleep(work(i, 10) & 127); /* until the terminal hangs up */
	}
	for (n = 0; n < 7;) {
		ssize_t k = read(m, buf + n, sizeof(buf) - n);

		CHECK(k > 0);
		n += k;
	}
	CHECK(!memcmp(buf, "ready\r\n", 7));
	CHECK(write(m, "hello\n", 6) == 6);
	for (n = 0; n < 7;) {
		ssize_t k = read(m, buf + n, sizeof(buf) - n);

		CHECK(k > 0);
		n += k;
	}
	CHECK(!memcmp(buf, "again\r\n", 7));
	close(m);
	CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st));
	printf("proc_session %s\n", strsignal(WTERMSIG(st)));
	return 0;
}
