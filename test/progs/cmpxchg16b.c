// SPDX-License-Identifier: MIT
// BREAKS: cmpxchg16b and cmpxchg8b: R and W of the whole operand whether or not it stored; rbx, rdx
// and rax are implicit.
// BUILD: cc -O2 -mcx16
#include <stdio.h>

struct node { struct node *next; unsigned long tag; };
static struct { struct node *head; unsigned long tag; } _Alignas(16) list;

static int cas(void *p, void *h, unsigned long t, void *nh, unsigned long nt)
{
	char ok;

	__asm__ volatile("lock cmpxchg16b %1; setz %0"
			 : "=q"(ok), "+m"(*(char (*)[16])p), "+a"(h), "+d"(t)
			 : "b"(nh), "c"(nt) : "cc", "memory");
	return ok;
}

int main(void)
{
	static struct node nodes[20];
	unsigned long long eight = 5, old = 4;
	int fails = 0, sum = 0;
	char ok;

	for (int i = 0; i < 20; i++) {
		nodes[i].next = list.head;
		nodes[i].tag = i;
		fails += !cas(&list, (void *)1, 0, &nodes[i], 0);
		fails += !cas(&list, list.head, list.tag, &nodes[i], list.tag + 1);
	}
	for (struct node *n = list.head; n; n = n->next)
		sum += n->tag;
	__asm__ volatile("cmpxchg8b %1; setz %0" : "=q"(ok), "+m"(eight), "+a"(old) : "b"(1), "c"(2), "d"(0) : "cc");
	printf("cmpxchg16b %d %d %lu %d\n", fails, sum, list.tag, ok);
	return 0;
}
