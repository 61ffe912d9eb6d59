/* SPDX-License-Identifier: MIT
 *
 * elf_key.c - the analyzer's key of a module, for fuzz_rtelf.c (an.h and rt.h do not mix)
 */
#include "an.h"

void fuzz_elf_key(const struct module *m, const uint8_t **key, uint32_t *len, uint32_t *kind);

void fuzz_elf_key(const struct module *m, const uint8_t **key, uint32_t *len, uint32_t *kind)
{
	*key = m->key;
	*len = m->key_len;
	*kind = m->key_kind;
}
