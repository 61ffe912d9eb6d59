/* SPDX-License-Identifier: MIT
 *
 * unit_sem.c - records of the lifter against hand-written expectations
 *
 * What the differential test cannot see: the order of records, implicit and special ones, what
 * is refused. One line an instruction: bytes, and the records as text:
 *
 *   R8[rax+rcx*4+16]   kind, size, address; T stands for a computed address; fs for its base
 *   rep, vec, xs       groups, with the interesting fields of their slot
 *   refused            sem_lift gives -1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sem_eval.h"
#include "sem_lift.h"

static const struct {
	const char *bytes, *want;
} test[] = {
	{"48 8b 44 88 10", "R8[rax+rcx*4+16]"},
	{"01 03", "R4[rbx] W4[rbx]"},
	{"39 03", "R4[rbx]"},
	{"88 03", "W1[rbx]"},
	{"87 03", "R4[rbx] W4[rbx]"},
	{"f0 48 0f b1 0b", "R8[rbx] W8[rbx]"},
	{"48 0f c7 0b", "R16[rbx] W16[rbx]"},
	{"0f 44 03", "R4[rbx]"},
	{"ff 33", "R8[rbx] W8[rsp-8]"},
	{"ff 34 24", "R8[rsp] W8[rsp-8]"},
	{"8f 04 24", "R8[rsp] W8[rsp+8]"},
	{"8f 03", "R8[rsp] W8[rbx]"},
	{"66 50", "W2[rsp-2]"},
	{"9c", "W8[rsp-8]"},
	{"e8 00 00 00 00", "W8[rsp-8]"},
	{"ff 13", "R8[rbx] W8[rsp-8]"},
	{"ff 23", "R8[rbx]"},
	{"c3", "R8[rsp]"},
	{"c9", "R8[rbp]"},
	{"c8 10 00 00", "W8[rsp-8]"},
	{"c8 10 00 02", "W8[rsp-8] R8[rbp-8] W8[rsp-16] W8[rsp-24]"},
	{"8d 03", ""},
	{"0f 1f 44 00 00", ""},
	{"0f 18 0b", "P64[rbx]"},
	{"0f ae 3b", "P64[rbx]"},
	{"a4", "R1[rsi] W1[rdi]"},
	{"a6", "R1[rsi] R1[rdi]"},
	{"ab", "W4[rdi]"},
	{"f3 48 a5", "rep0 w8 a=rsi b=rdi n=rcx"},
	{"f3 aa", "rep1 w1 a=- b=rdi n=rcx"},
	{"f3 ae", "rep4 w1 a=- b=rdi n=T"},
	{"64 48 8b 04 25 28 00 00 00", "R8[fs+40]"},
	{"64 48 8b 03", "R8[fs+rbx]"},
	{"8b 05 00 00 00 00", "R4[T]"},
	{"67 8b 03", "R4[T]"},
	{"a1 08 07 06 05 04 03 02 01", "R4[T]"},
	{"0f a3 03", "R4[rbx+T*4]"},
	{"0f ab 03", "R4[rbx+T*4] W4[rbx+T*4]"},
	{"0f ba 2b 05", "R4[rbx] W4[rbx]"},
	{"d7", "R1[rbx+T]"},
	{"0f ae 03", "W512[rbx]"},
	{"0f ae 0b", "R512[rbx]"},
	{"d9 33", "W28[rbx]"},
	{"d9 23", "R28[rbx]"},
	{"dd 33", "W108[rbx]"},
	{"dd 23", "R108[rbx]"},
	{"db 2b", "R10[rbx]"},
	{"0f ae 23", "xs0 W[rbx] n=rax df=rdx"},
	{"0f c7 23", "xs1 W[rbx] n=rax df=rdx"},
	{"0f ae 2b", "xs2 R[rbx] n=rax df=rdx"},
	{"66 0f f7 c1", "vec W1[rdi] n16 mask2/1 reg1"},
	{"c4 e2 75 2e 03", "vec W4[rbx] " /* vmaskmovps %ymm0,%ymm1,(%rbx) */ "n8 mask2/4 reg1"},
	{"c4 e2 65 90 04 88", "vec R4[rax] n8 mask2/4 reg3 idx4*4 reg1"},
	{"62 f1 7c 49 10 03", "vec R4[rbx] n16 mask1/2 reg1"},
	{"62 f1 74 59 58 03", "vec R4[rbx] n16 mask1/2 reg1 bcast"},
	{"62 f1 74 58 58 03", "R4[rbx]"},
	{"62 f2 7d 49 8a 03", "vec W4[rbx] n16 mask1/2 reg1 compress"},
	{"62 f2 7d 49 a0 04 88", "vec W4[rax] n16 mask1/2 reg1 idx4*4 reg1"},
	{"c5 f9 90 03", "R1[rbx]"},
	{"66 0f 38 f8 03", "R64[rbx] W64[rax]"},
	{"8e d8", "refused"},
	{"0f a1", "refused"},
	{"f3 48 0f ae d0", "refused"},
	{"cf", "refused"},
	{"66 c3", "refused"},
	{"cd 80", "refused"},
	{"0f f7 c1", "refused"},
	{"c7 f8 00 00 00 00", ""},
	{"f4", ""},
	{"0f 05", ""},
};

