// SPDX-License-Identifier: MIT
// BREAKS: code that runs before and after main: init_array with priorities, static constructors of C++,
// local statics with guards, atexit and destructors.
// BUILD: c++ -O2
// VARIANTS: O0 clang
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static int order[16], n;

struct Noisy {
	int id;
	explicit Noisy(int i) : id(i) { order[n++] = i; }
	~Noisy() { std::printf("~%d ", id); if (id == 1) std::printf("\n"); }
};

static Noisy first __attribute__((init_priority(101))) (1);
static Noisy third __attribute__((init_priority(65000))) (3);
static Noisy second __attribute__((init_priority(200))) (2);
static std::vector<std::string> words = { "alpha", "beta", std::string(40, 'g') };

__attribute__((constructor(300))) static void c300() { order[n++] = 300; }
__attribute__((destructor)) static void last() { std::puts("destructor"); }

static Noisy &local(int i)
{
	static Noisy it(10 + i);

	return it;
}

int main()
{
	std::atexit([] { std::printf("atexit "); });
	local(1);
	local(2);
	for (int i = 0; i < n; i++)
		std::printf("%d ", order[i]);
	std::printf("ctors %s %zu\n", words[1].c_str(), words[2].size());
	return 0;
}
