/* SPDX-License-Identifier: MIT
 *
 * map_out.h - a map's sections, one after the other, into its file
 *
 * A map is as large as all else that an analysis keeps: it goes out as it is made, through a small buffer.
 */
#ifndef MAP_OUT_H
#define MAP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "map.h"

struct out;

/* NULL with errno set */
struct out *out_open(const char *path, struct map_head *h);
/* the next section, in the order of enum map_section; what follows is its bytes */
void out_section(struct out *o);
void out_add(struct out *o, const void *p, size_t n);
/* the section's next n bytes, to be filled in at once: at most OUT_ROOM */
void *out_room(struct out *o, size_t n);
#define OUT_ROOM 65536
void out_fill(struct out *o, uint8_t byte, size_t n);
uint64_t out_size(const struct out *o); /* bytes of the section so far */
/* the head, if that was all, and the end. 0, or -1 with errno of the first failure */
int out_close(struct out *o, bool all);

#endif
