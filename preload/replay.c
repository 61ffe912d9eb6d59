/* SPDX-License-Identifier: MIT
 *
 * replay.c - ptrace-replay: runs a recorded process image again, from its start state, under the runtime
 *
 *   start.bin, thread-TID.log ─▶ the area, the plan ─▶ fork ─▶ stub ─▶ runtime ─▶ ordinary run directory OUT
 *                                                       └─▶ waits; how did it end?
 *
 * The child gives up everything that it has, becomes what the program was, and runs its code; all that the program asks the
 * kernel is answered from the recording (rt_replay.c). Options and exit statuses: ptrace-replay(1).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "replay_in.h"

#define STACK (256u << 10)

struct job {
	const char *dir, *out; /* of the image; where the run goes */
	const char *stream; /* a FIFO for the log, or NULL */
	bool verify, quiet;
	const char *lib; /* the runtime */
	struct start *start;
	struct rec_stream rec;
	struct plan plan;
	bool memory; /* there is memory to compare with at the end */
	struct stub_args *args;
	stub_fn *stub;
	int report[2]; /* from the child: what failed */
	struct ptrace_error e;
};

static const char usage[] =
	"usage: ptrace-replay [options] RUN-DIRECTORY/proc-PID.N\n"
	"  -o, --output=DIR   the run directory to make (default RUN-DIRECTORY/proc-PID.N/replay)\n"
	"      --verify       log every address, too, for ptrace-decode --verify\n"
	"      --stream=FIFO  write the log there, as it comes, and not into DIR\n"
	"      --runtime=FILE the runtime to run it under (default libptrace_rt.so next to this program)\n"
	"  -q, --quiet        say nothing when all is well\n"
	"  -h, --help  -V, --version\n"
	"See ptrace-replay(1).\n";

static int parse(struct job *j, int argc, char **argv)
{
	static const struct option opt[] = {{"output", 1, NULL, 'o'},  {"verify", 0, NULL, 'v'},
					    {"stream", 1, NULL, 's'},  {"runtime", 1, NULL, 'r'},
					    {"quiet", 0, NULL, 'q'},   {"help", 0, NULL, 'h'},
					    {"version", 0, NULL, 'V'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "o:qhV", opt, NULL)) != -1) {
		switch (c) {
		case 'o':
			j->out = optarg;
			break;
		case 'v':
			j->verify = true;
			break;
		case 's':
			j->stream = optarg;
			break;
		case 'r':
			j->lib = optarg;
			break;
		case 'q':
			j->quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return PTRACE_OK;
		case 'V':
			puts("ptrace-replay 0.1");
			return PTRACE_OK;
		default:
			fputs("Try ptrace-replay --help.\n", stderr);
			return PTRACE_USAGE;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return PTRACE_USAGE;
	}
	j->dir = argv[optind];
	return -1;
}

/* ---- what the child gets ---- */

/* libptrace_rt.so next to this program, or in the lib directory of the same installation */
static char *find_lib(struct ptrace_error *e)
{
	static const char *const where[] = {"", "../lib/", "../../lib/"};
	char self[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < NELEM(where); i++) {
		char *path = xprintf("%.*s%slibptrace_rt.so", (int)(slash + 1 - self), self, where[i]);

		if (!access(path, R_OK))
			return path;
		free(path);
	}
	err_set(e, PTRACE_BAD, "cannot find libptrace_rt.so next to ptrace-replay");
	return NULL;
}

/* Settings that are about the recording, or about who preloads what, are not for the replay. */
static bool keep(const char *var, const struct job *j)
{
	static const char *const drop[] = {"PTRACE_DIR=",    "PTRACE_RUN=",   "PTRACE_CF=",
					   "PTRACE_VERIFY=", "PTRACE_MODE=",  "LD_PRELOAD=",
					   "PTRACE_ORACLE=", "PTRACE_ORDER=", "PTRACE_STREAM="},
				 *const streamed[] = {"PTRACE_COMPRESS=", "PTRACE_SPOOL="};

	for (size_t i = 0; i < NELEM(drop); i++)
		if (!strncmp(var, drop[i], strlen(drop[i])))
			return false;
	for (size_t i = 0; j->stream && i < NELEM(streamed); i++)
		if (!strncmp(var, streamed[i], strlen(streamed[i])))
			return false;
	return true;
}

/* What is read at once is neither compressed nor put aside: the replay waits for its reader. */
static size_t settings(const struct job *j, char **set)
{
	size_t n = 0;

	set[n++] = xprintf("PTRACE_DIR=%s", j->out);
	set[n++] = xprintf("PTRACE_VERIFY=%d", j->verify);
	if (j->stream) {
		set[n++] = xprintf("PTRACE_STREAM=%s", j->stream);
		set[n++] = xprintf("PTRACE_COMPRESS=none");
		set[n++] = xprintf("PTRACE_SPOOL=0");
	}
	return n;
}

