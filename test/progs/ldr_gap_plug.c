// SPDX-License-Identifier: MIT
// ldr_gap_plug.c - the library of ldr_gap.c
int gap[16] = {5, 4, 3};

int gap_sum(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s = s * 3 + gap[i];
	return s;
}
