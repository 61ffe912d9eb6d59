/* SPDX-License-Identifier: MIT
 *
 * record_check.c - what LD_PRELOAD cannot reach: static, set-uid, 32-bit, not ELF, missing
 *
 * ld.so ignores LD_PRELOAD for set-user-id programs and is not there in static ones; both would
 * run untraced without a word. A script is followed to its interpreter.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "record.h"

#define EXIT_CANNOT 126
#define EXIT_MISSING 127
#define MAX_SCRIPTS 5 /* as the kernel: BINPRM_MAX_RECURSION */

static int refuse(const char *what, const char *why, int status)
{
	fprintf(stderr, "ptrace-record: cannot trace %s: %s\n", what, why);
	return status;
}

static int find(const char *cmd, char *path, size_t size)
{
	const char *p = getenv("PATH"), *end;
	int err = ENOENT;

	if (strchr(cmd, '/')) {
		if ((size_t)snprintf(path, size, "%s", cmd) >= size)
			return ENAMETOOLONG;
		return access(path, X_OK) ? errno : 0;
	}
	for (p = p ? p : "/bin:/usr/bin"; p; p = *end ? end + 1 : NULL) {
		struct stat st;
		int n;

		end = strchrnul(p, ':');
		n = snprintf(path, size, "%.*s%s%s", (int)(end - p), p, end == p ? "" : "/", cmd);
		if (n < 0 || (size_t)n >= size || stat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		if (!access(path, X_OK))
			return 0;
		err = errno;
	}
	return err;
}

static bool has_interp(int fd, const Elf64_Ehdr *eh)
{
	for (int i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), eh->e_phoff + (off_t)i * eh->e_phentsize) != sizeof(ph))
			return false;
		if (ph.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static int check_elf(const char *path, int fd, const Elf64_Ehdr *eh)
{
	struct stat st;

	if (eh->e_ident[EI_CLASS] != ELFCLASS64)
		return refuse(path, "it is a 32-bit program", EXIT_CANNOT);
	if (eh->e_machine != EM_X86_64)
		return refuse(path, "it is not an x86-64 program", EXIT_CANNOT);
	if (!has_interp(fd, eh))
		return refuse(path,
			      "it is statically linked, so LD_PRELOAD has no effect; link it dynamically",
			      EXIT_CANNOT);
	if (fstat(fd, &st))
		return refuse(path, strerror(errno), EXIT_CANNOT);
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	    ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()))
		return refuse(path, "it is set-user-id or set-group-id; run it as its owner", EXIT_CANNOT);
	return 0;
}

/* the interpreter of a script, from its first line */
static bool interpreter(const char *head, size_t n, char *to, size_t size)
{
	size_t i = 2, k = 0;

	while (i < n && (head[i] == ' ' || head[i] == '\t'))
		i++;
	while (i < n && !strchr(" \t\n", head[i]) && k + 1 < size)
		to[k++] = head[i++];
	to[k] = 0;
	return k > 0;
}

static int check(const char *path, int depth)
{
	char head[256] = {0}, interp[256];
	Elf64_Ehdr eh;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	ssize_t n;

	if (fd < 0) /* executable but unreadable: ld.so runs it, the analyzer cannot read it */
		return refuse(path, strerror(errno), EXIT_CANNOT);
	n = read(fd, head, sizeof(head) - 1);
	if (n >= (ssize_t)sizeof(eh) && !memcmp(head, ELFMAG, SELFMAG)) {
		memcpy(&eh, head, sizeof(eh));
		r = check_elf(path, fd, &eh);
	} else if (n > 2 && head[0] == '#' && head[1] == '!' && depth < MAX_SCRIPTS &&
		   interpreter(head, n, interp, sizeof(interp))) {
		r = access(interp, X_OK) ? refuse(interp, strerror(errno), EXIT_CANNOT)
					 : check(interp, depth + 1);
	} else {
		r = refuse(path, "it is neither an ELF program nor a script with #!", EXIT_CANNOT);
	}
	close(fd);
	return r;
}

int record_check(const char *cmd, char *path, size_t size)
{
	struct stat st;
	int err = find(cmd, path, size);

	if (err)
		return refuse(cmd, strerror(err), err == ENOENT ? EXIT_MISSING : EXIT_CANNOT);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return refuse(path, "it is a directory", EXIT_CANNOT);
	return check(path, 0);
}
