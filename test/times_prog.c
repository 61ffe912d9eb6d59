// SPDX-License-Identifier: MIT
/*
 * times_prog.c - two threads that hand a turn to each other by futex and write what the time stamp counter says into the
 * slots of an array, in order. Between two slots is a loop without an access to memory, of another length each time.
 *
 * Prints where the array is and what is in it: test/pt_times.sh compares that with the times of the decoded records.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#define TURNS 24
#define PER_TURN 5

static uint64_t slot[TURNS * PER_TURN];
static uint32_t turn;

static void spin(uint32_t n)
{
	/* the simulator stops at every branch: few of them */
	__asm__ volatile("1: .rept 10\n nop\n .endr\n dec %0\n jnz 1b" : "+r"(n));
}

static void take_turns(uint32_t me)
{
	uint32_t now;

	for (uint32_t t = me; t < TURNS; t += 2) {
		while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != t)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL);
		for (uint32_t i = t * PER_TURN; i < (t + 1) * PER_TURN; i++) {
			spin(20 + i * 137 % 381);
			slot[i] = __rdtsc();
		}
		__atomic_store_n(&turn, t + 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1);
	}
}

static void *other(void *arg)
{
	take_turns(1);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argv;
	if (argc > 1) { /* just the time */
		printf("%lu\n", (unsigned long)__rdtsc());
		return 0;
	}
	if (pthread_create(&t, NULL, other, NULL))
		return 1;
	take_turns(0);
	pthread_join(t, NULL);
	printf("%lx\n", (unsigned long)(uintptr_t)slot);
	for (int i = 0; i < TURNS * PER_TURN; i++)
		printf("%lu\n", (unsigned long)slot[i]);
	return 0;
}
