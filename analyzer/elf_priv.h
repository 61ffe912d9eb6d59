/* SPDX-License-Identifier: MIT
 *
 * elf_priv.h - what the ELF reader collects for discovery, beyond struct module
 *
 * Everything is copied out of the file in checked form: counts and addresses here are within
 * bounds, but what they mean (an FDE over data, a symbol in the middle of nothing) is not
 * trusted. Addresses are link-time vaddrs below 4 GiB.
 */
#ifndef ELF_PRIV_H
#define ELF_PRIV_H

#include <elf.h>
#undef AT_ENTRY /* auxv constant, not used here; an.h has its own */
#include <stdlib.h>
#include "an.h"

/* growing arrays: VEC_PUSH returns false when memory is out */
#define VEC(type)                                                                                            \
	struct {                                                                                             \
		type *v;                                                                                     \
		uint32_t n, cap;                                                                             \
	}
bool vec_grow(void **v, uint32_t *cap, size_t size);
#define VEC_PUSH(vec, ...)                                                                                   \
	(((vec)->n < (vec)->cap || vec_grow((void **)&(vec)->v, &(vec)->cap, sizeof(*(vec)->v))) &&          \
	 ((vec)->v[(vec)->n++] = (__VA_ARGS__), true))

struct elf_fde {
	uint32_t start, end, lsda; /* vaddr, AN_NONE if none */
};
struct elf_range {
	uint32_t start, end;
};
struct elf_home {
	uint32_t start, end, group;
}; /* which group's range this is */

enum elf_symkind { ELF_S_FUNC, ELF_S_IFUNC, ELF_S_LABEL /* NOTYPE in text */, ELF_S_OBJECT };
struct elf_sym {
	uint32_t vaddr, size;
	const char *name;
	uint8_t kind;
	bool global;
};

/* A word of the image that holds an address of the image after relocation. */
struct elf_ptr {
	uint32_t place, target;
	bool relative; /* whatever other modules are loaded */
};
/* A word that the loader sets to the address of a symbol by name (GOT slots). */
struct elf_slot {
	uint32_t place;
	const char *name;
};

struct elf_priv {
	uint64_t *rowords; /* of elf_ro.c */
	VEC(struct elf_fde) fde; /* ascending start */
	VEC(struct elf_range) text; /* executable sections, or segments when there are none */
	VEC(struct elf_range) plt; /* sections of 16-byte stubs */
	VEC(struct elf_range) data; /* sections that are not code, in executable segments */
	VEC(struct elf_sym) sym; /* defined symbols in text, ascending vaddr */
	VEC(struct elf_ptr) ptr; /* ascending place */
	VEC(struct elf_slot) slot; /* ascending place */
	VEC(uint32_t) root; /* code entered by the loader: e_entry, init, fini, IRELATIVE */
	VEC(uint32_t) pad; /* landing pads */
	VEC(uint32_t) avoid; /* their pieces stay opaque: avoid.c */
	struct elf_range relro;
	struct elf_range rseq; /* section __rseq_cs */
	struct elf_range ehdr; /* section .eh_frame */
	VEC(struct elf_home) home; /* ranges of certain groups, ascending: filled by discovery */
	uint32_t nalt; /* instructions with a prefix variant */
};

static inline struct elf_priv *elf_priv(const struct module *m)
{
	return m->priv;
}

int elf_read_eh(struct module *m); /* elf_eh.c: fde, pad. -1: out of memory */
int elf_read_syms(struct module *m); /* elf_sym.c: sym, ptr, slot, root */
int elf_ro_words(struct module *m); /* elf_ro.c: after it */
const uint8_t *elf_off(const struct module *m, uint64_t off, uint64_t n); /* n bytes of the file, or NULL */
/* value of the 8-byte word at vaddr after relocation; false if not known. *fixed: it cannot change later */
bool elf_word(const struct module *m, uint32_t vaddr, uint64_t *val, bool *fixed);
const char *elf_slot_name(const struct module *m, uint32_t vaddr); /* GOT slot's symbol or NULL */
const struct elf_sym *elf_sym_at(const struct module *m, uint32_t vaddr);
bool elf_fixed(const struct module *m, uint32_t vaddr, uint32_t n); /* read-only after start */

#endif
