// SPDX-License-Identifier: MIT
// BREAKS: one counter under eight threads, by every locked instruction: nothing may run twice, or half.
// BUILD: cc -O2 -pthread -mcx16
// PT_LONG: yes
// THREADS: 9
// VARIANTS: clang
#include <pthread.h>

#include "check.h"

#define T 8
#define N 4000

static unsigned long add, inc, xadd, cas, xchg_sum, bits[N / 64 + 1], locked;
static unsigned long slot = 1;
static int word;

static void *run(void *arg)
{
	unsigned long held = 0, old;

	(void)arg;
	for (unsigned long i = 0; i < N; i++) {
		__asm__ volatile("lock addq $3, %0" : "+m"(add));
		__asm__ volatile("lock incq %0" : "+m"(inc));
		__atomic_fetch_add(&xadd, i, __ATOMIC_SEQ_CST);
		old = __atomic_load_n(&cas, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&cas, &old, old + 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		held = __atomic_exchange_n(&slot, held, __ATOMIC_SEQ_CST); /* a one travels */
		__asm__ volatile("lock btsq %1, %0" : "+m"(bits[0]) : "r"(i) : "memory", "cc");
		while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE))
			__builtin_ia32_pause();
		locked++;
		__atomic_store_n(&word, 0, __ATOMIC_RELEASE);
	}
	__atomic_fetch_add(&xchg_sum, held, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(void)
{
	unsigned long set = 0;
	pthread_t t[T];

	for (long i = 0; i < T; i++)
		CHECK(!pthread_create(&t[i], NULL, run, NULL));
	for (int i = 0; i < T; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (int i = 0; i < N; i++)
		set += bits[i / 64] >> i % 64 & 1;
	CHECK(add == 3ul * T * N && inc == (unsigned long)T * N && cas == 2ul * T * N && locked == (unsigned long)T * N);
	CHECK(xchg_sum + slot == 1 && set == N);
	printf("thr_atomics %lu %lu %lu %lu %lu\n", add, inc, xadd, cas, locked);
	return 0;
}
