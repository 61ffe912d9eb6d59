// SPDX-License-Identifier: MIT
/*
 * bytecode - a stack machine that runs a small assembled program: recursive Fibonacci numbers,
 * a sieve of primes and Collatz lengths. One indirect jump per instruction, operands and stack
 * in memory: the shape of every interpreter.
 */
#include "workload.h"

static const struct wl_size sizes[WL_SIZES] = {
	{"small", 700, 12},
	{"medium", 40000, 10},
	{"large", 200000, 10},
};

enum op {
	OP_PUSH,
	OP_LOAD,
	OP_STORE,
	OP_GET,
	OP_SET,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_AND,
	OP_SHR,
	OP_LT,
	OP_EQ,
	OP_JZ,
	OP_JMP,
	OP_CALL,
	OP_RET,
	OP_ARG,
	OP_EMIT,
	OP_HALT,
	OP_COUNT
};

static const struct {
	const char *name;
	int has_operand;
} op_table[OP_COUNT] = {
	[OP_PUSH] = {"push", 1}, [OP_LOAD] = {"load", 1}, [OP_STORE] = {"store", 1}, [OP_GET] = {"get", 0},
	[OP_SET] = {"set", 0},	 [OP_ADD] = {"add", 0},	  [OP_SUB] = {"sub", 0},     [OP_MUL] = {"mul", 0},
	[OP_AND] = {"and", 0},	 [OP_SHR] = {"shr", 0},	  [OP_LT] = {"lt", 0},	     [OP_EQ] = {"eq", 0},
	[OP_JZ] = {"jz", 1},	 [OP_JMP] = {"jmp", 1},	  [OP_CALL] = {"call", 1},   [OP_RET] = {"ret", 0},
	[OP_ARG] = {"arg", 0},	 [OP_EMIT] = {"emit", 0}, [OP_HALT] = {"halt", 0},
};

/*
 * Variables: 0 is n (set before the start), 1 and up are scratch. "get" takes an index of the
 * heap, "set" an index and a value. A call has one argument; "ret" replaces it by the result.
 */
static const char program[] =
	/* emit fib(18) */
	"push 18 call fib emit "
	/* sieve: heap[i] = 1 for composite i; variable 3 counts the primes */
	"push 0 store 3 push 2 store 1 "
	"clear: load 1 load 0 lt jz cleared "
	"load 1 push 0 set load 1 push 1 add store 1 jmp clear "
	"cleared: push 2 store 1 "
	"sieve: load 1 load 0 lt jz sieved "
	"load 1 get jz prime jmp next "
	"prime: load 3 push 1 add store 3 load 1 load 1 mul store 2 "
	"strike: load 2 load 0 lt jz next load 2 push 1 set "
	"load 2 load 1 add store 2 jmp strike "
	"next: load 1 push 1 add store 1 jmp sieve "
	"sieved: load 3 emit "
	/* variable 3: the sum of the Collatz lengths of 1 to n - 1 */
	"push 0 store 3 push 1 store 1 "
	"each: load 1 load 0 lt jz done load 1 store 2 "
	"step: load 2 push 1 eq jz go load 1 push 1 add store 1 jmp each "
	"go: load 3 push 1 add store 3 load 2 push 1 and jz even "
	"load 2 push 3 mul push 1 add store 2 jmp step "
	"even: load 2 push 1 shr store 2 jmp step "
	"done: load 3 emit halt "
	"fib: arg push 2 lt jz recurse arg ret "
	"recurse: arg push 1 sub call fib arg push 2 sub call fib add ret ";

#define MAX_CODE 512
#define MAX_LABELS 32
#define MAX_STACK 4096

struct label {
	char name[16];
	int address;
};

struct assembler {
	int64_t code[MAX_CODE];
	struct label labels[MAX_LABELS];
	int used, label_count;
};

static void fail(const char *what, const char *word)
{
	fprintf(stderr, "bytecode: %s: %s\n", what, word);
	exit(1);
}

static int64_t label_address(const struct assembler *as, const char *name)
{
	for (int i = 0; i < as->label_count; i++) {
		if (!strcmp(as->labels[i].name, name))
			return as->labels[i].address;
	}
	return 0; /* unknown in the first pass, known in the second */
}

