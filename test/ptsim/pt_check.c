/* SPDX-License-Identifier: MIT
 *
 * pt_check.c - does libipt alone make the executed addresses out of what ptsim wrote?
 *
 *	pt_check OUT [IPS]
 *
 * Nothing of this project decodes here: libipt's instruction decoder over OUT/pt.bin, with the images of OUT/images,
 * must give the addresses of IPS (OUT/ips), all of them, in order, where nothing was lost. After an overflow it must go on
 * where IPS says so ("ovf"); where a record in OUT/records says that the stream was truncated, at the next PSB (truth.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NONE (~0ull)

static const char *dir;
static struct pt_image *image;
static const char *at, *end; /* of IPS */
static unsigned long executed, equal, overflows, gaps, async;

static void *map_file(const char *path, size_t *size)
{
	struct stat st;
	void *p;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "pt_check: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	*size = (size_t)st.st_size;
	p = *size ? mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) : "";
	close(fd);
	return p;
}

static const char *in(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void images(void)
{
	FILE *f = fopen(in("images"), "r");
	char line[8192];

	image = pt_image_alloc("pt_check");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long addr, offset, size;
		char *p = strrchr(line, '@');

		if (!p || sscanf(p, "@%lx:%lx:%lx", &addr, &offset, &size) != 3)
			continue;
		*p = 0;
		if (pt_image_add_file(image, line, offset, size, NULL, addr) < 0) {
			fprintf(stderr, "pt_check: image %s is not taken\n", line);
			exit(2);
		}
	}
	if (f)
		fclose(f);
}

static const char *next_line(void)
{
	const char *line = at, *nl;

	if (at >= end)
		return NULL;
	nl = memchr(at, '\n', (size_t)(end - at));
	at = nl ? nl + 1 : end;
	return line;
}

/* The next executed address. NONE at the end, and where an overflow resolved that the stream does not tell of. */
static uint64_t expected(void)
{
	const char *line;

	while ((line = next_line()) && *line == 'p')
		;
	if (!line || *line == 'o')
		return NONE;
	executed++;
	return strtoull(line, NULL, 16);
}

static int report(const char *what, uint64_t off, uint64_t ip)
{
	printf("pt_check: %s: after %lu executed instructions, at %#lx of the stream, at %lx\n", what,
	       executed, off, ip);
	return 1;
}

/* All that is left was lost: IPS must not say either that the stream can be entered once more behind from. */
static int lost_from(uint64_t from)
{
	const char *line;
	uint64_t psb;

	while ((line = next_line())) {
		if (sscanf(line, "psb %lu", &psb) == 1 && psb >= from)
			return report("a PSB that libipt does not see", psb, 0);
		executed += *line != 'p' && *line != 'o';
	}
	return 0;
}

/* On to the next line that begins so. */
static bool skip_to(const char *word)
{
	const char *line;

	while ((line = next_line())) {
		if (!strncmp(line, word, strlen(word)))
			return true;
		executed += *line != 'p' && *line != 'o';
	}
	return false;
}

/* Decode what begins with the PSB that the decoder is at. 0 at the end, 1 when it differs. */
static int decode(struct pt_insn_decoder *d, int status, uint64_t base)
{
	struct pt_insn insn = {0};
	uint64_t off = 0, want;

	for (;;) {
		while (status >= 0 && status & pts_event_pending) {
			struct pt_event ev;

			status = pt_insn_event(d, &ev, sizeof(ev));
			if (status < 0)
				break;
			async += ev.type == ptev_async_disabled;
			if (ev.type == ptev_overflow) {
				overflows++;
				if (!skip_to("ovf"))
					return report("an overflow that there was not", base, insn.ip);
			}
		}
		pt_insn_get_offset(d, &off);
		if (status == -pte_eos || (status >= 0 && status & pts_eos))
			return 0;
		if (status >= 0)
			status = pt_insn_next(d, &insn, sizeof(insn));
		if (status == -pte_eos)
			return 0;
		if (status < 0)
			return report(pt_errstr(pt_errcode(status)), base + off, insn.ip);
		want = expected();
		if (want != insn.ip) {
			report("libipt goes elsewhere", base + off, insn.ip);
			printf("pt_check: executed was %lx\n", want);
			return 1;
		}
		equal++;
	}
}

/* A part of the stream in which nothing is missing. 1 when it differs. *synced: it has a PSB where it can be entered. */
static int part(uint8_t *begin, uint8_t *till, uint64_t base, bool *synced)
{
	struct pt_config config;
	struct pt_insn_decoder *d;
	char word[32];
	uint64_t off;
	int status, r = 0;

	pt_config_init(&config);
	config.begin = begin;
	config.end = till;
	config.mtc_freq = 3;
	config.cpuid_0x15_eax = 2;
	config.cpuid_0x15_ebx = 168;
	d = pt_insn_alloc_decoder(&config);
	if (!d || pt_insn_set_image(d, image) < 0)
		exit(2);
	status = pt_insn_sync_forward(d);
	*synced = status >= 0;
	if (*synced) {
		pt_insn_get_sync_offset(d, &off);
		snprintf(word, sizeof(word), "psb %lu\n", base + off);
		r = base + off && !skip_to(word) ? report("a PSB that there was not", base + off, 0)
						 : decode(d, status, base);
	}
	pt_insn_free_decoder(d);
	return r;
}

int main(int argc, char **argv)
{
	uint64_t from = 0, type, offset, size, flags;
	uint8_t *stream;
	size_t npt, nips;
	bool synced = true;
	FILE *f;

	if (argc != 2 && argc != 3)
		return 2;
	dir = argv[1];
	stream = map_file(in("pt.bin"), &npt);
	at = map_file(argc == 3 ? argv[2] : in("ips"), &nips);
	end = at + nips;
	images();
	f = fopen(in("records"), "r");
	while (f && fscanf(f, "%lu %lu %lu %lu", &type, &offset, &size, &flags) == 4) {
		if (type != 11 || !(flags & 1)) /* PERF_RECORD_AUX, PERF_AUX_FLAG_TRUNCATED */
			continue;
		gaps++;
		if (offset + size > from && part(stream + from, stream + offset + size, from, &synced))
			return 1;
		from = offset + size;
		synced = false;
	}
	if (from < npt && part(stream + from, stream + npt, from, &synced))
		return 1;
	if (!synced && lost_from(from))
		return 1;
	if (at < end) {
		printf("pt_check: libipt ends after %lu instructions, %lx was executed then\n", executed,
		       expected());
		return 1;
	}
	printf("pt_check: %lu instructions, %lu equal, %lu lost; %lu overflows, %lu gaps, %lu asynchronous\n",
	       executed, equal, executed - equal, overflows, gaps, async);
	return !equal;
}
