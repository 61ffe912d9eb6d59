/* SPDX-License-Identifier: MIT
 *
 * sort.h - tables of the module, by address
 */
#ifndef SORT_H
#define SORT_H

#include <stddef.h>

/* Sorts n things of `size` bytes by the uint32_t that each begins with; those with the same stay in order. */
void sort_first(void *v, size_t n, size_t size);

#endif
