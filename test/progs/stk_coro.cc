// SPDX-License-Identifier: MIT
// BREAKS: C++20 coroutines: frames on the heap, resumed through pointers in them, tail transfers from one to
// another, exceptions out of them, destroyed half way; resumed on another thread.
// BUILD: g++ -std=c++20 -O2 -pthread
#include <coroutine>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>

static unsigned long log_sum;

struct Gen {
	struct promise_type {
		long value = 0;
		std::exception_ptr err;
		Gen get_return_object()
		{
			return Gen{ std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(long v)
		{
			value = v;
			return {};
		}
		void return_void() {}
		void unhandled_exception() { err = std::current_exception(); }
	};
	std::coroutine_handle<promise_type> h;
	~Gen()
	{
		if (h)
			h.destroy();
	}
	bool next()
	{
		h.resume();
		if (h.promise().err)
			std::rethrow_exception(h.promise().err);
		return !h.done();
	}
};

struct Noisy {
	long v;
	~Noisy() { log_sum = log_sum * 3 + v; }
};

static Gen count(long from, long to)
{
	Noisy n{ from };

	for (long i = from; i < to; i++) {
		if (i == 13)
			throw std::runtime_error("thirteen");
		co_yield i *i;
	}
}

/* Symmetric transfer: each resumes the other by a tail jump. */
struct Task {
	struct promise_type {
		std::coroutine_handle<> other;
		Task get_return_object()
		{
			return Task{ std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> h;
};
struct To {
	std::coroutine_handle<> h;
	bool await_ready() const noexcept { return false; }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept { return h; }
	void await_resume() const noexcept {}
};

static std::coroutine_handle<> side[2];

static Task ping(int me)
{
	for (int i = 0; i < 20; i++) {
		log_sum = log_sum * 7 + me * 100 + i;
		co_await To{ side[!me] };
	}
}

int main()
{
	unsigned long s = 0;
	int caught = 0;

	{
		Gen a = count(1, 10), b = count(5, 100), c = count(50, 60);

		while (a.next())
			s = s * 5 + a.h.promise().value;
		try {
			while (b.next())
				s = s * 5 + b.h.promise().value;
		} catch (const std::exception &e) {
			caught += e.what()[0];
		}
		c.next(); /* the rest is never run */
		std::thread([&] {
			c.next();
			s += c.h.promise().value;
		}).join();
		c.next();
		s += c.h.promise().value;
	}
	Task p = ping(0), q = ping(1);

	side[0] = p.h;
	side[1] = q.h;
	p.h.resume(); /* until one of them has ended */
	p.h.destroy();
	q.h.destroy();
	std::printf("stk_coro %lx %lx %d\n", s, log_sum, caught);
	return 0;
}
