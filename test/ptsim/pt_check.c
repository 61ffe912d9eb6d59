/* SPDX-License-Identifier: MIT
 *
 * pt_check.c - does libipt alone make the executed addresses out of what ptsim wrote?
 *
 *	pt_check OUT
 *
 * Nothing of this project decodes here: libipt's instruction decoder over OUT/pt.bin, with the images of OUT/images,
 * must give the addresses of OUT/ips, all of them, in order. Where the stream has an overflow, addresses of OUT/ips
 * may be missing: at most as many as its line "lost N" there says.
 */
#include <errno.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

static const char *dir;

static void *map_file(const char *name, size_t *size)
{
	char path[4096];
	struct stat st;
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "pt_check: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	*size = (size_t)st.st_size;
	p = *size ? mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) : "";
	close(fd);
	return p;
}

static struct pt_image *images(void)
{
	struct pt_image *image = pt_image_alloc("pt_check");
	char path[4096], line[8192];
	FILE *f;

	snprintf(path, sizeof(path), "%s/images", dir);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long addr, offset, size;
		char *at = strrchr(line, '@');

		if (!at || sscanf(at, "@%lx:%lx:%lx", &addr, &offset, &size) != 3)
			continue;
		*at = 0;
		if (pt_image_add_file(image, line, offset, size, NULL, addr) < 0) {
			fprintf(stderr, "pt_check: image %s is not taken\n", line);
			exit(2);
		}
	}
	if (f)
		fclose(f);
	return image;
}

static struct {
	const char *p, *end;
	unsigned long n;
} want;

static uint64_t expected(void)
{
	char *e;
	uint64_t v;

	if (want.p >= want.end)
		return ~0ull;
	v = strtoull(want.p, &e, 16);
	want.p = e + 1;
	want.n++;
	return v;
}

int main(int argc, char **argv)
{
	struct pt_config config;
	struct pt_insn_decoder *d;
	size_t npt, nips;
	unsigned long events = 0, async = 0;
	int status;

	if (argc != 2)
		return 2;
	dir = argv[1];
	pt_config_init(&config);
	config.begin = map_file("pt.bin", &npt);
	config.end = config.begin + npt;
	config.mtc_freq = 3;
	config.cpuid_0x15_eax = 2;
	config.cpuid_0x15_ebx = 168;
	want.p = map_file("ips", &nips);
	want.end = want.p + nips;
	d = pt_insn_alloc_decoder(&config);
	if (!d || pt_insn_set_image(d, images()) < 0)
		return 2;
	status = pt_insn_sync_forward(d);
	while (status >= 0) {
		struct pt_insn insn;
		uint64_t w;

		while (status & pts_event_pending) {
			struct pt_event ev;

			status = pt_insn_event(d, &ev, sizeof(ev));
			if (status < 0)
				break;
			events++;
			async += ev.type == ptev_async_disabled;
		}
		if (status < 0 || status & pts_eos)
			break;
		status = pt_insn_next(d, &insn, sizeof(insn));
		if (status < 0 && insn.iclass == ptic_error)
			break;
		w = expected();
		if (insn.ip != w) {
			printf("pt_check: instruction %lu: libipt %lx, executed %lx\n", want.n, insn.ip, w);
			return 1;
		}
	}
	if (status < 0 && status != -pte_eos) {
		uint64_t off = 0;

		pt_insn_get_offset(d, &off);
		printf("pt_check: after %lu instructions, at %#lx of %#zx: %s; next executed %lx\n", want.n,
		       off, npt, pt_errstr(pt_errcode(status)), expected());
		return 1;
	}
	if (want.p < want.end) {
		printf("pt_check: libipt ends after %lu instructions, %lx was executed then\n", want.n,
		       expected());
		return 1;
	}
	printf("pt_check: %lu instructions, equal; %lu events, %lu asynchronous\n", want.n, events, async);
	return !want.n;
}
