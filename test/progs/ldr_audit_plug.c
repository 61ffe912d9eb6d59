// SPDX-License-Identifier: MIT
// The auditing library of ldr_audit.c. It says what it saw of the program's own library.
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <unistd.h>

static unsigned calls;

static void say(const char *what, const char *name)
{
	char line[128] = "audit ";

	strcat(line, what);
	strncat(line, name, 60);
	strcat(line, "\n");
	(void)!write(1, line, strlen(line));
}

unsigned la_version(unsigned v)
{
	return v;
}

unsigned la_objopen(struct link_map *l, Lmid_t ns, uintptr_t *cookie)
{
	const char *base = strrchr(l->l_name, '/');

	(void)ns;
	(void)cookie;
	if (base && !strncmp(base, "/libldr_", 8))
		say("open ", base + 1);
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *sym, unsigned ndx, uintptr_t *from, uintptr_t *to, unsigned *flags,
		       const char *name)
{
	(void)ndx;
	(void)from;
	(void)to;
	(void)flags;
	if (name[0] == 'l' && name[1] >= '0' && name[1] <= '9')
		say("bind ", name);
	return sym->st_value;
}

Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym *sym, unsigned ndx, uintptr_t *from, uintptr_t *to,
				  La_x86_64_regs *regs, unsigned *flags, const char *name, long *frame)
{
	(void)ndx;
	(void)from;
	(void)to;
	(void)regs;
	(void)flags;
	(void)name;
	*frame = 64; /* so that the exit is called, too */
	calls++;
	return sym->st_value;
}

unsigned la_x86_64_gnu_pltexit(Elf64_Sym *sym, unsigned ndx, uintptr_t *from, uintptr_t *to,
			       const La_x86_64_regs *in, La_x86_64_retval *out, const char *name)
{
	(void)sym;
	(void)ndx;
	(void)from;
	(void)to;
	(void)in;
	(void)out;
	if (calls == 3 && name[0] == 'l')
		say("third call ", name);
	return 0;
}
