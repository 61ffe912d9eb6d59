// SPDX-License-Identifier: MIT
// BREAKS: a prefork server: four children take requests from one socket until it closes, the parent is the
// client.
// BUILD: cc -O2
// THREADS: 5
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"

struct msg {
	unsigned n, answer;
};

static void serve(int fd)
{
	struct msg m;

	while (recv(fd, &m, sizeof(m), 0) == sizeof(m) && m.n != ~0u) {
		m.answer = work(m.n, 100);
		CHECK(send(fd, &m, sizeof(m), 0) == sizeof(m));
	}
	_exit(0);
}

int main(void)
{
	static unsigned answers[100];
	struct msg m;
	unsigned s = 0;
	int sv[2], st;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			close(sv[0]);
			serve(sv[1]);
		}
	}
	close(sv[1]);
	for (unsigned i = 0; i < 100; i++) {
		m = (struct msg){ i, 0 };
		CHECK(send(sv[0], &m, sizeof(m), 0) == sizeof(m));
		if (i < 8) /* several under way */
			continue;
		CHECK(recv(sv[0], &m, sizeof(m), 0) == sizeof(m) && m.n < 100);
		answers[m.n] = m.answer;
	}
	for (int i = 0; i < 8; i++) {
		CHECK(recv(sv[0], &m, sizeof(m), 0) == sizeof(m) && m.n < 100);
		answers[m.n] = m.answer;
	}
	m.n = ~0u;
	for (int i = 0; i < 4; i++)
		CHECK(send(sv[0], &m, sizeof(m), 0) == sizeof(m));
	for (int i = 0; i < 4; i++)
		CHECK(wait(&st) > 0 && st == 0);
	for (unsigned i = 0; i < 100; i++) {
		CHECK(answers[i] == work(i, 100));
		s = s * 31 + answers[i];
	}
	printf("proc_prefork %x\n", s);
	return 0;
}
