// SPDX-License-Identifier: MIT
// BREAKS: an event loop: epoll over pipes, eventfd, timerfd and signalfd, edge and level, with another thread
// that feeds it; blocking calls with a timeout in the middle of traced code.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "check.h"

static int ev, pipe_fd[2];

static void *feed(void *arg)
{
	for (int i = 1; i <= 20; i++) {
		unsigned v = work(i, 20);

		CHECK(write(pipe_fd[1], &v, sizeof(v)) == sizeof(v));
		CHECK(eventfd_write(ev, i) == 0);
		if (i % 5 == 0)
			CHECK(!kill(getpid(), SIGUSR1));
		usleep(200);
	}
	close(pipe_fd[1]);
	return arg;
}

int main(void)
{
	struct itimerspec it = { { 0, 1000000 }, { 0, 1000000 } };
	struct epoll_event e[4], add = { .events = EPOLLIN };
	int ep = epoll_create1(0), sig, tm, eof = 0;
	unsigned long total = 0, ticks = 0, signals = 0;
	unsigned s = 0, n = 0;
	sigset_t usr;
	pthread_t t;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &usr, NULL));
	CHECK(!pipe(pipe_fd) && (ev = eventfd(0, EFD_NONBLOCK)) >= 0 && (sig = signalfd(-1, &usr, 0)) >= 0);
	CHECK((tm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)) >= 0 && !timerfd_settime(tm, 0, &it, NULL));
	for (int i = 0; i < 4; i++) {
		add.data.fd = (int[]){ pipe_fd[0], ev, sig, tm }[i];
		CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, add.data.fd, &add));
	}
	CHECK(!pthread_create(&t, NULL, feed, NULL));
	while (!eof || !ticks || total < 210 || !signals) {
		int k = epoll_wait(ep, e, 4, 1000);

		CHECK(k > 0);
		for (int i = 0; i < k; i++) {
			struct signalfd_siginfo si;
			eventfd_t v = 0;

			if (e[i].data.fd == pipe_fd[0]) {
				unsigned x;

				if (read(pipe_fd[0], &x, sizeof(x)) != sizeof(x)) {
					eof = 1;
					CHECK(!epoll_ctl(ep, EPOLL_CTL_DEL, pipe_fd[0], NULL));
					continue;
				}
				s = s * 31 + x;
				n++;
			} else if (e[i].data.fd == ev) {
				if (!eventfd_read(ev, &v))
					total += v;
			} else if (e[i].data.fd == tm) {
				ticks += read(tm, &v, 8) == 8;
			} else {
				CHECK(read(sig, &si, sizeof(si)) == sizeof(si) && si.ssi_signo == SIGUSR1);
				signals++;
			}
		}
	}
	CHECK(!pthread_join(t, NULL));
	printf("sys_events %x %u %lu\n", s, n, total);
	return 0;
}