static char **environment(const struct job *j, struct ptrace_error *e)
{
	size_t n = 0, bytes = 0, k = 0, nset;
	char **to, *p, *set[5];

	nset = settings(j, set);
	for (; environ[n]; n++)
		bytes += strlen(environ[n]) + 1;
	for (size_t i = 0; i < nset; i++)
		bytes += strlen(set[i]) + 1;
	to = area_map((n + nset + 1) * sizeof(*to) + bytes, PROT_READ | PROT_WRITE, -1, 0, e);
	if (!to)
		return NULL;
	p = (char *)(to + n + nset + 1);
	for (size_t i = 0; i < n + nset; i++) {
		const char *var = i < n ? environ[i] : set[i - n];

		if (i < n && !keep(var, j))
			continue;
		to[k++] = strcpy(p, var);
		p += strlen(var) + 1;
	}
	for (size_t i = 0; i < nset; i++)
		free(set[i]);
	return to;
}

/* into the area; NULL with err */
static struct replay_info *information(struct job *j)
{
	const struct run_start *s = &j->start->s;
	size_t head = sizeof(*s) + s->nregions * sizeof(struct run_region) + s->names;
	struct replay_info i = {.magic = REPLAY_MAGIC,
				.version = REPLAY_VERSION,
				.pid = s->pid,
				.tid = s->tid,
				.rec_size = j->rec.size,
				.killed = j->rec.killed,
				.why = j->rec.why};

	i.envp = environment(j, &j->e);
	i.start = area_copy(j->start->base, head, &j->e);
	i.rec = area_map(j->rec.size, PROT_READ, j->rec.fd, 0, &j->e);
	i.nfuture = j->rec.nrange;
	i.future = i.nfuture ? area_copy(j->rec.range, i.nfuture * sizeof(*i.future), &j->e) : NULL;
	if (!i.envp || !i.start || !i.rec || (i.nfuture && !i.future) ||
	    (j->rec.placed && place_memory(j->dir, &i.memory, &j->e)))
		return NULL;
	j->memory = i.memory;
	return area_copy(&i, sizeof(i), &j->e);
}

/* Everything into the area. The plan comes last: it says what the area is. */
static int prepare(struct job *j)
{
	struct stub_args *a;
	struct replay_info *info;
	uint64_t code_size = (uint64_t)(stub_end - stub_begin);
	uint8_t *stack;
	void *code;

	if (area_open(j->start, &j->rec, &j->e))
		return -1;
	code = area_copy(stub_begin, code_size, &j->e);
	stack = area_map(STACK, PROT_READ | PROT_WRITE, -1, 0, &j->e);
	a = area_map(sizeof(*a), PROT_READ | PROT_WRITE, -1, 0, &j->e);
	if (!code || !stack || !a)
		return -1;
	if (mprotect(code, code_size, PROT_READ | PROT_EXEC))
		return err_set(&j->e, PTRACE_IO, "cannot make code executable: %s", strerror(errno));
	a->entry = lib_load(j->lib, &j->e);
	info = a->entry ? information(j) : NULL;
	if (!info || plan_make(&j->plan, j->dir, j->start, &j->e))
		return -1;
	info->lo = area_lo();
	info->hi = area_hi();
	a->info = (uint64_t)info;
	a->stack = (uint64_t)(stack + STACK);
	a->report = (uint64_t)j->report[1];
	a->call = j->plan.call;
	a->n = j->plan.n;
	j->args = a;
	j->stub = (stub_fn *)code;
	return 0;
}

/* ---- the child ---- */

/* The kernel writes to the area that libc has registered whenever the thread has been moved (rseq(2)), and ends a
 * process that no longer has it. Its size is said to the kernel as libc did: 32, or what is in use, rounded up. */
static void no_rseq(void)
{
	extern const ptrdiff_t __rseq_offset __attribute__((weak));
	extern const unsigned __rseq_size __attribute__((weak));
	char *at = (char *)__builtin_thread_pointer() + (&__rseq_offset ? __rseq_offset : 0);

	if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
		return; /* it has registered none */
	for (unsigned size = 32; size <= 256; size += 32)
		if (!syscall(SYS_rseq, at, size, 1 /* RSEQ_FLAG_UNREGISTER */, 0x53053053))
			return;
}

static void __attribute__((noreturn)) child(const struct job *j)
{
	static const unsigned long dfl[4]; /* the kernel's struct sigaction: SIG_DFL, no flags, no mask */
	struct rlimit l;
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < 65; i++) /* not by libc, which leaves a mask there */
		syscall(SYS_rt_sigaction, i, dfl, NULL, 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	no_rseq();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		_exit(REPLAY_EXIT_FAILED);
	if (!getrlimit(RLIMIT_STACK, &l)) { /* a stack that overflows does so where it did */
		l.rlim_cur = j->start->s.stack_limit < l.rlim_max ? j->start->s.stack_limit : l.rlim_max;
		setrlimit(RLIMIT_STACK, &l);
	}
	j->stub(j->args);
	__builtin_unreachable();
}

