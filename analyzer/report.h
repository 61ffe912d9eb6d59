/* SPDX-License-Identifier: MIT
 *
 * report.h - what ptrace-analyze prints about a module
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>
#include "an.h"

void report_stats(const struct module *m, FILE *f);
/* what the copy would log; groups may turn opaque on the way. -1: out of memory */
int report_plan(struct module *m, uint32_t flags, int jobs, FILE *f);
void report_dump(const struct module *m, FILE *f);
/* where: symbol name, or vaddr in hex with 0x. -1 and a message when nothing is there */
int report_explain(const struct module *m, const char *where, FILE *f);
/* and what its copy would log, and for whom. -1: out of memory */
int report_plan_explain(struct module *m, const char *where, uint32_t flags, int jobs, FILE *f);
const char *report_reason(unsigned reason); /* enum map_reason in words */
uint32_t report_where(const struct module *m, const char *where); /* vaddr, AN_NONE if there is none */

#endif