/* the operands that records have their addresses from, by Zydis' numbers: s: rsp and the record's displacement;
 * f: without the fs base; -: none */
static const struct {
	const char *bytes, *want;
} from[] = {
	{"48 01 03", "0 0"},
	{"ff 33", "0 2s"}, /* push (%rbx) */
	{"8f 03", "2s 0"},
	{"8f 44 24 08", "2s 0"}, /* pop 8(%rsp) */
	{"ff 13", "0 3s"}, /* call *(%rbx) */
	{"64 ff 33", "0f 2s"},
	{"a4", "1 0"}, /* movsb */
	{"64 a4", "1f 0"},
	{"a6", "0 1"}, /* cmpsb */
	{"ae", "1"}, /* scasb */
	{"d7", "0"}, /* xlat */
	{"c9", "0"}, /* leave */
	{"c8 10 00 02", "4s - 4s 4s"}, /* enter $16,$2 */
	{"66 0f 38 f8 03", "1 2"}, /* movdir64b (%rbx),%rax */
	{"64 66 0f 38 f8 03", "1f 2"},
	{"48 0f a3 03", "-"}, /* bt %rax,(%rbx) */
	{"48 0f ba 23 03", "0"},
	{"67 8b 05 00 00 00 00", "-"}, /* mov 0(%eip),%eax */
	{"0f 18 0b", "0"}, /* prefetcht0 (%rbx) */
};

static char text[512];

static const char *reg(uint16_t r)
{
	static const char *const name[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi",
					   "rdi", "r8",	 "r9",	"r10", "r11", "r12", "r13",
					   "r14", "r15", "FC",	"FR",  "DF",  "fs",  "gs"};

	return r == SEM_NONE ? "-" : r < SEM_T0 ? name[r] : "T";
}

static void say(const char *fmt, long a, const char *s)
{
	size_t n = strlen(text);

	snprintf(text + n, sizeof(text) - n, fmt, a, s);
}

static void address(const struct sem_op *o)
{
	say("[", 0, "");
	if (o->a != SEM_NONE)
		say("%.0ld%s", 0, reg(o->a));
	if (o->b != SEM_NONE)
		say("%.0ld+%s", 0, reg(o->b));
	if (o->b != SEM_NONE && o->w)
		say("*%ld", 1 << o->w, "");
	if (SEM_REC_DISP(o->imm))
		say("%+ld", SEM_REC_DISP(o->imm), "");
	say("]", 0, "");
}