/* true if a call of the plan has failed, with err */
static bool reported(struct job *j)
{
	int64_t r[2];
	ssize_t n;

	do
		n = read(j->report[0], r, sizeof(r));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(r))
		return false;
	err_set(&j->e, PTRACE_IO, "cannot restore %s: %s: %s", j->dir,
		r[0] >= 0 && r[0] < j->plan.n && j->plan.what[r[0]] ? j->plan.what[r[0]] : "a system call",
		r[1] < 0 ? strerror((int)-r[1]) : "less than there should be");
	return true;
}

/* by the last record */
static bool as_recorded(const struct job *j, int status)
{
	if (j->rec.signal)
		return WIFSIGNALED(status) && (uint32_t)WTERMSIG(status) == j->rec.signal;
	if (!j->rec.ended && !j->rec.killed)
		return WIFSIGNALED(status);
	return WIFEXITED(status) && WEXITSTATUS(status) == j->rec.status;
}

/* The recording says nothing of its end, but its process had one: something of it is missing. */
static bool cut(const struct job *j)
{
	char *path = xprintf("%s/proc.json", j->dir), *text = text_read(path), end[40];
	bool is = !j->rec.ended && text && json_get(text, "end", end, sizeof(end)) &&
		  (!strcmp(end, "exit") || !strcmp(end, "exec") || !strcmp(end, "switch"));

	free(text);
	free(path);
	return is;
}

static int outcome(struct job *j, int status)
{
	if (cut(j)) {
		err_set(&j->e, PTRACE_PARTIAL, "%s: the recording ends before its process did", j->dir);
		return PTRACE_PARTIAL;
	}
	if (as_recorded(j, status) && j->rec.killed) {
		err_set(&j->e, PTRACE_PARTIAL,
			"%s: the end came while the program computed: what it did between its last system "
			"call and "
			"then is missing",
			j->dir);
		return PTRACE_PARTIAL;
	}
	if (as_recorded(j, status)) {
		if (!j->quiet)
			fprintf(stderr, "ptrace-replay: %s: %llu system calls, to the recording's end\n",
				j->dir, (unsigned long long)j->rec.calls);
		return PTRACE_OK;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == REPLAY_EXIT_FAILED)
		return err_set(&j->e, PTRACE_IO, "%s: the runtime could not begin", j->dir), PTRACE_IO;
	if (WIFEXITED(status) && WEXITSTATUS(status) == REPLAY_EXIT_LOST)
		return err_set(&j->e, PTRACE_PARTIAL,
			       "%s: a signal came while the program computed: what it did between its last "
			       "system call and then is missing: %s",
			       j->dir,
			       j->memory ? "that place is not in code that is traced"
					 : "memory as it was then has not been kept"),
		       PTRACE_PARTIAL;
	if (WIFSIGNALED(status))
		err_set(&j->e, PTRACE_PARTIAL, "%s: the replay was ended by signal %d, the program was not",
			j->dir, WTERMSIG(status));
	else if (WEXITSTATUS(status) != REPLAY_EXIT_DIVERGED)
		err_set(&j->e, PTRACE_PARTIAL,
			"%s: the replay ended with status %d, which the program did not", j->dir,
			WEXITSTATUS(status));
	else
		err_set(&j->e, PTRACE_PARTIAL, "%s: the trace ends where the replay went wrong", j->dir);
	return PTRACE_PARTIAL;
}

static int run(struct job *j)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		child(j);
	close(j->report[1]);
	if (pid < 0) {
		err_set(&j->e, PTRACE_IO, "cannot fork: %s", strerror(errno));
		return PTRACE_IO;
	}
	reported(j);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return j->e.text[0] ? j->e.status : outcome(j, status);
}

/* ---- what is asked for ---- */

static int open_all(struct job *j)
{
	char *path = xprintf("%s/start.bin", j->dir);

	j->start = start_open(path, &j->e);
	free(path);
	if (j->start && !j->lib)
		j->lib = find_lib(&j->e);
	if (!j->start || !j->lib || modules_check(j->dir, &j->e))
		return -1;
	if (mkdir(j->out, 0777) && errno != EEXIST)
		return err_set(&j->e, PTRACE_IO, "cannot make %s: %s", j->out, strerror(errno));
	if (rec_open(&j->rec, j->dir, j->start->s.pid, j->start->s.tid, j->out, &j->e))
		return -1;
	if (pipe2(j->report, O_CLOEXEC))
		return err_set(&j->e, PTRACE_IO, "cannot make a pipe: %s", strerror(errno));
	return prepare(j);
}

static const char *absolute(const char *path)
{
	char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);

	if (cwd)
		path = xprintf("%s/%s", cwd, path);
	free(cwd);
	return path;
}

int main(int argc, char **argv)
{
	struct job j = {0};
	int rc = parse(&j, argc, argv);

	if (rc >= 0)
		return rc;
	if (!j.out)
		j.out = xprintf("%s/replay", j.dir);
	j.out = absolute(j.out);
	if (j.stream)
		j.stream = absolute(j.stream);
	rc = open_all(&j) ? j.e.status : run(&j);
	if (j.e.text[0])
		fprintf(stderr, "ptrace-replay: %s\n", j.e.text);
	return rc;
}
