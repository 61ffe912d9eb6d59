/* SPDX-License-Identifier: MIT
 *
 * main.c - ptrace-analyze: ELF in, map out
 *
 *   options ─▶ elf_open ─▶ discover ─▶ [--stats, --explain, --dump] ─▶ map_write
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "report.h"

enum { EX_OK = 0, EX_USAGE = 1, EX_INPUT = 2, EX_REFUSED = 3, EX_OUTPUT = 4 };

/* map_write.c */
int map_write(struct module *m, const char *path, uint32_t flags, int jobs, char *err, size_t errlen);

struct options {
	const char *out, *cache, *explain, *avoid, *file;
	bool stats, dump, print_path;
	uint32_t flags, place;
	int jobs;
};

static void usage(FILE *f)
{
	fputs("Usage: ptrace-analyze [OPTION]... FILE\n"
	      "Analyze an x86-64 ELF file and write its log-site map to the cache.\n\n"
	      "  -o, --output=FILE     write the map to FILE, not to the cache\n"
	      "      --cache=DIR       cache directory ($XDG_CACHE_HOME/ptrace or ~/.cache/ptrace)\n"
	      "      --avoid=FILE      places where code was entered unexpectedly (default: MAP.avoid)\n"
	      "      --print-path      print the path of the map on standard output\n"
	      "      --verify          also log every effective address, for checking\n"
	      "      --order           also log the time around locked instructions\n"
	      "      --cf=pt|soft      control flow is recorded by the processor (Intel PT), or in the log\n"
	      "                        (default: soft)\n"
	      "      --ptwrite[=BUDGET]  with --cf=pt: values leave through ptwrite, but for sites that are\n"
	      "                        expected to run more than BUDGET times a call (default: 1; or all)\n"
	      "      --nondet          for replay: instructions like rdtsc go through the runtime\n"
	      "      --sparse          for replay: relocate only what has system calls or such instructions\n"
	      "      --place=OFFSET    for replay: stop at the instruction there, to compare (wants -o)\n"
	      "  -j, --jobs=N          use N threads (default: as many as processors)\n"
	      "      --stats           print statistics; without -o or --print-path, write no map\n"
	      "      --explain=WHERE   show what is known about the function at WHERE (name or address)\n"
	      "      --dump            print every group, block and instruction found\n"
	      "  -h, --help            show this help\n"
	      "  -V, --version         show the version\n\n"
	      "Exit status: 0 done; 1 wrong usage; 2 the file cannot be read or is no x86-64 ELF file;\n"
	      "3 the file cannot be analyzed; 4 the map cannot be written.\n",
	      f);
}

/* of --ptwrite: what a site may be expected to run a call, rounded down to a power of two */
static bool budget(const char *arg, uint32_t *flags)
{
	unsigned long n = 1;
	uint32_t level = 0;
	char *end;

	if (arg && !strcmp(arg, "all")) {
		level = MAP_BUDGET_ALL;
	} else if (arg) {
		n = strtoul(arg, &end, 10);
		if (end == arg || *end || n < 1 || n > 1ul << (MAP_BUDGET_ALL - 1))
			return false;
		while (n >> (level + 1))
			level++;
	}
	*flags = (*flags & ~MAP_F_BUDGET(0xff)) | MAP_F_PTW | MAP_F_BUDGET(level);
	return true;
}

