// SPDX-License-Identifier: MIT
// BREAKS: AVX2 gathers (all index and data widths, partial masks, negative indices) and vmaskmov.
// BUILD: cc -O2 -mavx2
// VARIANTS: O0 clang
#include <immintrin.h>
#include <stdio.h>

static int ints[256];
static double doubles[256];

__attribute__((noinline)) static long gathers(const int *idx, int which)
{
	__m256i i8 = _mm256_loadu_si256((const __m256i *)idx);
	__m128i i4 = _mm_loadu_si128((const __m128i *)idx);
	__m256i mask = _mm256_cmpgt_epi32(i8, _mm256_set1_epi32(which));
	__m256i a = _mm256_mask_i32gather_epi32(i8, ints + 128, i8, mask, 4);
	__m256d d = _mm256_i32gather_pd(doubles + 128, i4, 8);
	__m256i q = _mm256_cvtepi32_epi64(i4);
	__m128i b = _mm256_i64gather_epi32(ints + 128, q, 4);
	__m256i c = _mm256_i64gather_epi64((const long long *)(doubles + 128), q, 8);
	__m128i e = _mm_i64gather_epi32(ints + 128, _mm256_castsi256_si128(q), 2);
	int out[8] = { 0 };
	long long out2[4] = { 0 };
	double outd[4];

	_mm256_maskstore_epi32(out, mask, a);
	_mm256_maskstore_epi64(out2, mask, c);
	_mm256_storeu_pd(outd, d);
	a = _mm256_maskload_epi32(ints + 3, mask);
	b = _mm_add_epi32(_mm_add_epi32(b, e), _mm_maskload_epi32(ints + 1, _mm256_castsi256_si128(mask)));
	return out[0] + out[3] + out[7] + (out2[1] & 0xff) + (long)outd[2] + _mm_extract_epi32(b, 0) +
	       _mm256_extract_epi32(a, 5);
}

int main(void)
{
	static const int idx[8] = { -100, 3, 7, -1, 50, 100, -128, 0 };
	long s = 0;

	if (!__builtin_cpu_supports("avx2")) {
		puts("avx2_gather SKIPPED: no avx2");
		return 0;
	}
	for (int i = 0; i < 256; i++) {
		ints[i] = i * 7;
		doubles[i] = i * 3;
	}
	for (int w = -130; w < 110; w += 30)
		s += gathers(idx, w);
	printf("avx2_gather %ld\n", s);
	return 0;
}
