// SPDX-License-Identifier: MIT
// Loaded by dlopen.c; like plug_a.c with other code at the same offsets.
static short cells[32];

__attribute__((destructor)) static void down(void)
{
	cells[0]--;
}

int plug(int n)
{
	int s = 0;

	for (int i = n; i >= 0; i--) {
		cells[i] ^= i * 3;
		s += cells[i / 2];
	}
	return s;
}
