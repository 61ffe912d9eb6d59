// SPDX-License-Identifier: MIT
// BREAKS: C++ exceptions: the unwinder must see original return addresses; landing pads are entries; cleanups,
// rethrow, catch(...), through qsort's C frames, across a shared object.
// BUILD: c++ -O2 -Wl,-rpath,$ORIGIN -L$OUT -lthrower
// LIB: libthrower.so thrower.cc
// VARIANTS: O0 clang cet
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

int thrower(int n, int (*cb)(int));

static int cleaned;

struct Guard {
	int v;
	~Guard() { cleaned += v; }
};

__attribute__((noinline)) static int deep(int n)
{
	Guard g{ n };

	if (!n)
		throw std::runtime_error("bottom");
	return deep(n - 1) + n;
}

__attribute__((noinline)) static int rethrows(int n)
{
	try {
		Guard g{ 100 };

		return deep(n);
	} catch (const std::logic_error &) {
		return -1;
	} catch (...) {
		cleaned++;
		throw;
	}
}

static int cmp(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (x == 13 || y == 13)
		throw x + y;
	return x < y ? -1 : x > y;
}

static int callback(int n)
{
	Guard g{ 1000 };

	if (n == 0)
		throw std::string("from the callback");
	return n;
}

int main()
{
	int caught = 0, a[] = { 5, 2, 9, 13, 1, 4 };
	size_t len = 0;

	for (int i = 1; i < 4; i++) {
		try {
			rethrows(i * 2);
		} catch (const std::exception &e) {
			caught++;
			len += std::string(e.what()).size();
		}
	}
	try {
		std::qsort(a, 6, sizeof(a[0]), cmp);
	} catch (int v) {
		caught += v > 13;
	}
	for (int i = 0; i < 3; i++) {
		try {
			thrower(i, callback);
		} catch (const std::string &s) {
			len += s.size();
		} catch (int v) {
			caught += v;
		}
	}
	std::printf("exceptions %d %d %zu\n", caught, cleaned, len);
	return 0;
}