static void assemble_word(struct assembler *as, const char *word, int *operand)
{
	size_t len = strlen(word);

	if (*operand) {
		as->code[as->used++] = word[0] <= '9' ? strtol(word, NULL, 10) : label_address(as, word);
		*operand = 0;
		return;
	}
	if (word[len - 1] == ':') {
		struct label *l = &as->labels[as->label_count++];

		memcpy(l->name, word, len - 1);
		l->name[len - 1] = '\0';
		l->address = as->used;
		return;
	}
	for (int op = 0; op < OP_COUNT; op++) {
		if (!strcmp(op_table[op].name, word)) {
			as->code[as->used++] = op;
			*operand = op_table[op].has_operand;
			return;
		}
	}
	fail("unknown word", word);
}

/* assemble - two passes: the first finds the labels, the second uses them */
static void assemble(struct assembler *as, const char *text)
{
	for (int pass = 0; pass < 2; pass++) {
		char word[16];
		int length, operand = 0;

		as->used = 0;
		for (const char *p = text; sscanf(p, "%15s%n", word, &length) == 1; p += length) {
			if (as->used >= MAX_CODE || as->label_count >= MAX_LABELS)
				fail("program too long at", word);
			if (!pass || word[strlen(word) - 1] != ':')
				assemble_word(as, word, &operand);
		}
	}
}

static uint64_t run(const int64_t *code, int64_t n, int64_t *heap)
{
	int64_t stack[MAX_STACK], variables[8] = {n};
	int64_t *sp = stack, *frame = stack;
	const int64_t *pc = code;
	uint64_t sum = 0;

	for (;;) {
		switch ((enum op) * pc++) {
		case OP_PUSH:
			*sp++ = *pc++;
			break;
		case OP_LOAD:
			*sp++ = variables[*pc++];
			break;
		case OP_STORE:
			variables[*pc++] = *--sp;
			break;
		case OP_GET:
			sp[-1] = heap[sp[-1]];
			break;
		case OP_SET:
			sp -= 2;
			heap[sp[0]] = sp[1];
			break;
		case OP_ADD:
			sp--;
			sp[-1] += sp[0];
			break;
		case OP_SUB:
			sp--;
			sp[-1] -= sp[0];
			break;
		case OP_MUL:
			sp--;
			sp[-1] *= sp[0];
			break;
		case OP_AND:
			sp--;
			sp[-1] &= sp[0];
			break;
		case OP_SHR:
			sp--;
			sp[-1] >>= sp[0];
			break;
		case OP_LT:
			sp--;
			sp[-1] = sp[-1] < sp[0];
			break;
		case OP_EQ:
			sp--;
			sp[-1] = sp[-1] == sp[0];
			break;
		case OP_JZ:
			pc = *--sp ? pc + 1 : code + *pc;
			break;
		case OP_JMP:
			pc = code + *pc;
			break;
		case OP_CALL:
			/* argument, return address, caller's frame */
			sp[0] = pc + 1 - code;
			sp[1] = frame - stack;
			sp += 2;
			frame = sp;
			pc = code + *pc;
			break;
		case OP_RET:
			frame[-3] = sp[-1];
			sp = frame - 2;
			pc = code + frame[-2];
			frame = stack + frame[-1];
			break;
		case OP_ARG:
			*sp++ = frame[-3];
			break;
		case OP_EMIT:
			sum = wl_mix(sum, (uint64_t) * --sp);
			break;
		case OP_HALT:
		case OP_COUNT:
			return sum;
		}
	}
}

int main(int argc, char **argv)
{
	struct wl_size s = wl_options(argc, argv, sizes);
	static struct assembler as;
	int64_t *heap = wl_alloc((size_t)s.n, sizeof(*heap));
	uint64_t sum = 0;

	assemble(&as, program);
	for (long r = 0; r < s.reps; r++)
		sum = wl_mix(sum, run(as.code, s.n - r % 3, heap));
	return wl_report("bytecode", s, sum);
}
