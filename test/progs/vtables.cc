// SPDX-License-Identifier: MIT
// BREAKS: virtual calls: thunks that adjust `this`, multiple and virtual inheritance, dynamic_cast, pure
// virtual through the destructor.
// BUILD: c++ -O2
// VARIANTS: O0 clang nopie
#include <cstdio>
#include <memory>
#include <vector>

struct Base { long v = 1; virtual ~Base() {} virtual long f(long x) { return v += x; } };
struct Other { long w = 2; virtual ~Other() {} virtual long g(long x) = 0; };
struct Both : Base, Other {
	long f(long x) override { return w + x; }
	long g(long x) override { return v *= x | 1; }
};
struct VBase { long z = 3; virtual ~VBase() {} virtual long h() { return z; } };
struct L : virtual VBase { long h() override { return z++; } };
struct R : virtual VBase { long r = 4; };
struct Diamond : L, R { long h() override { return L::h() + r; } };

int main()
{
	std::vector<std::unique_ptr<Base>> all;
	long s = 0;

	for (int i = 0; i < 20; i++) {
		if (i % 3)
			all.emplace_back(new Base);
		else
			all.emplace_back(new Both);
	}
	for (auto &p : all) {
		s += p->f(s & 7);
		if (auto *o = dynamic_cast<Other *>(p.get()))
			s += o->g(s & 15);
	}
	Diamond d;
	VBase *vb = &d;
	R *r = &d;

	s += vb->h() + r->h() + static_cast<VBase *>(r)->h();
	std::printf("vtables %ld\n", s);
	return 0;
}
