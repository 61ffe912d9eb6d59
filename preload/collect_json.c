/* SPDX-License-Identifier: MIT
 *
 * collect_json.c - run.json, proc.json, stop.bin; cleans the registry of live processes
 *
 * Files are replaced by rename, so a reader always sees a complete one.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "collect.h"

static const char *const stop_name[] = RUN_STOP_NAMES;

static void put_string(FILE *f, const char *s, size_t n)
{
	fputc('"', f);
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = s[i];

		if (ch == '"' || ch == '\\')
			fprintf(f, "\\%c", ch);
		else if (ch < 0x20 || ch == 0x7f)
			fprintf(f, "\\u%04x", ch);
		else
			fputc(ch, f);
	}
	fputc('"', f);
}

/* the NUL-separated strings of a /proc file as a JSON array; only those that `keep` wants */
static char *strings(uint32_t pid, const char *file, bool (*keep)(const char *))
{
	char name[64], *text = NULL, *line = NULL;
	size_t size = 0, cap = 0;
	ssize_t n;
	bool first = true;
	FILE *in, *out = open_memstream(&text, &size);

	snprintf(name, sizeof(name), "/proc/%u/%s", pid, file);
	in = fopen(name, "re");
	fputc('[', out);
	while (in && (n = getdelim(&line, &cap, 0, in)) > 0) {
		if (line[n - 1] == 0)
			n--;
		if (keep && !keep(line))
			continue;
		if (!first)
			fputs(", ", out);
		put_string(out, line, n);
		first = false;
	}
	fputc(']', out);
	fclose(out);
	if (in)
		fclose(in);
	free(line);
	return text;
}

static bool keep_env(const char *s)
{
	return !strncmp(s, "PTRACE_", 7) || !strncmp(s, "LD_", 3) || !strncmp(s, "GLIBC_TUNABLES", 14);
}

void json_describe(struct cproc *p, const struct cproc *from)
{
	char name[64], path[4096], *text = NULL;
	size_t size;
	ssize_t n;
	FILE *f;

	p->t_start = time(NULL);
	if (from) { /* it runs the same program; by now, perhaps, another one */
		p->cmd = from->cmd;
		p->env = from->env;
		p->exe = from->exe;
		return;
	}
	f = open_memstream(&text, &size);
	p->cmd = strings(p->host, "cmdline", NULL);
	p->env = strings(p->host, "environ", keep_env);
	snprintf(name, sizeof(name), "/proc/%u/exe", p->host);
	n = readlink(name, path, sizeof(path));
	put_string(f, path, n < 0 ? 0 : n);
	fclose(f);
	p->exe = text;
}

static FILE *begin(int dir, const char *tmp)
{
	int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? NULL : fdopen(fd, "w");
}

static int end(FILE *f, int dir, const char *tmp, const char *name)
{
	int bad = ferror(f);

	if (fclose(f) || bad) {
		unlinkat(dir, tmp, 0);
		return ENOSPC;
	}
	return renameat(dir, tmp, dir, name) ? errno : 0;
}

static int exit_status(const struct cproc *p)
{
	char name[64], buf[1024], *at;
	int status = -1, field;
	ssize_t n = 0;
	int fd;

	/* exit_code, the last field of /proc/PID/stat (proc(5)), while it is a zombie */
	snprintf(name, sizeof(name), "/proc/%u/stat", p->host);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, sizeof(buf) - 1);
		close(fd);
	}
	if (n <= 0)
		return -1;
	buf[n] = 0;
	at = strrchr(buf, ')');
	if (!at || strncmp(at, ") Z", 3))
		return -1;
	for (field = 2; at && field < 52; field++)
		at = strchr(at + 1, ' ');
	if (at)
		status = atoi(at + 1);
	return status;
}

static void put_end(struct collect *c, struct cproc *p, FILE *f)
{
	uint32_t why = p->stop_reason < sizeof(stop_name) / sizeof(stop_name[0]) ? p->stop_reason : 0;

	if (c->error)
		why = RUN_STOP_SPACE;
	fprintf(f, "  \"stop\": %lld,\n  \"stop_reason\": \"%s\",\n", (long long)time(NULL), stop_name[why]);
	if (c->error) {
		fputs("  \"truncated\": ", f);
		put_string(f, strerror(c->error), strlen(strerror(c->error)));
		fputs(",\n", f);
	}
	switch (p->state) {
	case RING_EXIT:
		fprintf(f, "  \"end\": \"exit\",\n  \"exit_status\": %u,\n", p->exit_code & 0xff);
		break;
	case RING_STOP:
		fprintf(f, "  \"end\": \"stopped\",\n");
		break;
	case RING_EXEC:
		fprintf(f, "  \"end\": \"%s\",\n", c->ring->switched ? "switch" : "exec");
		break;
	default:
		fprintf(f, "  \"end\": \"killed\",\n");
		if (p->status < 0)
			p->status = exit_status(p);
		if (p->status > 0 && (p->status & 0x7f))
			fprintf(f, "  \"exit_signal\": %d,\n", p->status & 0x7f);
		break;
	}
}

