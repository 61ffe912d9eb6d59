/* SPDX-License-Identifier: MIT
 *
 * discover_names.c - functions known by name, and where the walk starts
 *
 * Names matter for two properties no code shows: a call that returns twice, and a call that
 * never returns. In stripped files the names of imported functions come from the relocations
 * of the GOT slots that PLT stubs jump through.
 */
#include <string.h>
#include "disc.h"

static const char *const twice[] = {"setjmp",	    "_setjmp", "__setjmp", "sigsetjmp",
				    "__sigsetjmp",  "vfork",   "__vfork",  "getcontext",
				    "__getcontext", "savectx", NULL};
/* reserved names: nobody else may define them */
static const char *const noret[] = {"abort",
				    "exit",
				    "_exit",
				    "_Exit",
				    "quick_exit",
				    "longjmp",
				    "_longjmp",
				    "siglongjmp",
				    "__longjmp_chk",
				    "__libc_longjmp",
				    "__libc_siglongjmp",
				    "pthread_exit",
				    "__stack_chk_fail",
				    "__fortify_fail",
				    "__chk_fail",
				    "__assert_fail",
				    "__assert_perror_fail",
				    "__assert",
				    "__libc_fatal",
				    "__cxa_throw",
				    "__cxa_rethrow",
				    "__cxa_bad_cast",
				    "__cxa_bad_typeid",
				    "__cxa_throw_bad_array_new_length",
				    "_Unwind_Resume",
				    "_ZSt9terminatev",
				    NULL};
/* only where imported: a program may have its own function of that name that returns */
static const char *const noret_import[] = {"err", "errx", "verr", "verrx", NULL};

static bool is_in(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static int class_of(const char *name, bool import)
{
	if (is_in(twice, name))
		return NAME_TWICE;
	if (is_in(noret, name) || (import && is_in(noret_import, name)) ||
	    (!strncmp(name, "_ZSt", 4) && name[4] >= '1' && name[4] <= '9' && strstr(name, "__throw_")))
		return NAME_NORET;
	return NAME_PLAIN;
}

static int cmp_name(const void *a, const void *b)
{
	const struct disc_name *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

bool disc_names(struct disc *d)
{
	for (uint32_t i = 0; i < d->x->sym.n; i++) {
		const struct elf_sym *s = &d->x->sym.v[i];
		int c = s->kind == ELF_S_FUNC ? class_of(s->name, false) : NAME_PLAIN;

		if (c && !VEC_PUSH(&d->cls, (struct disc_name){s->vaddr, c}))
			return false;
	}
	for (uint32_t i = 0; i < d->x->slot.n; i++) {
		const struct elf_slot *s = &d->x->slot.v[i];
		int c = class_of(s->name, true);

		if (c && !VEC_PUSH(&d->cls, (struct disc_name){s->place, c}))
			return false;
	}
	if (d->cls.n)
		qsort(d->cls.v, d->cls.n, sizeof(*d->cls.v), cmp_name);
	return true;
}

static int lookup(const struct disc *d, uint32_t v)
{
	uint32_t lo = 0, hi = d->cls.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->cls.v[mid].vaddr < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->cls.n && d->cls.v[lo].vaddr == v ? (int)d->cls.v[lo].cls : NAME_PLAIN;
}

/* target: a function, a PLT stub (`[endbr64] [bnd] jmp *slot(%rip)`) or a GOT slot */
int disc_name_class(const struct disc *d, uint32_t target)
{
	const uint8_t *p;
	uint32_t o = 0;
	int32_t disp;
	int c = d->cls.n ? lookup(d, target) : NAME_PLAIN;

	if (c || !d->cls.n || !disc_in(d, target) || !(p = elf_at(d->m, target, 11)))
		return c;
	if (!memcmp(p, "\xf3\x0f\x1e\xfa", 4))
		o = 4;
	if (p[o] == 0xf2)
		o++;
	if (p[o] != 0xff || p[o + 1] != 0x25)
		return NAME_PLAIN;
	memcpy(&disp, p + o + 2, 4);
	return lookup(d, target + o + 6 + disp);
}

static void seed_symbols(struct disc *d)
{
	for (uint32_t i = 0; i < d->x->sym.n; i++) {
		const struct elf_sym *s = &d->x->sym.v[i];

		switch (s->kind) {
		case ELF_S_FUNC:
		case ELF_S_IFUNC:
			/* compilers name split-off parts NAME.cold, NAME.warm: reached by jumps only */
			if (!s->global && (strstr(s->name, ".cold") || strstr(s->name, ".warm")))
				break;
			if (disc_piece(d, s->vaddr) != AN_NONE)
				disc_push(d, s->vaddr, ST_ENTRY | (s->global ? ST_TAKEN : 0));
			break;
		case ELF_S_OBJECT:
			for (uint32_t k = 0; k < s->size && disc_in(d, s->vaddr + k); k++)
				d->st[s->vaddr + k - d->lo] |= ST_DATA;
			break;
		}
	}
}

/* Where there are no relocations every aligned word of the data may be an address. */
static void seed_words(struct disc *d)
{
	for (uint32_t i = 0; i < d->m->nseg; i++) {
		const struct map_seg *s = &d->m->seg[i];
		const uint8_t *p = d->m->file + s->off;

		if (s->prot & PF_X)
			continue;
		for (uint64_t o = -s->vaddr & 7; o + 8 <= s->filesz; o += 8) {
			uint64_t v;

			memcpy(&v, p + o, 8);
			if (v >= d->lo && v < d->m->text_hi)
				disc_named(d, s->vaddr + o, v);
		}
	}
}

void disc_seed(struct disc *d)
{
	for (uint32_t i = 0; i < d->piece.n; i++) {
		const struct piece *p = &d->piece.v[i];
		const uint8_t *b;

		if (p->kind == PC_GAP)
			continue;
		disc_push(d, p->start, p->kind == PC_STUB ? ST_ENTRY : 0);
		/* lazy binding: the slot points behind the stub's jump at first */
		b = p->kind == PC_STUB && p->end - p->start == 16 ? elf_at(d->m, p->start, 16) : NULL;
		if (b && b[0] == 0xff && b[1] == 0x25 && b[6] == 0x68)
			disc_push(d, p->start + 6, ST_ENTRY | ST_TAKEN);
	}
	seed_symbols(d);
	for (uint32_t i = 0; i < d->x->root.n; i++)
		if (disc_piece(d, d->x->root.v[i]) != AN_NONE)
			disc_push(d, d->x->root.v[i], ST_ENTRY | ST_TAKEN);
	for (uint32_t i = 0; i < d->x->pad.n; i++)
		if (disc_piece(d, d->x->pad.v[i]) != AN_NONE)
			disc_push(d, d->x->pad.v[i], ST_LAND);
	for (uint32_t i = 0; i < d->x->ptr.n; i++) {
		disc_label(d, d->x->ptr.v[i].target);
		disc_named(d, d->x->ptr.v[i].place, d->x->ptr.v[i].target);
	}
	if (!d->m->pie)
		seed_words(d);
}
