/* SPDX-License-Identifier: MIT
 *
 * record.h - what the files of ptrace-record share
 */
#ifndef RECORD_H
#define RECORD_H

#include <stddef.h>

/* finds the command as the shell would and says, in one line, what cannot be traced. 0 with the
 * path filled in, else the exit status to use (126, 127) */
int record_check(const char *cmd, char *path, size_t size);

#endif
