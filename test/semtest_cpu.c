/* SPDX-License-Identifier: MIT
 *
 * semtest_cpu.c - run one instruction on the processor with all registers given and taken
 *
 *   cpu_run ─▶ tramp: load vectors, masks, flags, general registers from the state block
 *                └─▶ code page: the instruction ── jmp *back ─▶ store everything, return
 *                                   pad (branch target): taken = 1 ── jmp *back ─▶
 *
 * The state block is at a fixed address below 2 GiB, so no register is needed to reach it. rsp
 * is the test's too; signals come in on an alternate stack and leave by siglongjmp.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "semtest.h"

bool cpu_avx512;
static sigjmp_buf escape;

#define S_(x) #x
#define S(x) S_(x)

/* clang-format off */
#define TRAMP(name, LOADV, STOREV) \
__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
	".set ST, " S(STATE_ADDR) "\n" \
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n" \
	"mov %rsp, ST+0x110\n" \
	"lea 1f(%rip), %rax\nmov %rax, ST+0x120\n" \
	LOADV \
	"push ST+0x100\npopfq\n" \
	"mov ST, %rax\nmov ST+8, %rcx\nmov ST+16, %rdx\nmov ST+24, %rbx\nmov ST+32, %rsp\n" \
	"mov ST+40, %rbp\nmov ST+48, %rsi\nmov ST+56, %rdi\nmov ST+64, %r8\nmov ST+72, %r9\n" \
	"mov ST+80, %r10\nmov ST+88, %r11\nmov ST+96, %r12\nmov ST+104, %r13\n" \
	"mov ST+112, %r14\nmov ST+120, %r15\n" \
	"jmp *ST+0x118\n" \
	"1: mov %rax, ST+0x80\nmov %rcx, ST+0x88\nmov %rdx, ST+0x90\nmov %rbx, ST+0x98\n" \
	"mov %rsp, ST+0xa0\nmov %rbp, ST+0xa8\nmov %rsi, ST+0xb0\nmov %rdi, ST+0xb8\n" \
	"mov %r8, ST+0xc0\nmov %r9, ST+0xc8\nmov %r10, ST+0xd0\nmov %r11, ST+0xd8\n" \
	"mov %r12, ST+0xe0\nmov %r13, ST+0xe8\nmov %r14, ST+0xf0\nmov %r15, ST+0xf8\n" \
	"mov ST+0x110, %rsp\npushfq\npop ST+0x108\ncld\n" \
	STOREV \
	"fninit\nldmxcsr ST+0x130\nvzeroupper\n" \
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n" \
	".size " #name ", .-" #name "\n")

TRAMP(semtest_tramp512,
	".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"vmovdqu64 ST+0x1000+64*\\i, %zmm\\i\n.endr\n"
	".irp i,0,1,2,3,4,5,6,7\nkmovq ST+0x140+8*\\i, %k\\i\n.endr\n",
	".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"vmovdqu64 %zmm\\i, ST+0x1800+64*\\i\n.endr\n"
	".irp i,0,1,2,3,4,5,6,7\nkmovq %k\\i, ST+0x180+8*\\i\n.endr\n");

TRAMP(semtest_tramp256,
	".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"vmovdqu ST+0x1000+64*\\i, %ymm\\i\n.endr\n",
	".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"vmovdqu %ymm\\i, ST+0x1800+64*\\i\n.endr\n");

/* clang-format on */

void semtest_tramp512(void);
void semtest_tramp256(void);

static void on_signal(int sig)
{
	siglongjmp(escape, sig);
}

int cpu_nvec(void)
{
	return cpu_avx512 ? 32 : 16;
}

int cpu_nlanes(void)
{
	return cpu_avx512 ? 8 : 4;
}

static void *map_at(uint64_t addr, size_t size, int prot)
{
	void *p = mmap((void *)(uintptr_t)addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		       -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

bool cpu_init(void)
{
	static const int sigs[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP};
	stack_t alt = {.ss_size = 1 << 16};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};

	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx"))
		return false;
	cpu_avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
	map_at(STATE_ADDR, sizeof(struct cpu_state), PROT_READ | PROT_WRITE);
	map_at(CODE_ADDR, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	map_at(ARENA_ADDR, ARENA_SIZE, PROT_READ | PROT_WRITE);
	ST->mxcsr = 0x1f80; /* all exceptions masked: the reset value */
	alt.ss_sp = malloc(alt.ss_size);
	sigaltstack(&alt, NULL);
	for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigaction(sigs[i], &sa, NULL);
	return true;
}

static void jump_back(uint8_t *p)
{
	uint32_t back = STATE_ADDR + 0x120;

	memcpy(p, "\xff\x24\x25", 3); /* jmp *abs32 */
	memcpy(p + 3, &back, 4);
}

void cpu_code(const uint8_t *insn, unsigned len)
{
	uint8_t *c = (uint8_t *)(uintptr_t)CODE_ADDR;
	uint32_t taken = STATE_ADDR + 0x128;

	memset(c, 0xcc, PAD_OFF + 64);
	memcpy(c, insn, len);
	jump_back(c + len);
	memcpy(c + PAD_OFF, "\xc6\x04\x25", 3); /* movb $1, abs32 */
	memcpy(c + PAD_OFF + 3, &taken, 4);
	c[PAD_OFF + 7] = 1;
	jump_back(c + PAD_OFF + 8);
}

int cpu_run(void)
{
	int sig = sigsetjmp(escape, 0);

	if (sig)
		return sig;
	ST->code = CODE_ADDR;
	ST->taken = 0;
	if (cpu_avx512)
		semtest_tramp512();
	else
		semtest_tramp256();
	return 0;
}