static int parse(int argc, char **argv, struct options *o)
{
	enum {
		CACHE = 256,
		PRINT,
		VERIFY,
		ORDER,
		CF,
		PTWRITE,
		NONDET,
		SPARSE,
		PLACE,
		STATS,
		EXPLAIN,
		DUMP,
		AVOID
	};
	static const struct option longopt[] = {
		{"output", required_argument, NULL, 'o'},  {"cache", required_argument, NULL, CACHE},
		{"avoid", required_argument, NULL, AVOID}, {"print-path", no_argument, NULL, PRINT},
		{"verify", no_argument, NULL, VERIFY},	   {"order", no_argument, NULL, ORDER},
		{"cf", required_argument, NULL, CF},	   {"ptwrite", optional_argument, NULL, PTWRITE},
		{"nondet", no_argument, NULL, NONDET},	   {"sparse", no_argument, NULL, SPARSE},
		{"place", required_argument, NULL, PLACE}, {"jobs", required_argument, NULL, 'j'},
		{"stats", no_argument, NULL, STATS},	   {"explain", required_argument, NULL, EXPLAIN},
		{"dump", no_argument, NULL, DUMP},	   {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	   {0}};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "o:j:hV", longopt, NULL)) != -1)
		switch (c) {
		case 'o':
			o->out = optarg;
			break;
		case CACHE:
			o->cache = optarg;
			break;
		case AVOID:
			o->avoid = optarg;
			break;
		case PRINT:
			o->print_path = true;
			break;
		case VERIFY:
			o->flags |= MAP_F_VERIFY;
			break;
		case ORDER:
			o->flags |= MAP_F_ORDER;
			break;
		case CF:
			if (strcmp(optarg, "pt") && strcmp(optarg, "soft")) {
				fprintf(stderr, "ptrace-analyze: --cf wants pt or soft, not '%s'\n", optarg);
				return EX_USAGE;
			}
			o->flags &= ~MAP_F_PT;
			o->flags |= strcmp(optarg, "pt") ? 0 : MAP_F_PT;
			break;
		case PTWRITE:
			if (!budget(optarg, &o->flags)) {
				fprintf(stderr,
					"ptrace-analyze: --ptwrite wants a number from 1 to 16384, or all, "
					"not '%s'\n",
					optarg);
				return EX_USAGE;
			}
			break;
		case NONDET:
			o->flags |= MAP_F_NONDET;
			break;
		case SPARSE:
			o->flags |= MAP_F_NONDET | MAP_F_SPARSE;
			break;
		case PLACE:
			errno = 0;
			o->place = (uint32_t)strtoull(optarg, &end, 16);
			if (*end || end == optarg || errno) {
				fprintf(stderr,
					"ptrace-analyze: --place wants a link-time address, hexadecimal, not "
					"'%s'\n",
					optarg);
				return EX_USAGE;
			}
			break;
		case STATS:
			o->stats = true;
			break;
		case EXPLAIN:
			o->explain = optarg;
			break;
		case DUMP:
			o->dump = true;
			break;
		case 'j':
			o->jobs = strtol(optarg, &end, 10);
			if (*end || end == optarg || o->jobs < 1 || o->jobs > 1024) {
				fprintf(stderr,
					"ptrace-analyze: --jobs wants a number from 1 to 1024, not '%s'\n",
					optarg);
				return EX_USAGE;
			}
			break;
		case 'h':
			usage(stdout);
			exit(EX_OK);
		case 'V':
			puts("ptrace-analyze 0.1");
			exit(EX_OK);
		default:
			fputs("Try 'ptrace-analyze --help'.\n", stderr);
			return EX_USAGE;
		}
	if (o->place != AN_NONE && !o->out) {
		fputs("ptrace-analyze: --place wants -o: such a map is for one replay, not for the cache\n",
		      stderr);
		return EX_USAGE;
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "ptrace-analyze: give exactly one file; try 'ptrace-analyze --help'\n");
		return EX_USAGE;
	}
	if ((o->flags & MAP_F_PTW) && !(o->flags & MAP_F_PT)) {
		fputs("ptrace-analyze: --ptwrite goes with --cf=pt\n", stderr);
		return EX_USAGE;
	}
	o->file = argv[optind];
	return EX_OK;
}

static int make_dirs(char *path)
{
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			if (mkdir(path, 0777) && errno != EEXIST)
				return -1;
			*p = '/';
		}
	return 0;
}

/* "-vo": the letters of the flags; "-pw3": and the budget */
static void put_flags(char *to, uint32_t flags)
{
	if (flags)
		*to++ = '-';
	for (uint32_t i = 0; i < sizeof(MAP_F_LETTERS) - 1; i++)
		if (flags >> i & 1)
			*to++ = MAP_F_LETTERS[i];
	to += flags & MAP_F_PTW ? sprintf(to, "%u", MAP_BUDGET(flags)) : 0;
	*to = 0;
}

/* $XDG_CACHE_HOME/ptrace/KEY-VERSION[-LETTERS].ptmap, or under --cache. NULL without a home directory. */
static char *cache_path(const struct module *m, const struct options *o)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char hex[65], kind[sizeof(MAP_F_LETTERS) + 4], *path = NULL;
	int n;

	put_flags(kind, o->flags);

	for (uint32_t i = 0; i < m->key_len; i++)
		sprintf(hex + 2 * i, "%02x", m->key[i]);
	if (o->cache)
		n = asprintf(&path, "%s/%s-%d%s.ptmap", o->cache, hex, MAP_VERSION, kind);
	else if (xdg && *xdg == '/')
		n = asprintf(&path, "%s/ptrace/%s-%d%s.ptmap", xdg, hex, MAP_VERSION, kind);
	else if (home && *home)
		n = asprintf(&path, "%s/.cache/ptrace/%s-%d%s.ptmap", home, hex, MAP_VERSION, kind);
	else
		return NULL;
	return n < 0 ? NULL : path;
}