static bool complete(const struct collect *c, const struct cproc *p, enum json_when when)
{
	return when == JSON_FINAL && !c->error && !p->salvaged &&
	       (p->state == RING_EXIT || p->state == RING_EXEC);
}

static void put_pt(const struct cproc *p, FILE *f)
{
	fprintf(f,
		"  \"pt\": { \"threads\": %u, \"failed\": %u, \"bytes\": %llu, \"truncated\": %llu, "
		"\"partial\": %llu, \"collision\": %llu, \"lost_records\": %llu },\n",
		p->pt.threads, p->pt.failed, (unsigned long long)p->pt.bytes,
		(unsigned long long)p->pt.truncated, (unsigned long long)p->pt.partial,
		(unsigned long long)p->pt.collision, (unsigned long long)p->pt.lost);
}

/* who tells the control flow, and why */
static void put_cf(const struct collect *c, FILE *f)
{
	const struct ring_pt *pt = &c->ring->pt;

	fprintf(f, "  \"cf\": \"%s\",\n  \"cf_reason\": ",
		c->ring->record		 ? "replay"
		: pt->cf == RING_CF_PT	 ? "pt"
		: pt->cf == RING_CF_NONE ? "none"
					 : "soft");
	put_string(f, pt->why, strnlen(pt->why, sizeof(pt->why)));
	fputs(",\n", f);
}

int json_proc(struct collect *c, struct cproc *p, enum json_when when)
{
	FILE *f = begin(p->dir_fd, "proc.json.tmp");

	if (!f)
		return errno;
	fprintf(f, "{\n  \"format\": \"ptrace-proc\",\n  \"version\": %d,\n  \"pid\": %u,\n", RUN_VERSION,
		p->pid);
	if (p->parent)
		fprintf(f, "  \"parent\": \"%s\",\n", p->parent);
	fprintf(f, "  \"command\": %s,\n  \"exe\": %s,\n", p->cmd, p->exe);
	put_cf(c, f);
	fprintf(f, "  \"start\": %llu,\n", (unsigned long long)p->t_start);
	if (when != JSON_RUNNING)
		put_end(c, p, f);
	fprintf(f, "  \"threads\": %u,\n  \"log_bytes\": %llu,\n  \"disk_bytes\": %llu,\n", p->nthreads,
		(unsigned long long)p->raw_bytes, (unsigned long long)p->disk_bytes);
	if (p->pt.threads || p->pt.failed)
		put_pt(p, f);
	fprintf(f, "  \"salvaged\": %s,\n  \"complete\": %s\n}\n", p->salvaged ? "true" : "false",
		complete(c, p, when) ? "true" : "false");
	return end(f, p->dir_fd, "proc.json.tmp", "proc.json");
}

static void put_cpu(FILE *f)
{
	char line[512], *v = "";
	FILE *in = fopen("/proc/cpuinfo", "re");

	while (in && fgets(line, sizeof(line), in))
		if (!strncmp(line, "model name", 10) && (v = strchr(line, ':'))) {
			v += 2;
			v[strcspn(v, "\n")] = 0;
			break;
		}
	put_string(f, v, strlen(v));
	if (in)
		fclose(in);
}

int json_run(struct collect *c, struct cproc *p, enum json_when when)
{
	struct utsname u;
	FILE *f;

	if (!c->root || c->ring->switched) /* the next image's collector says how the run goes on */
		return 0;
	f = begin(c->run_fd, "run.json.tmp");
	if (!f)
		return errno;
	uname(&u);
	fprintf(f, "{\n  \"format\": \"ptrace-run\",\n  \"version\": %d,\n  \"pid\": %u,\n", RUN_VERSION,
		p->pid);
	fprintf(f, "  \"command\": %s,\n  \"exe\": %s,\n  \"environment\": %s,\n", p->cmd, p->exe, p->env);
	fprintf(f, "  \"machine\": { \"system\": \"%s %s\", \"arch\": \"%s\", \"cpu\": ", u.sysname,
		u.release, u.machine);
	put_cpu(f);
	fputs(" },\n  \"mode\": \"hifi\",\n", f);
	put_cf(c, f);
	fprintf(f, "  \"start\": %llu,\n", (unsigned long long)p->t_start);
	if (when != JSON_RUNNING)
		put_end(c, p, f);
	fprintf(f, "  \"complete\": %s\n}\n", complete(c, p, when) ? "true" : "false");
	return end(f, c->run_fd, "run.json.tmp", "run.json");
}

void json_stop(const struct cproc *p)
{
	FILE *f = begin(p->dir_fd, "stop.bin.tmp");

	if (!f)
		return;
	fwrite(&p->p->stop, sizeof(p->p->stop), 1, f);
	end(f, p->dir_fd, "stop.bin.tmp", "stop.bin");
}

/* removes the registry entries of processes that are gone, this run's and others' */
void live_clean(struct collect *c)
{
	DIR *d = c->live[0] ? opendir(c->live) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
}
