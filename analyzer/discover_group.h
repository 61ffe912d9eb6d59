/* SPDX-License-Identifier: MIT
 *
 * discover_group.h - making the module's groups out of discovery's state
 */
#ifndef DISCOVER_GROUP_H
#define DISCOVER_GROUP_H

#include "disc.h"

/* sets g->range to the pieces of the group whose root is r; -1: out of memory */
int group_ranges(struct disc *d, uint32_t r, struct an_group *g);
/* fills m->group, opaque, live_byte; -1: out of memory */
int group_finish(struct disc *d);
/* discover_link.c: callees, addr_taken, tailx of finished groups; -1: out of memory */
int group_link(struct disc *d);

#endif