static void group(const struct sem_op *o)
{
	struct sem_vec v;

	memcpy(&v, o + 1, sizeof(v));
	if (o->op == SEM_RECREP) {
		say("rep%ld", v.kind, "");
		say(" w%ld a=%s", o->w, reg(o->a));
		say("%.0ld b=%s", 0, reg(o->b));
		say("%.0ld n=%s", 0, reg(v.count));
		return;
	}
	if (o->op == SEM_RECXS) {
		say("xs%ld ", v.kind, "");
		say("%.0ld%.1s", 0, &"RWP"[SEM_REC_KIND(o->dst)]);
		address(o);
		say("%.0ld n=%s", 0, reg(v.count));
		say("%.0ld df=%s", 0, reg(v.df));
		return;
	}
	say("%.0ldvec %.1s", 0, &"RWP"[SEM_REC_KIND(o->dst)]);
	say("%ld", SEM_REC_SIZE(o->dst), "");
	address(o);
	say(" n%ld", v.n, "");
	say(" mask%ld", v.mask, "");
	say("/%ld", v.mask_bytes, "");
	say(" reg%ld", v.count, "");
	if (v.idx_bytes) {
		say(" idx%ld", v.idx_bytes, "");
		say("*%ld", 1 << v.idx_scale, "");
		say(" reg%ld", v.df, "");
	}
	if (v.flags & SEM_VEC_BCAST)
		say(" bcast", 0, "");
	if (v.flags & SEM_VEC_COMPRESS)
		say(" compress", 0, "");
}

static void records(const struct sem_op *o, int n)
{
	text[0] = 0;
	for (int i = 0; i < n; i++) {
		bool slot = sem_has_slot(o[i].op);

		if (!slot && o[i].op != SEM_REC)
			continue;
		if (text[0])
			say(" ", 0, "");
		if (slot) {
			group(&o[i++]);
			continue;
		}
		say("%.0ld%.1s", 0, &"RWP"[SEM_REC_KIND(o[i].dst)]);
		say("%ld", SEM_REC_SIZE(o[i].dst), "");
		address(&o[i]);
	}
}

static void operands(const struct sem_op *o, int n, const struct sem_ea *ea)
{
	text[0] = 0;
	for (int i = 0; i < n; i++) {
		if (o[i].op != SEM_REC)
			continue;
		if (ea->op == SEM_EA_NONE)
			say("%.0ld%s-", 0, text[0] ? " " : "");
		else
			say(text[0] ? " %ld%s" : "%ld%s", ea->op,
			    ea->stack		    ? "s"
			    : ea->seg == SEM_FSBASE ? "f"
						    : "");
		ea++;
	}
}

static bool one(ZydisDecoder *dec, const char *bytes, const char *want, bool ops)
{
	struct sem_ea ea[SEM_EA_MAX];
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct sem_op ir[SEM_LIFT_MAX];
	uint8_t b[16];
	int n = 0;

	for (const char *s = bytes; *s; s += s[2] ? 3 : 2)
		b[n++] = strtoul(s, NULL, 16);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(dec, b, n, &in, op))) {
		printf("FAIL %s: not an instruction\n", bytes);
		return false;
	}
	n = sem_lift(&in, op, 0x1000, NULL, ir, SEM_LIFT_MAX, ea);
	if (n < 0)
		strcpy(text, "refused");
	else if (ops)
		operands(ir, n, ea);
	else
		records(ir, n);
	if (!strcmp(text, want))
		return true;
	printf("FAIL %s %s: \"%s\", expected \"%s\"\n", bytes, ZydisMnemonicGetString(in.mnemonic), text,
	       want);
	return false;
}

int main(void)
{
	int n = sizeof(test) / sizeof(test[0]), nfrom = sizeof(from) / sizeof(from[0]), passed = 0;
	ZydisDecoder dec;

	ZydisDecoderInit(&dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int i = 0; i < n; i++)
		passed += one(&dec, test[i].bytes, test[i].want, false);
	for (int i = 0; i < nfrom; i++)
		passed += one(&dec, from[i].bytes, from[i].want, true);
	printf("%d passed, %d failed\n", passed, n + nfrom - passed);
	return passed != n + nfrom;
}
