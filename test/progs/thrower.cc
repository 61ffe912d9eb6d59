// SPDX-License-Identifier: MIT
// Linked by exceptions.cc: throws, and passes on what its callback throws.
struct Count {
	int &n;
	~Count() { n++; }
};

int destroyed;

int thrower(int n, int (*cb)(int))
{
	Count c{ destroyed };

	if (n == 2)
		throw destroyed + 40;
	return cb(n) + 1;
}
