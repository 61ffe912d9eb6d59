// SPDX-License-Identifier: MIT
// BREAKS: masked instructions that read their whole memory operand whatever the mask says (exception
// classes without fault suppression), next to ones that do not: masked extracts, broadcast tuples.
// BUILD: cc -O2 -mavx512f -mavx512bw -mavx512vl -mavx512dq
#include <immintrin.h>
#include <stdio.h>

static int src[64] __attribute__((aligned(64)));
static int dst[64] __attribute__((aligned(64)));

#define RUN(insn) \
	__asm__ volatile(insn : : "r"(src), "r"(dst) : "xmm0", "xmm1", "xmm2", "xmm3", "memory")

__attribute__((noinline)) static void whole(void)
{
	RUN("vpermd (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("vpermd (%0)%{1to16%}, %%zmm1, %%zmm0%{%%k1%}");
	RUN("vpermi2d (%0), %%zmm1, %%zmm2%{%%k1%}");
	RUN("vpermilps $27, (%0), %%ymm2%{%%k1%}%{z%}");
	RUN("vpshufd $27, 64(%0), %%ymm2%{%%k1%}");
	RUN("vpshufb (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("vpackssdw (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("vpackuswb (%0), %%xmm1, %%xmm0%{%%k1%}");
	RUN("vpunpckldq 32(%0), %%ymm1, %%ymm0%{%%k1%}");
	RUN("vpunpckhqdq (%0)%{1to4%}, %%ymm1, %%ymm0%{%%k1%}");
	RUN("vshufps $1, (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("vshufi32x4 $1, (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("valignd $3, (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("valignq $1, (%0), %%xmm1, %%xmm0%{%%k1%}");
	RUN("vdbpsadbw $1, (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("vpalignr $5, (%0), %%ymm1, %%ymm0%{%%k1%}");
	RUN("vinserti32x4 $1, (%0), %%zmm1, %%zmm0%{%%k1%}");
}

__attribute__((noinline)) static void parts(void)
{
	RUN("vextracti32x4 $1, %%zmm0, (%1)%{%%k1%}");
	RUN("vextracti64x2 $1, %%zmm0, (%1)%{%%k1%}");
	RUN("vextracti64x4 $1, %%zmm0, (%1)%{%%k2%}");
	RUN("vextractf32x8 $0, %%zmm0, (%1)%{%%k1%}");
	RUN("vbroadcasti32x4 (%0), %%zmm0%{%%k1%}");
	RUN("vbroadcastf64x2 (%0), %%zmm0%{%%k2%}");
	RUN("vbroadcasti32x2 (%0), %%ymm0%{%%k1%}");
	RUN("vbroadcasti64x4 (%0), %%zmm0%{%%k3%}");
	RUN("vbroadcastss (%0), %%zmm0%{%%k1%}");
	RUN("vpbroadcastq (%0), %%ymm0%{%%k3%}");
	RUN("vpaddd (%0), %%zmm1, %%zmm0%{%%k1%}");
	RUN("vpaddq (%0)%{1to8%}, %%zmm1, %%zmm0%{%%k3%}");
	RUN("vpmovdb %%zmm0, (%1)%{%%k1%}");
	RUN("vpmovzxbd (%0), %%zmm0%{%%k1%}");
	RUN("vmovdqu8 %%zmm0, (%1)%{%%k1%}");
	RUN("vcvtps2pd (%0), %%zmm0%{%%k1%}");
}

int main(void)
{
	static const unsigned long mask[] = { 0, 0x8421, ~0ul, 0xf0 };
	long sum = 0;

	if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
	    !__builtin_cpu_supports("avx512dq")) {
		puts("masked_whole SKIPPED: no avx512bw, avx512vl or avx512dq");
		return 0;
	}
	for (int i = 0; i < 64; i++)
		src[i] = i;
	for (unsigned i = 0; i < sizeof(mask) / sizeof(*mask); i++) {
		__asm__ volatile("kmovq %0, %%k1; kmovq %1, %%k2; kmovq %2, %%k3" : :
				 "r"(mask[i]), "r"(mask[i] >> 1), "r"(0l));
		whole();
		parts();
	}
	for (int i = 0; i < 64; i++)
		sum = sum * 3 + dst[i];
	printf("masked_whole %ld\n", sum);
	return 0;
}
