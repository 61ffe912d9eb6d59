// SPDX-License-Identifier: MIT
// BREAKS: a signal between a value that is logged (or handed to the processor's trace) and the instruction before or
// behind it; a signal that waits for a handler's return and comes at once, where the processor never was. Slow enough
// for the simulator of Intel PT: the next signal is asked for by the last one's handler.
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define TICKS 60

struct node {
	struct node *next;
	long v;
	unsigned char c;
	short s;
};
static struct node node[64];
static volatile sig_atomic_t ticks;
static volatile long sink;

static void arm(void)
{
	struct itimerval it = {{0, 0}, {0, 2000}};

	setitimer(ITIMER_REAL, &it, NULL);
}

static void handler(int sig)
{
	(void)sig;
	for (struct node *p = &node[ticks & 31]; p != &node[40]; p = p->next)
		sink += p->c;
	ticks++;
	arm();
}

static __attribute__((noinline)) long walk(const struct node *p, int k, long *tab)
{
	long h = 0;

	while (k--) {
		h = h * 31 + p->v;
		tab[p->c] += p->s;
		tab[(h >> 3) & 63]++;
		p = p->next;
	}
	return h;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
	static long tab[256];
	long want[64], bad = 0;

	for (int i = 0; i < 64; i++)
		node[i] =
			(struct node){&node[(i + 7) % 64], i * 1001, (unsigned char)(i * 5), (short)(i - 30)};
	for (int i = 0; i < 64; i++)
		want[i] = walk(&node[i], 50, tab);
	sigaction(SIGALRM, &sa, NULL);
	arm();
	for (int i = 0; ticks < TICKS; i = (i + 1) & 63)
		bad += walk(&node[i], 50, tab) != want[i];
	printf("%s\n", bad ? "wrong" : "right");
	return bad != 0;
}
