// SPDX-License-Identifier: MIT
// BREAKS: cancellation and pthread_exit unwind through C++ frames: destructors and cleanup handlers run in
// order, catch (...) sees them and throws on.
// BUILD: c++ -O2 -pthread
#include <cstdio>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static long order;
static sem_t ready, never;

struct Guard {
	long v;
	~Guard() { order = order * 10 + v; }
};

static void note(void *arg)
{
	order = order * 10 + (long)arg;
}

static void __attribute__((noinline)) deep(int n, bool leave)
{
	Guard g{ n };

	if (n) {
		deep(n - 1, leave);
		return;
	}
	pthread_cleanup_push(note, (void *)7l);
	if (leave)
		pthread_exit((void *)5l);
	sem_post(&ready);
	sem_wait(&never);
	pthread_cleanup_pop(0);
}

static void *run(void *arg)
{
	Guard g{ 8 };

	try {
		deep(3, arg != nullptr);
	} catch (...) {
		order = order * 10 + 9;
		throw;
	}
	return nullptr;
}

int main()
{
	pthread_t t;
	void *r[2];
	long first;

	sem_init(&ready, 0, 0);
	sem_init(&never, 0, 0);
	pthread_create(&t, nullptr, run, nullptr);
	while (sem_wait(&ready))
		;
	pthread_cancel(t);
	pthread_join(t, &r[0]);
	first = order;
	order = 0;
	pthread_create(&t, nullptr, run, (void *)1l);
	pthread_join(t, &r[1]);
	std::printf("stk_cancel_unwind %ld %d %ld %ld\n", first, r[0] == PTHREAD_CANCELED, order, (long)r[1]);
	return 0;
}
