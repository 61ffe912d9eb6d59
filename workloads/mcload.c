// SPDX-License-Identifier: MIT
/*
 * mcload - a load for memcached: gets and sets over several connections on the loopback
 *
 *	mcload PORT CONNECTIONS OPERATIONS
 *
 * Nine gets to one set, 10,000 keys, values of 100 bytes; every connection waits for its answer before it asks again. Prints
 * how many operations a second were answered. Exit status: 0; 1 an answer is missing or wrong; 2 wrong use.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 256
#define KEYS 10000
#define VALUE 100

struct conn {
	char in[512];
	size_t n;
	int set; /* what was asked for */
};

static struct pollfd fd[MAX_CONNECTIONS];
static struct conn conn[MAX_CONNECTIONS];
static uint64_t seed = 1;

static void fail(const char *what)
{
	fprintf(stderr, "mcload: %s\n", what);
	exit(1);
}

static uint32_t rnd(uint32_t limit)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((seed >> 32) * limit >> 32);
}

static int connected(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof(a)))
		fail("cannot connect");
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return s;
}

static void ask(int i, bool set, uint32_t key)
{
	char out[256];
	int n;

	if (set)
		n = snprintf(out, sizeof(out), "set key:%05u 0 0 %d\r\n%0*u\r\n", key, VALUE, VALUE, key);
	else
		n = snprintf(out, sizeof(out), "get key:%05u\r\n", key);
	conn[i].set = set;
	conn[i].n = 0;
	if (write(fd[i].fd, out, (size_t)n) != n)
		fail("cannot send");
}

/* a complete answer */
static bool answered(int i)
{
	struct conn *c = &conn[i];
	ssize_t n = read(fd[i].fd, c->in + c->n, sizeof(c->in) - 1 - c->n);

	if (n <= 0)
		fail("the connection ended");
	c->n += (size_t)n;
	c->in[c->n] = 0;
	if (c->set && c->n >= 8 && strncmp(c->in, "STORED\r\n", 8))
		fail("a set was refused");
	if (!c->set && c->n >= 5 && strncmp(c->in, "VALUE", 5))
		fail("a key is missing");
	return c->set ? c->n >= 8 : c->n >= 5 && !strcmp(c->in + c->n - 5, "END\r\n");
}

int main(int argc, char **argv)
{
	int port = argc == 4 ? atoi(argv[1]) : 0, n = argc == 4 ? atoi(argv[2]) : 0;
	long todo = argc == 4 ? atol(argv[3]) : 0, done = 0, asked = 0;
	struct timespec a, b;

	if (port < 1 || port > 65535 || n < 1 || n > MAX_CONNECTIONS || todo < 1) {
		fprintf(stderr, "usage: mcload PORT CONNECTIONS OPERATIONS\n");
		return 2;
	}
	for (int i = 0; i < n; i++)
		fd[i] = (struct pollfd){.fd = connected(port), .events = POLLIN};
	for (uint32_t k = 0; k < KEYS; k++) {
		ask(0, true, k);
		while (!answered(0))
			;
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (; asked < n; asked++)
		ask((int)asked, false, rnd(KEYS));
	while (done < todo) {
		if (poll(fd, (nfds_t)n, 10000) <= 0)
			fail("no answer within 10 s");
		for (int i = 0; i < n; i++)
			if (fd[i].revents && answered(i)) {
				done++;
				if (asked++ < todo)
					ask(i, !rnd(10), rnd(KEYS));
			}
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.0f\n",
	       (double)done / ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9));
	return 0;
}
