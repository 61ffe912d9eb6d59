/* SPDX-License-Identifier: MIT
 *
 * nondet.h - instructions that a replay must be told the result of
 */
#ifndef NONDET_H
#define NONDET_H

#include <stdbool.h>
#include <stdint.h>
#include "run.h"

uint32_t nondet_what(const uint8_t *b, unsigned len);
bool nondet_syscall(const uint8_t *b, unsigned len);
bool nondet_base(const uint8_t *b, unsigned len); /* MAP_F_BASES */
bool nondet_other(const uint8_t *b, unsigned len); /* a way into the kernel that is not seen */

#endif
