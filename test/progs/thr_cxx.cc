// SPDX-License-Identifier: MIT
// BREAKS: std::thread, thread_local objects with destructors, futures and call_once that throws.
// BUILD: c++ -O2 -pthread
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex m;
static long destroyed;

struct Local {
	std::vector<int> v;
	~Local()
	{
		std::lock_guard<std::mutex> l(m);

		for (int x : v)
			destroyed += x;
	}
};
static thread_local Local local;

static long body(int n)
{
	for (int i = 0; i < 50; i++)
		local.v.push_back(n * i);
	return (long)local.v.size() + n;
}

int main()
{
	std::vector<std::thread> t;
	std::vector<std::future<long>> f;
	std::once_flag once;
	int tries = 0, caught = 0;
	long s = 0;

	for (int i = 0; i < 4; i++)
		t.emplace_back([i] { body(i); });
	for (auto &x : t)
		x.join();
	for (int i = 0; i < 4; i++)
		f.push_back(std::async(std::launch::async, [i] {
			if (i == 2)
				throw std::runtime_error("two");
			return body(i);
		}));
	for (auto &x : f) {
		try {
			s += x.get();
		} catch (const std::exception &e) {
			s += 1000 + e.what()[0];
		}
	}
	for (int i = 0; i < 3; i++) {
		try {
			std::call_once(once, [&] {
				if (++tries < 2)
					throw 1;
			});
		} catch (int) {
			caught++;
		}
	}
	std::printf("thr_cxx %ld %ld %d %d\n", s, destroyed, tries, caught);
	return 0;
}
