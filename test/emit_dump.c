/* SPDX-License-Identifier: MIT
 *
 * emit_dump.c - prints the copy text and the patches of a map (analyzer/map_dump.c)
 */
#include <stdio.h>
#include "emit.h"

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "emit_dump: usage: emit_dump MAP\n");
		return 2;
	}
	return map_dump(argv[1]) ? 1 : 0;
}
