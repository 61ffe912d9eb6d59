// SPDX-License-Identifier: MIT
// BREAKS: exceptions on stacks that are not the thread's: thrown and caught within fibers in turn, carried to
// another stack and thrown there again, out of threads.
// BUILD: c++ -O2 -pthread
// PT_LONG: yes
// VARIANTS: O0 clang
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "fiber.h"

static char stacks[2][65536] __attribute__((aligned(16)));
static void *sp[2], *home;
static int current;
static unsigned long sum;
static std::exception_ptr carried;

struct Guard {
	long v;
	~Guard() { sum = sum * 3 + v; }
};

static void __attribute__((noinline)) thrower(int depth, long v)
{
	Guard g{ v };

	if (!depth)
		throw std::runtime_error("f" + std::to_string(v));
	thrower(depth - 1, v + depth);
}

static void yield(int id)
{
	fiber_switch(&sp[id], home);
}

static void body()
{
	int id = current;

	for (long i = 0;; i++) {
		try {
			Guard g{ i };
			thrower(3, i * 10 + id);
		} catch (const std::exception &e) {
			sum += e.what()[1];
			if (i == 2)
				carried = std::current_exception();
		}
		yield(id);
	}
}

int main()
{
	int caught = 0;

	for (int i = 0; i < 2; i++)
		sp[i] = fiber_new(stacks[i], sizeof(stacks[i]), body);
	for (int i = 0; i < 12; i++) {
		current = i & 1;
		fiber_switch(&home, sp[current]);
		if (carried) {
			try {
				std::rethrow_exception(carried);
			} catch (const std::exception &e) {
				caught += e.what()[0] + (int)std::string(e.what()).size();
			}
			carried = nullptr;
		}
	}
	std::thread([&] {
		try {
			thrower(5, 7);
		} catch (const std::exception &) {
			carried = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(carried);
	} catch (const std::exception &e) {
		caught += e.what()[0];
	}
	std::printf("stk_exc %lx %d\n", sum, caught);
	return 0;
}
