// SPDX-License-Identifier: MIT
// BREAKS: AVX-512 masked moves, masked arithmetic with memory sources, broadcasts, scatters, k0 against
// k1, masks with bits beyond the vector.
// BUILD: cc -O2 -mavx512f -mavx512bw -mavx512vl -mavx512dq
// VARIANTS: O0 clang
#include <immintrin.h>
#include <stdio.h>

static int src[64], dst[64];

__attribute__((noinline)) static long work(unsigned long m)
{
	__m512i idx = _mm512_loadu_si512(src);
	__m512i v = _mm512_maskz_loadu_epi32(m, src + 1), w;
	char bytes[64];

	v = _mm512_mask_add_epi32(v, m >> 3, v, *(const __m512i *)(src + 16));
	v = _mm512_mask_add_epi32(v, m, v, _mm512_set1_epi32(src[m & 15]));
	w = _mm512_mask_i32gather_epi32(v, m, idx, src + 16, 4);
	_mm512_mask_i32scatter_epi32(dst + 16, m, idx, w, 4);
	_mm512_mask_storeu_epi32(dst, m >> 5, v);
	_mm256_mask_storeu_epi32(dst + 3, m, _mm512_castsi512_si256(w));
	_mm512_mask_storeu_epi8(bytes, m * 0x10001, w);
	w = _mm512_mask_loadu_epi16(w, m, src + 7);
	_mm512_mask_cvtepi32_storeu_epi8(bytes + 9, m, w);
	v = _mm512_mask_cvtepu8_epi32(v, m, _mm_loadu_si128((const __m128i *)bytes));
	v = _mm512_mask_permutexvar_epi32(v, m, idx, *(const __m512i *)(src + 32));
	__mmask16 k = _mm512_mask_cmp_epi32_mask(m, v, *(const __m512i *)src, 1);
	return _mm512_reduce_add_epi32(v) + k + bytes[m & 31] * (m >> (m & 31) & 1);
}

int main(void)
{
	long s = 0;

	if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
	    !__builtin_cpu_supports("avx512dq")) {
		puts("avx512_masks SKIPPED: no avx512bw, avx512vl or avx512dq");
		return 0;
	}
	for (int i = 0; i < 64; i++)
		src[i] = i * 5 % 48 - 15;
	static const unsigned long masks[] = { 0, 1, 0xffff, 0x8000, 0x5555, 0xaaaa, 0xffff0000, 0x123456789 };

	for (unsigned i = 0; i < 8; i++)
		s = s * 3 + (work(masks[i]) & 0xffff);
	for (int i = 0; i < 64; i++)
		s += dst[i];
	printf("avx512_masks %ld\n", s);
	return 0;
}
