/* SPDX-License-Identifier: MIT
 *
 * replay.c - runs every file named on the command line, or in the directories named, through a fuzz
 * target's entry function: the corpus as an ordinary test, with no fuzzer needed
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "fuzz.h"

static unsigned files;

static int one(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *b;
	size_t n;

	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		return 1;
	}
	b = malloc(st.st_size ? st.st_size : 1); /* exact: a read behind it is seen */
	n = b ? fread(b, 1, st.st_size, f) : 0;
	fclose(f);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(b, n);
	free(b);
	files++;
	return 0;
}

static int all(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4096];
	int bad = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			bad |= one(path);
		}
	if (d)
		closedir(d);
	return d ? bad : one(dir);
}

int main(int argc, char **argv)
{
	int bad = 0;

	for (int i = 1; i < argc; i++)
		bad |= all(argv[i]);
	printf("%u files\n", files);
	return bad || !files;
}
