// SPDX-License-Identifier: MIT
// BREAKS: compress and expand: popcount(mask) consecutive elements, none for an empty mask; a pointer
// advanced by the popcount carries the mask into later addresses.
// BUILD: cc -O2 -mavx512f -mavx512vl -mpopcnt
// VARIANTS: clang
#include <immintrin.h>
#include <stdio.h>

static int in[512], out[528];

__attribute__((noinline)) static int *filter(int limit)
{
	int *o = out;

	for (int i = 0; i < 512; i += 16) {
		__m512i v = _mm512_loadu_si512(in + i);
		__mmask16 m = _mm512_cmplt_epi32_mask(v, _mm512_set1_epi32(limit));

		_mm512_mask_compressstoreu_epi32(o, m, v);
		o += __builtin_popcount(m);
	}
	return o;
}

__attribute__((noinline)) static int spread(unsigned m)
{
	__m512i v = _mm512_mask_expandloadu_epi32(_mm512_set1_epi32(1), m, out + 3);
	__m512d d = _mm512_maskz_expandloadu_pd(m, out);

	return _mm512_reduce_add_epi32(v) + (_mm512_cmpneq_pd_mask(d, d) & 1);
}

int main(void)
{
	unsigned s = 7;

	if (!__builtin_cpu_supports("avx512f")) {
		puts("avx512_compress SKIPPED: no avx512f");
		return 0;
	}
	for (int i = 0; i < 512; i++) {
		s = s * 1103515245 + 12345;
		in[i] = s >> 20;
	}
	int *end = filter(1000);
	printf("avx512_compress %ld %d %d %d\n", (long)(end - out), out[5], spread(0), spread(0xa5c3));
	return 0;
}
