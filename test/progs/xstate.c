// SPDX-License-Identifier: MIT
// BREAKS: xsave, xsavec, xsaveopt, xrstor, fxsave, fxrstor: sizes that depend on CPUID and on the mask,
// and vector registers that a tracer clobbered around them.
// BUILD: cc -O2 -mxsave -mxsavec -mxsaveopt -mfxsr
#include <cpuid.h>
#include <immintrin.h>
#include <stdio.h>
#include <string.h>

static _Alignas(64) unsigned char area[16384];

int main(void)
{
	unsigned a, b, c, d, sub;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) {
		puts("xstate SKIPPED: no xsave");
		return 0;
	}
	__cpuid_count(0xd, 1, sub, b, c, d);
	_fxsave64(area);
	_fxrstor64(area);
	memset(area, 0, sizeof(area));
	for (unsigned mask = 1; mask < 0x100; mask = mask * 2 + 1) {
		_xsave64(area, mask);
		_xrstor64(area, mask);
	}
	if (sub & 1)
		_xsaveopt64(area, 7);
	if (sub & 2) {
		memset(area, 0, sizeof(area));
		_xsavec64(area, 0xe7);
		_xrstor64(area, 0xe7);
	}
	printf("xstate %d\n", area[24] | area[25] << 8);
	return 0;
}
