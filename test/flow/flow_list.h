/* SPDX-License-Identifier: MIT
 *
 * flow_list.h - control flow from a list of executed addresses (flow_step.c), for walks under test
 */
#ifndef FLOW_LIST_H
#define FLOW_LIST_H

#include <stddef.h>
#include <stdint.h>

#define FLOW_BROKEN (1ull << 63)

struct flow;
struct flow *flow_list(const uint64_t *ip, size_t n); /* the caller keeps the list alive */

#endif