/* The list of a cached map is used without being asked for. */
static int read_avoid(struct module *m, const struct options *o, char *err, size_t errlen)
{
	char *map = NULL, *path = NULL;
	int rc = 0;

	if (o->avoid)
		return avoid_read(m, o->avoid, err, errlen);
	if (!o->out && (map = cache_path(m, o)) && asprintf(&path, "%s.avoid", map) >= 0 &&
	    !access(path, F_OK))
		rc = avoid_read(m, path, err, errlen);
	free(map);
	free(path);
	return rc;
}

static int write_map(struct module *m, const struct options *o)
{
	char err[256] = "", *path = o->out ? strdup(o->out) : cache_path(m, o);
	int rc = EX_OUTPUT;

	if (!path) {
		fprintf(stderr, "ptrace-analyze: no place for the map: set HOME, or give --cache or -o\n");
		return EX_OUTPUT;
	}
	if (!o->out && make_dirs(path)) {
		fprintf(stderr, "ptrace-analyze: cannot create the directory of '%s': %s\n", path,
			strerror(errno));
	} else if (map_write(m, path, o->flags, o->jobs, err, sizeof(err))) {
		fprintf(stderr, "ptrace-analyze: cannot write the map of '%s': %s\n", o->file, err);
	} else {
		if (o->print_path)
			puts(path);
		rc = EX_OK;
	}
	free(path);
	return rc;
}

#define HEAP_PER_BYTE 32 /* of the file: more than the analysis takes at its peak, mostly */
#define MOST 0x7fffffff /* that mallopt takes, but for: */
#define MOST_PIECE (32 << 20)

/* heap_shape - arrays per group come and go: giving each back to the kernel costs more than the work on it.
 * And the heap is asked for in one piece, so that the kernel can be told to fill it with huge pages: page
 * faults took a tenth of the time. Only what is touched of it is taken. */
static void heap_shape(const char *file)
{
	const uintptr_t huge = 2u << 20;
	struct stat st;
	uintptr_t lo;
	void *p;

	mallopt(M_MMAP_THRESHOLD, MOST_PIECE);
	mallopt(M_TRIM_THRESHOLD, MOST);
	if (!stat(file, &st) && S_ISREG(st.st_mode)) {
		/* and less than what is trimmed */
		mallopt(M_TOP_PAD, st.st_size < MOST / HEAP_PER_BYTE ? (int)st.st_size * HEAP_PER_BYTE
								     : MOST - (8 << 20));
		p = malloc(1 << 20);
		lo = ((uintptr_t)p + huge - 1) & ~(huge - 1);
		if (lo < (uintptr_t)sbrk(0))
			madvise((void *)lo, (uintptr_t)sbrk(0) - lo, MADV_HUGEPAGE); /* a wish */
		free(p);
	}
	mallopt(M_TOP_PAD, 4 << 20);
}

int main(int argc, char **argv)
{
	struct options o = {.place = AN_NONE};
	char err[256] = "";
	struct module *m;
	int rc;

	if ((rc = parse(argc, argv, &o)))
		return rc;
	heap_shape(o.file);
	if (!o.jobs)
		o.jobs = sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
	if (!(m = elf_open(o.file, err, sizeof(err)))) {
		fprintf(stderr, "ptrace-analyze: cannot analyze '%s': %s\n", o.file, err);
		return EX_INPUT;
	}
	m->mapflags = o.flags;
	m->place = o.place;
	if (read_avoid(m, &o, err, sizeof(err)) || discover(m, o.jobs, err, sizeof(err))) {
		fprintf(stderr, "ptrace-analyze: cannot analyze '%s': %s\n", o.file, err);
		elf_close(m);
		return EX_REFUSED;
	}
	rc = EX_OK;
	if (o.stats)
		report_stats(m, stdout);
	if (o.dump)
		report_dump(m, stdout);
	if (o.explain && report_explain(m, o.explain, stdout))
		rc = EX_USAGE;
	else if (o.explain && report_plan_explain(m, o.explain, o.flags, o.jobs, stdout)) {
		fprintf(stderr, "ptrace-analyze: cannot plan '%s': out of memory\n", o.file);
		rc = EX_REFUSED;
	}
	if (!rc && (o.out || o.print_path || !(o.stats || o.dump || o.explain)))
		rc = write_map(m, &o);
	else if (!rc && o.stats && !o.explain && report_plan(m, o.flags, o.jobs, stdout)) {
		fprintf(stderr, "ptrace-analyze: cannot plan '%s': out of memory\n", o.file);
		rc = EX_REFUSED;
	}
	elf_close(m);
	return rc;
}
