// SPDX-License-Identifier: MIT
// BREAKS: functions without unwind tables whose address is all that names them; tables in text that are named alike.
// BUILD: cc -O2
// VARIANTS: stripped
// PT_UNTRACED: 300
/* The functions must be traced (nothing here is opaque), and what only looks like one must stay as it is, byte for
 * byte: a patch in a table changes the output. */
#include <stdint.h>
#include <stdio.h>

__asm__(".text\n"
	".p2align 4\n"
	"bare_sum: xor %eax,%eax\n" /* rdi: 8-byte words, rsi of them */
	"1: add (%rdi,%rsi,8),%rax\n"
	" sub $1,%rsi\n"
	" jns 1b\n"
	" ret\n"
	".p2align 4\n"
	"bare_saves: push %rbx\n" /* fills rdi, of rsi bytes, with dl */
	" mov %r12,-16(%rsp)\n"
	" movzbl %dl,%ebx\n"
	" lea (%rdi,%rsi),%r12\n"
	"1: mov %bl,(%rdi)\n"
	" inc %rdi\n"
	" cmp %r12,%rdi\n"
	" jne 1b\n"
	" mov -16(%rsp),%r12\n"
	" pop %rbx\n"
	" jmp bare_end\n"
	".p2align 4\n"
	"bare_end: mov %rdi,%rax\n"
	" ret\n"
	".p2align 4\n"
	"bare_twice: lea bare_inner(%rip),%rax\n" /* names one itself */
	" sub $8,%rsp\n"
	" call *%rax\n"
	" add $8,%rsp\n"
	" ret\n"
	".p2align 4\n"
	"bare_inner: mov (%rdi),%rax\n"
	" add %rax,%rax\n"
	" mov %rax,(%rdi)\n"
	" ret\n"
	".p2align 4\n"
	"bare_guard: sub $24,%rsp\n" /* as compilers write them: a guarded stack, traps, calls that do not come back */
	" mov %fs:0x28,%rax\n"
	" mov %rax,8(%rsp)\n"
	" mov (%rdi),%rdx\n"
	" test %rdx,%rdx\n"
	" je 1f\n"
	" cmp $-1,%rdx\n"
	" je 3f\n"
	" mov 8(%rsp),%rax\n"
	" cmp %fs:0x28,%rax\n"
	" jne 2f\n"
	" lea (%rdx,%rdx,2),%rax\n"
	" add $24,%rsp\n"
	" ret\n"
	"1: .byte 0x67,0x0f,0xb9,0x43,0x02\n" /* ud1 2(%ebx),%eax: a number for who handles it */
	"3: int3\n"
	" ud2\n"
	"2: call bare_dies\n"
	".p2align 4, 0xcc\n"
	"bare_dies: ud2\n"
	".p2align 4\n"
	/* numbers, text, a table right in front of code */
	".p2align 4\n"
	"bare_zeros: .quad 0, 1, 2, 3\n"
	".p2align 4\n"
	"bare_text: .ascii \"expand 32-byte k\"\n"
	".p2align 4\n"
	"bare_marks: .byte 0x48,0x89,0xf8,0x48,0x89,0xf1,0x48,0x01,0xc8,0xcc,0xcc,0xcc,1,2,3,4\n" /* no call before the int3 */
	".p2align 4\n"
	"bare_front: .quad 0x0000004800000001, 0x0807060504030201\n"
	" ret\n"
	".p2align 4\n"
	"bare_floats: .float 1.0, 0.5, -1.0, 3.25\n"
	".p2align 4\n");

typedef uint64_t sum_fn(const uint64_t *, uint64_t);
typedef uint8_t *fill_fn(uint8_t *, uint64_t, int);
typedef uint64_t twice_fn(uint64_t *);
extern sum_fn bare_sum;
extern fill_fn bare_saves;
extern twice_fn bare_twice, bare_guard;
extern const uint8_t bare_zeros[], bare_text[], bare_front[], bare_marks[], bare_floats[];

static struct ops {
	sum_fn *sum;
	fill_fn *fill;
	twice_fn *twice, *guard;
	const uint8_t *data[4];
} ops = {.sum = bare_sum, .guard = bare_guard, .data = {bare_zeros, bare_text, bare_front, bare_marks}};

/* as libraries choose by processor: code that stores addresses it computes */
__attribute__((noinline)) static const uint8_t *init(struct ops *o)
{
	o->fill = bare_saves;
	o->twice = bare_twice;
	return bare_floats;
}

static uint32_t check(const uint8_t *p, int n)
{
	uint32_t sum = 0;

	while (n--)
		sum = sum * 31 + *p++;
	return sum;
}

int main(void)
{
	struct ops *volatile o = &ops;
	uint64_t word[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	uint8_t byte[40] = {0};
	const uint8_t *floats = init(o);
	long end;

	for (int i = 0; i < 50; i++) {
		end = o->fill(byte, 30 + i % 8, i) - byte;
		printf("%d %lu %ld %d %lu\n", i, (unsigned long)o->sum(word, 8), end, byte[29],
		       (unsigned long)(o->twice(&word[i % 9]) + o->guard(&word[i % 8])));
	}
	for (int i = 0; i < 4; i++)
		printf("%08x\n", check(o->data[i], 16));
	printf("%08x\n", check(floats, 16));
	return 0;
}
