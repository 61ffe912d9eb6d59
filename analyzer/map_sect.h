/* SPDX-License-Identifier: MIT
 *
 * map_sect.h - state of one map_write, shared with the file that fills the sections
 */
#ifndef MAP_SECT_H
#define MAP_SECT_H

#include "emit.h"

struct buf {
	uint8_t *p;
	size_t n, cap;
};

struct mw {
	struct module *m;
	uint32_t flags;
	struct plan **plan;
	struct emitted **em;
	const char **why; /* per group: why it could not be emitted */
	struct patches ps;
	uint32_t *base, *opbase, *blockbase, *sitebase; /* per group: first copy byte, op, block, site */
	uint32_t ncopy, nop, nblock, ninsn, nsite, nxlat, name;
	struct out *out;
	struct buf strings, buf; /* buf: the section being made */
	uint32_t *site_of; /* per block of a group: its site, AN_NONE if it has none */
	uint32_t insn, group; /* of what is put next */
	const struct an_group *disagree; /* plan and copy of which do not fit together */
};

/* to w->out. 0, or -1 with err: the map is none */
int sect_all(struct mw *w, char *err, size_t errlen);

#endif
