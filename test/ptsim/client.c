/* SPDX-License-Identifier: MIT
 *
 * client.c - a collector as small as it can be, for the simulator's test: opens an event on a program's first
 * thread, drains it, writes the packets
 *
 *	pt_client [-a AUX_KB] [-s SLEEP_MS] [-c CONFIG] OUT -- PROG ARGS...
 *
 * OUT/pt.bin gets the packets, OUT/records a line for each record of the ring. The event is disabled until the
 * program is executed; each AUX record must follow its predecessor, or the client says so and fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING (8 * 4096ull)

static struct perf_event_mmap_page *page;
static uint8_t *ring, *aux;
static uint64_t aux_size, next_aux;
static FILE *pt, *records;
static int fd, errors;

static void die(const char *what)
{
	fprintf(stderr, "pt_client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t pmu_type(void)
{
	char path[4096];
	unsigned type = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/type", getenv("PTRACE_PMU_DIR"));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%u", &type) != 1)
		die(path);
	fclose(f);
	return type;
}

static void open_event(pid_t pid, uint64_t config)
{
	struct perf_event_attr a = {
		.type = pmu_type(),
		.size = sizeof(a),
		.config = config,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.aux_watermark = (uint32_t)(aux_size / 4),
	};

	fd = (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		die("perf_event_open");
	page = mmap(NULL, 4096 + RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		die("mmap of the ring");
	ring = (uint8_t *)page + page->data_offset;
	page->aux_offset = 4096 + RING;
	page->aux_size = aux_size;
	aux = mmap(NULL, aux_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096 + RING);
	if (aux == MAP_FAILED)
		die("mmap of the AUX area");
}

static void ring_read(uint64_t at, void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = ring[(at + i) & (RING - 1)];
}

/* True when the event has to be enabled again. */
static bool drain(void)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail, to;
	bool truncated = false;

	while (at < head) {
		struct perf_event_header h;
		uint64_t v[3] = {0};

		ring_read(at, &h, sizeof(h));
		ring_read(at + sizeof(h), v, h.size - sizeof(h));
		at += h.size;
		fprintf(records, "%u %lu %lu %lu\n", h.type, v[0], v[1], v[2]);
		if (h.type != PERF_RECORD_AUX)
			continue;
		if (v[0] != next_aux) {
			fprintf(stderr, "pt_client: AUX record at %lu, not %lu\n", v[0], next_aux);
			errors++;
		}
		next_aux = v[0] + v[1];
		truncated |= v[2] & PERF_AUX_FLAG_TRUNCATED;
	}
	__atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
	to = __atomic_load_n(&page->aux_head, __ATOMIC_ACQUIRE);
	for (uint64_t i = page->aux_tail; i < to; i++)
		putc(aux[i & (aux_size - 1)], pt);
	__atomic_store_n(&page->aux_tail, to, __ATOMIC_RELEASE);
	return truncated;
}

static FILE *create(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		die(path);
	return f;
}

int main(int argc, char **argv)
{
	uint64_t config =
		1 << 10 | 1 << 9 | 3 << 14 | 1 << 12 | 1 << 5; /* tsc, mtc, mtc_period 3, ptw, fup_on_ptw */
	struct timespec nap = {0, 0};
	int status, c, go[2];
	bool again = true;
	pid_t pid;

	aux_size = 64 << 10;
	while ((c = getopt(argc, argv, "+a:s:c:")) != -1) {
		if (c == 'a')
			aux_size = strtoull(optarg, NULL, 0) << 10;
		else if (c == 's')
			nap.tv_nsec = strtol(optarg, NULL, 0) * 1000000;
		else if (c == 'c')
			config |= strtoull(optarg, NULL, 0);
	}
	if (argc - optind < 2 || pipe(go) < 0)
		return 2;
	pid = fork();
	if (pid == 0) {
		char b;

		close(go[1]);
		if (read(go[0], &b, 1) != 1)
			_exit(126);
		close(go[0]);
		execv(argv[optind + 1], argv + optind + 1);
		_exit(127);
	}
	close(go[0]);
	pt = create(argv[optind], "pt.bin");
	records = create(argv[optind], "records");
	open_event(pid, config);
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 || write(go[1], "", 1) != 1)
		die("enabling");
	while (again) {
		struct pollfd p = {fd, POLLIN, 0};

		if (poll(&p, 1, 50) < 0)
			die("poll");
		if (nap.tv_nsec)
			nanosleep(&nap, NULL);
		again = !(p.revents & POLLHUP);
		if (drain() && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			die("enabling again");
	}
	if (waitpid(pid, &status, 0) < 0)
		die("waitpid");
	if (fclose(pt) | fclose(records))
		die("writing");
	munmap(aux, aux_size);
	munmap(page, 4096 + RING);
	close(fd);
	return errors ? 1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
