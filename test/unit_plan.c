/* SPDX-License-Identifier: MIT
 *
 * unit_plan.c - plans of small functions against what they should be
 *
 * The functions are assembled into this program, never run; the program analyses itself. A plan is
 * written as text, logs in stream order:
 *
 *   E rdi:8   entry      R rax:8   return stub     B rax:8   block start
 *   A rax:4   after      A rax:4s  sign-extended   C  condition, X address, T8 target
 *   ; needs rdi; then: jcc=computed/logged, slot (a stack slot is followed), retx
 */
#include <stdio.h>
#include <stdlib.h>
#include "plan.h"

extern const char __executable_start[];

#define FN(name, body)                                                                                       \
	asm(".text\n.globl " #name "\n.type " #name ",@function\n.p2align 4\n" #name                         \
	    ":\n\t.cfi_startproc\n\t" body "\n\t.cfi_endproc\n.size " #name ",.-" #name "\n");               \
	extern const char name[]

FN(t_list, "1: mov (%rdi),%rdi\n test %rdi,%rdi\n jne 1b\n ret");
FN(t_byte, "movzbl (%rdi),%eax\n mov (%rsi,%rax,4),%eax\n ret");
FN(t_sign, "movslq (%rdi),%rax\n mov (%rsi,%rax,4),%eax\n ret");
FN(t_count, "xor %ecx,%ecx\n1: addq $1,(%rdi,%rcx,8)\n inc %rcx\n cmp $100,%rcx\n jne 1b\n ret");
FN(t_bound, "xor %eax,%eax\n1: addq $1,(%rdi,%rax,8)\n inc %eax\n cmp %esi,%eax\n jne 1b\n ret");
FN(t_branch, "cmpl $0,(%rdi)\n je 1f\n mov $1,%eax\n1: ret");
FN(t_spill,
   "mov (%rdi),%ecx\n mov %rdi,-8(%rsp)\n xor %edi,%edi\n mov -8(%rsp),%rax\n mov (%rax),%eax\n ret");
FN(t_narrow, "mov %rdi,-8(%rsp)\n movb $0,-6(%rsp)\n mov -8(%rsp),%rax\n mov (%rax),%eax\n ret");
FN(t_keep, "mov (%rdi),%ecx\n push %rdi\n call puts@plt\n pop %rdi\n mov (%rdi),%eax\n ret");
FN(t_escape, "push %rdi\n mov %rsp,%rdi\n call puts@plt\n pop %rdi\n mov (%rdi),%eax\n ret");
FN(t_stkarg,
   "push %rdi\n mov %rsp,%rax\n push %rax\n call puts@plt\n pop %rax\n pop %rdi\n mov (%rdi),%eax\n ret");
FN(t_result, "sub $8,%rsp\n call malloc@plt\n movl $0,(%rax)\n add $8,%rsp\n ret");
FN(t_callee, "mov (%rdi),%eax\n ret");
FN(t_caller, "sub $8,%rsp\n mov (%rdi),%rdi\n call t_callee\n add $8,%rsp\n ret");
FN(t_dirty, "mov (%rdi),%rbx\n ret");
FN(t_after, "push %rbx\n mov %rdi,%rbx\n call t_dirty\n mov (%rbx),%eax\n pop %rbx\n ret");
FN(t_clean, "push %rbx\n mov (%rdi),%rbx\n pop %rbx\n ret");
FN(t_saved, "push %rbx\n mov %rdi,%rbx\n call t_clean\n mov (%rbx),%eax\n pop %rbx\n ret");
FN(t_sum, "mov (%rdi),%rax\n mov 8(%rdi),%rcx\n mov (%rax,%rcx,8),%eax\n ret");
FN(t_both, "mov (%rdi),%rax\n add 8(%rdi),%rax\n mov (%rax),%ecx\n mov 8(%rax),%edx\n ret");
FN(t_stack, "mov %rdi,%rsp\n ret");
FN(t_rep, "mov %esi,%ecx\n xor %eax,%eax\n rep stosb\n ret");
FN(t_scan, "xor %eax,%eax\n mov $-1,%rcx\n repne scasb\n mov %cl,(%rdi)\n ret");
FN(t_ro, "mov t_word(%rip),%rax\n mov (%rdi,%rax),%eax\n ret\n.section .rodata\n.p2align 3\nt_word: .quad "
	 "24\n.text");
FN(t_flags, "xor %eax,%eax\n cmp $5,%edi\n sete %al\n movzbl %al,%eax\n mov (%rdx,%rax,8),%eax\n ret");
/* the mask of the last bytes, from the length */
FN(t_mask, "cmp $32,%rdx\n ja 1f\n mov $-1,%ecx\n bzhi %edx,%ecx,%ecx\n kmovd %ecx,%k2\n vmovdqu8 "
	   "(%rsi),%ymm18{%k2}\n vpcmpub $4,(%rdi),%ymm18,%k1{%k2}\n1: ret");
FN(t_index,
   "cmpl $2,(%rdi)\n ja 1f\n mov (%rdi),%ecx\n lea t_table(%rip),%r9\n movslq (%r9,%rcx,4),%rcx\n add "
   "%r9,%rcx\n jmp *%rcx\n2: nop\n3: nop\n1: ret\n.section .rodata\n.p2align 2\nt_table: .long "
   "1b-t_table,2b-t_table,3b-t_table\n.text");
/* what was compared is not what is there at the jump */
FN(t_changed, "mov (%rdi),%rax\n cmp %rdx,%rax\n mov $0,%edx\n je 1f\n mov 8(%rax),%ecx\n ret\n1: mov "
	      "(%rsi,%rax,8),%ecx\n "
	      "mov 8(%rsi,%rax,4),%ecx\n mov 16(%rsi,%rax,2),%ecx\n ret");
FN(t_calls,
   "call t_byte\n call t_sign\n call t_flags\n call t_bound\n ret"); /* the needs of these have someone to provide them */
FN(t_tls, "mov %fs:0,%rax\n mov -8(%rax),%eax\n ret");
FN(t_hint, "mov (%rdi),%rax\n prefetcht0 (%rax)\n ret");
FN(t_stepped, "mov %rdi,%rax\n add $16,%rax\n lea 8(%rax),%rcx\n mov (%rcx),%ecx\n mov (%rdi),%eax\n ret");
FN(t_below, "mov -4104(%rdi),%eax\n mov -4112(%rdi),%ecx\n ret");
FN(t_near, "mov %esi,%esi\n mov (%rdi,%rsi,8),%eax\n mov 8(%rdi,%rsi,8),%edx\n lea (%rsi,%rsi,2),%rcx\n mov "
	   "16(%rdi,%rcx),%edx\n ret");
FN(t_far, "mov (%rdi,%rsi,8),%eax\n mov (%rdi,%rsi,4),%eax\n mov (%rdi,%rsi,2),%eax\n ret");
FN(t_plus, "lea (%rdi,%rsi),%rax\n mov (%rax),%ecx\n lea (%rdi,%rsi,8),%rax\n mov (%rax),%ecx\n lea "
	   "(%rdi,%rsi,4),%rax\n mov (%rax),%ecx\n ret");
FN(t_capped, ".data\nt_var: .quad 5\n.previous\n mov t_var(%rip),%rax\n cmp $200,%rax\n ja 1f\n lea "
	     "t_var(%rip),%rcx\n mov (%rcx,%rax),%edx\n mov (%rcx,%rax,2),%edx\n1: ret");
FN(t_signed, "mov t_var(%rip),%rax\n cmp $200,%rax\n jg 1f\n lea t_var(%rip),%rcx\n mov (%rcx,%rax),%edx\n "
	     "mov (%rcx,%rax,2),%edx\n1: ret");
FN(t_phi, "movzbl (%rdi),%eax\n test %esi,%esi\n je 1f\n movzbl 1(%rdi),%eax\n and $15,%eax\n1: mov "
	  "8(%rdi,%rax),%ecx\n mov 16(%rdi,%rax,8),%ecx\n ret");
FN(t_late, "push %rbx\n mov %rdi,%rbx\n call puts@plt\n mov (%rbx),%eax\n mov 8(%rbx),%eax\n pop %rbx\n ret");
FN(t_die, "1: movl $0,(%rdi)\n jmp 1b");
FN(t_dies, "test %esi,%esi\n js 2f\n push %rbx\n mov (%rdi),%ebx\n cmp $1,%ebx\n je 1f\n pop %rbx\n ret\n1: "
	   "call t_die\n2: "
	   "xor %eax,%eax\n ret");
FN(t_sys, "mov $39,%eax\n syscall\n mov (%rdi,%rax),%eax\n mov (%r11),%ecx\n ret");

static const struct {
	const char *name, *fn, *want;
} test[] = {
	{"list", t_list, "E rdi:6s A rdi:6s ; needs rdi jcc=1/0"},
	{"mask", t_mask, "C B rdx:1 B rsi:8 B rdi:8 ; needs jcc=0/1"},
	{"index of a table", t_index, "E rdi:6s C A rcx:1 ; needs rdi jcc=0/1"},
	{"compared before", t_changed, "E rdi:6s C B rax:6s B rax:8 B rsi:8 ; needs rdi jcc=0/1"},
	{"byte index", t_byte, "E rsi:6s E rdi:6s A rax:1 ; needs rsi rdi jcc=0/0"},
	{"sign-extended index", t_sign, "E rdi:6s X ; needs rdi jcc=0/0"},
	{"counted loop", t_count, "E rdi:8 ; needs rdi jcc=1/0"},
	{"loop to an argument", t_bound, "E rsi:4 E rdi:6s ; needs rsi rdi jcc=1/0"},
	{"branch on memory", t_branch, "E rdi:6s C ; needs rdi jcc=0/1"},
	{"spill and reload", t_spill, "E rdi:6s ; needs rdi jcc=0/0 slot"},
	{"spill partly overwritten", t_narrow, "A rax:6s ; needs jcc=0/0"},
	{"slot survives a call", t_keep, "E rdi:6s ; needs rdi jcc=0/0 slot"},
	{"slot's address passed", t_escape, "A rdi:6s ; needs jcc=0/0"},
	{"slot's address passed on the stack", t_stkarg, "A rdi:6s ; needs jcc=0/0"},
	{"call result", t_result, "R rax:6s ; needs jcc=0/0"},
	{"direct callee", t_callee, "E rdi:6s ; needs rdi jcc=0/0"},
	{"its caller provides", t_caller, "E rdi:6s A rdi:6s ; needs rdi jcc=0/0"},
	{"callee loses rbx", t_after, "E rdi:6s R rbx:6s ; needs rdi jcc=0/0"},
	{"callee keeps rbx", t_saved, "E rdi:6s ; needs rdi jcc=0/0"},
	{"address cheaper than registers", t_sum, "E rdi:6s X ; needs rdi jcc=0/0"},
	{"sum cheaper than parts", t_both, "E rdi:6s A rax:6s ; needs rdi jcc=0/0"},
	{"switched stack", t_stack,
	 "E rbx:8 E rbp:8 E rdi:6s E r12:8 E r13:8 E r14:8 E r15:8 T8 ; needs rbx rbp rdi r12 r13 r14 r15 "
	 "jcc=0/0 retx"},
	{"rep count", t_rep, "E rsi:4 E rdi:8 ; needs rsi rdi jcc=0/0"},
	{"repne count", t_scan, "E rdi:8 A rcx:8 ; needs rdi jcc=0/0"},
	{"read-only word", t_ro, "X ; needs jcc=0/0"},
	{"setcc index", t_flags, "E rdx:6s A rax:1 ; needs rdx jcc=0/0"},
	{"thread pointer", t_tls, "; needs jcc=0/0"},
	{"a prefetch proves nothing", t_hint, "E rdi:6s A rax:8 ; needs rdi jcc=0/0"},
	{"address after steps", t_stepped, "E rdi:6s ; needs rdi jcc=0/0"},
	{"base above the address space", t_below, "E rdi:6s ; needs rdi jcc=0/0"},
	{"base of a 32-bit index", t_near, "E rsi:4 E rdi:6s ; needs rsi rdi jcc=0/0"},
	{"base of a 64-bit index", t_far, "E rsi:8 E rdi:8 ; needs rsi rdi jcc=0/0"},
	{"pointer plus a 64-bit value", t_plus, "E rsi:8 E rdi:8 ; needs rsi rdi jcc=0/0"},
	{"index below a constant", t_capped, "C B rax:1 ; needs jcc=0/1"},
	{"index compared by sign only", t_signed, "C B rax:8 ; needs jcc=0/1"},
	{"small on both ways", t_phi, "E rdi:6s C B rax:1 ; needs rdi jcc=0/1"},
	{"used as address after a call", t_late, "B rbx:6s ; needs jcc=0/0"},
	{"another frame behind a call that does not return", t_dies, "C B rdi:6s C ; needs jcc=0/2"},
	{"system call", t_sys, "B r11:6s X ; needs jcc=0/0"},
};

static const char *const reg[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
				  "r8",	 "r9",	"r10", "r11", "r12", "r13", "r14", "r15"};

/* is the log's first reader a sign-extending one? logs and SEM_LOG ops pair up in order */
static bool is_sx(const struct plan *p, uint32_t nth)
{
	for (uint32_t i = 0; i < p->nop; i++) {
		if (p->op[i].op == SEM_JCC_LOG || p->op[i].op == SEM_LOG || p->op[i].op == SEM_LOGSX)
			if (!nth--)
				return p->op[i].op == SEM_LOGSX;
		i += gr_has_slot2(&p->op[i]);
	}
	return false;
}

static void text(char *s, const struct an_group *g, const struct plan *p)
{
	static const char when[] = "BbAEMR";
	int jcc = 0, logged = 0, slot = 0, retx = 0;

	for (uint32_t k = 0; k < p->nlog; k++) {
		const struct plan_log *l = &p->log[k];

		if (l->what == LOG_REG)
			s += sprintf(s, "%c %s:%d%s ", when[l->when], reg[l->reg], l->w,
				     is_sx(p, k) ? "s" : "");
		else
			s += sprintf(s,
				     l->what == LOG_SETCC ? "C "
				     : l->what == LOG_EA  ? "X "
							  : "T%d ",
				     l->w);
	}
	s += sprintf(s, "; needs");
	for (int r = 0; r < 16; r++)
		if (g->sum->needs >> r & 1)
			s += sprintf(s, " %s", reg[r]);
	for (uint32_t i = 0; i < p->nop; i++) {
		jcc += p->op[i].op == SEM_JCC;
		logged += p->op[i].op == SEM_JCC_LOG;
		slot |= p->op[i].op == SEM_STORE;
		retx |= p->op[i].op == SEM_RETX;
		i += gr_has_slot2(&p->op[i]);
	}
	sprintf(s, " jcc=%d/%d%s%s", jcc, logged, slot ? " slot" : "", retx ? " retx" : "");
}

int main(void)
{
	char err[200], s[1000];
	int pass = 0, fail = 0;
	struct module *m = elf_open("/proc/self/exe", err, sizeof(err));

	if (!m || discover(m, 1, err, sizeof(err)) < 0 || plan_summaries(m, 0, 1) < 0) {
		printf("%s\n", err);
		return 1;
	}
	for (size_t i = 0; i < sizeof(test) / sizeof(test[0]); i++) {
		uint32_t block, v = (uint32_t)(test[i].fn - (m->pie ? __executable_start : 0));
		struct an_group *g = group_at(m, v, &block);
		struct plan *p = g ? plan_group(m, g, 0) : NULL;

		strcpy(s, "no plan");
		if (p)
			text(s, g, p);
		if (!strcmp(s, test[i].want)) {
			pass++;
		} else {
			fail++;
			printf("%s:\n  got  %s\n  want %s\n", test[i].name, s, test[i].want);
		}
		plan_free(p);
	}
	elf_close(m);
	printf("%d passed, %d failed\n", pass, fail);
	return fail != 0;
}
