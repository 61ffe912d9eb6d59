// SPDX-License-Identifier: MIT
// BREAKS: exceptions thrown behind a fork through the frames of callers from before it, which a recording for a replay has
// left behind: past some, caught by others, thrown on, and in the end out of a handler of a signal.
// BUILD: c++ -O2 -fnon-call-exceptions
// PT_LONG: yes
// THREADS: 4
// VARIANTS: O0 clang
#include <csignal>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static unsigned long sum = 1;
static volatile unsigned long zero;

struct Guard {
	unsigned long v;
	~Guard() { sum = sum * 31 + v; }
};

static void split()
{
	int st;
	pid_t pid = fork();

	if (!pid)
		_exit(5);
	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 5);
}

/* called by a pointer: clang knows no exceptions of instructions that are no calls */
static unsigned long quotient(unsigned long a, unsigned long b) { return a / b; }
static unsigned long (*volatile divide)(unsigned long, unsigned long) = quotient;

static void handler(int)
{
	Guard g{ 77 };

	split();
	throw std::logic_error("signal");
}

static void __attribute__((noinline)) deep(int n, unsigned long *p)
{
	Guard g{ p[n] };

	if (!n) {
		split();
		throw std::runtime_error("deep");
	}
	try {
		deep(n - 1, p + 1);
	} catch (const std::runtime_error &e) {
		sum = sum * 7 + p[1] + e.what()[0];
		if (n % 2)
			throw;
		throw std::runtime_error(std::string(e.what()) + "er");
	}
}

int main()
{
	unsigned long v[20];

	for (int i = 0; i < 20; i++)
		v[i] = sum = sum * 6364136223846793005ul + 1442695040888963407ul;
	try {
		deep(6, v);
	} catch (const std::runtime_error &e) {
		sum = sum * 7 + std::string(e.what()).size();
	}
	signal(SIGFPE, handler);
	for (int i = 0; i < 2; i++) {
		try {
			sigset_t none;

			sigemptyset(&none);
			sigprocmask(SIG_SETMASK, &none, nullptr);
			sum += divide(v[3], zero);
		} catch (const std::logic_error &e) {
			sum = sum * 7 + e.what()[1];
		}
	}
	printf("proc_fork_throw %lx\n", sum);
	return 0;
}
