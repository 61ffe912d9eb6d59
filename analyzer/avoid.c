/* SPDX-License-Identifier: MIT
 *
 * avoid.c - addresses at which relocated code was entered although nothing in the file says so
 *
 * The runtime appends one (hexadecimal, a line each) whenever control lands in the int3 that fill dead
 * bytes. Here each becomes an entry. One that is on the list again was an entry in vain: its group
 * stays opaque.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "elf_priv.h"

static bool listed(const struct elf_priv *x, uint32_t v)
{
	for (uint32_t i = 0; i < x->root.n; i++)
		if (x->root.v[i] == v)
			return true;
	return false;
}

int avoid_read(struct module *m, const char *path, char *err, size_t errlen)
{
	struct elf_priv *x = elf_priv(m);
	FILE *f = fopen(path, "re");
	char line[64], c;
	uint32_t v;
	int rc = 0;

	if (!f) {
		snprintf(err, errlen, "cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	for (unsigned n = 1; !rc && fgets(line, sizeof(line), f); n++) {
		if (sscanf(line, "%x %c", &v, &c) != 1) {
			snprintf(err, errlen, "'%s', line %u is no address: remove the file", path, n);
			rc = -1;
		} else if (elf_is_text(m, v) &&
			   !(listed(x, v) ? VEC_PUSH(&x->avoid, v) : VEC_PUSH(&x->root, v))) {
			snprintf(err, errlen, "out of memory");
			rc = -1;
		}
	}
	fclose(f);
	return rc;
}
