/* SPDX-License-Identifier: MIT
 *
 * main.c - ptrace-decode: options, then one pass over the chosen threads
 *
 * Options and exit statuses are described in ptrace-decode(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "out.h"
#include "pt.h"

struct job {
	const char *dir, *format, *output;
	struct selection select;
	enum ptrace_merge merge;
	bool symbols, times, summary, json, ranges, verify, list, no_progress;
	struct ptraw raw;
	struct walk_opts walk;
	struct filter filter;
	struct sink sink;
	struct obuf out;
	struct stats *stats;
	struct ptrace_run *run;
	uint32_t diffs;
	bool stopped;
	double t0, shown;
	uint64_t seen;
	uint64_t time[DECODE_TIMES];
};

static volatile sig_atomic_t interrupted; /* by this signal */

/* What has been written stays; a replay is ended, and its files taken away. The next one ends us at once. */
static void interrupt(int sig)
{
	interrupted = sig;
}

static void catch_interrupts(void)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction a = {.sa_handler = interrupt, .sa_flags = SA_RESTART | SA_RESETHAND}, was;

	for (size_t i = 0; i < NELEM(sigs); i++)
		if (!sigaction(sigs[i], NULL, &was) && was.sa_handler == SIG_DFL)
			sigaction(sigs[i], &a, NULL);
}

static const char usage[] =
	"usage: ptrace-decode [options] RUN-DIRECTORY\n"
	"  -f, --format=FORMAT   text, csv, lackey, raw, bin or null\n"
	"  -o, --output=FILE     write there instead of to standard output\n"
	"  -s, --symbols         name each instruction (text, csv)\n"
	"      --times           say when each access was made, in TSC ticks (text, csv)\n"
	"      --from=N --to=N   only records numbered N (from 0) up to N (not included)\n"
	"      --threads=LIST    only these threads, by number in --list or as tid:TID\n"
	"      --pid=LIST        only these processes, PID or PID.IMAGE\n"
	"      --tid=LIST        only threads with these ids\n"
	"      --merge=ORDER     thread: one thread after the other; time: all in one order by time\n"
	"      --addr=LO-HI      only accesses that touch these addresses (hexadecimal)\n"
	"      --module=NAME, --function=NAME   only instructions in it\n"
	"      --summary         counts, footprint, functions, what ran untraced\n"
	"      --json            the summary as JSON\n"
	"      --log-causes      with them: what the log's bytes are for, and which functions wrote them\n"
	"      --list            processes, threads, modules\n"
	"      --ranges          traced code, START END MODULE a line\n"
	"      --verify          compare with the addresses a verify run logged\n"
	"      --memory=SIZE     bound of shadow memory (default 512M)\n"
	"      --pt-raw=STREAM   instead of a run: a bare Intel PT stream; with\n"
	"      --image=FILE@ADDR[:OFFSET[:SIZE]] ...   what was in memory where\n"
	"      --cpu=F/M/S       processor it is from   --start-ip=ADDR   where it begins\n"
	"      --format=ip       addresses of its instructions; else counts\n"
	"  -h, --help  -V, --version\n"
	"See ptrace-decode(1).\n";

static int fail(int status, const char *fmt, const char *arg)
{
	fprintf(stderr, "ptrace-decode: ");
	fprintf(stderr, fmt, arg);
	fprintf(stderr, "\n");
	return status;
}

static void note(void *ctx, const char *line)
{
	(void)ctx;
	fprintf(stderr, "ptrace-decode: %s\n", line);
}

static bool number(const char *s, int radix, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(s, &end, radix);
	return *s && !*end && !errno && *s != '-';
}

static bool size_arg(const char *s, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(s, &end, 10);
	if (end == s || errno || *s == '-')
		return false;
	if (*end) {
		const char *unit = strchr("KMG", *end);
		int shift = unit ? 10 * (int)(unit - "KMG" + 1) : 0;

		if (!unit || end[1] || *v > UINT64_MAX >> shift)
			return false;
		*v <<= shift;
	}
	return *v != 0;
}

static bool addr_arg(struct filter *f, const char *s)
{
	char *dash, *end;

	errno = 0;
	f->lo = strtoull(s, &dash, 16);
	if (dash == s || *dash != '-')
		return false;
	f->hi = strtoull(dash + 1, &end, 16);
	f->by_addr = true;
	return end != dash + 1 && !*end && !errno && f->lo < f->hi;
}

enum {
	O_FROM = 256,
	O_TO,
	O_THREADS,
	O_PID,
	O_TID,
	O_MERGE,
	O_TIMES,
	O_ADDR,
	O_MODULE,
	O_FUNCTION,
	O_SUMMARY,
	O_JSON,
	O_LIST,
	O_RANGES,
	O_VERIFY,
	O_MEMORY,
	O_CAUSES,
	O_PT_RAW,
	O_IMAGE,
	O_CPU,
	O_START_IP
};

static const struct option options[] = {{"format", 1, NULL, 'f'},
					{"output", 1, NULL, 'o'},
					{"symbols", 0, NULL, 's'},
					{"times", 0, NULL, O_TIMES},
					{"from", 1, NULL, O_FROM},
					{"to", 1, NULL, O_TO},
					{"threads", 1, NULL, O_THREADS},
					{"pid", 1, NULL, O_PID},
					{"tid", 1, NULL, O_TID},
					{"merge", 1, NULL, O_MERGE},
					{"addr", 1, NULL, O_ADDR},
					{"module", 1, NULL, O_MODULE},
					{"function", 1, NULL, O_FUNCTION},
					{"summary", 0, NULL, O_SUMMARY},
					{"json", 0, NULL, O_JSON},
					{"list", 0, NULL, O_LIST},
					{"ranges", 0, NULL, O_RANGES},
					{"verify", 0, NULL, O_VERIFY},
					{"memory", 1, NULL, O_MEMORY},
					{"log-causes", 0, NULL, O_CAUSES},
					{"pt-raw", 1, NULL, O_PT_RAW},
					{"image", 1, NULL, O_IMAGE},
					{"cpu", 1, NULL, O_CPU},
					{"start-ip", 1, NULL, O_START_IP},
					{"help", 0, NULL, 'h'},
					{"version", 0, NULL, 'V'},
					{NULL, 0, NULL, 0}};

/* -1 to go on, else the exit status */
static int parse(struct job *j, int argc, char **argv)
{
	bool ok = true;
	int c;

	while ((c = getopt_long(argc, argv, "f:o:shV", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			j->format = optarg;
			break;
		case 'o':
			j->output = optarg;
			break;
		case 's':
			j->symbols = true;
			break;
		case O_TIMES:
			j->times = true;
			break;
		case O_FROM:
			ok = number(optarg, 0, &j->filter.from);
			break;
		case O_TO:
			ok = number(optarg, 0, &j->filter.to);
			break;
		case O_THREADS:
			j->select.threads = optarg;
			break;
		case O_PID:
			j->select.pid = optarg;
			break;
		case O_TID:
			j->select.tid = optarg;
			break;
		case O_MERGE:
			ok = !strcmp(optarg, "time") || !strcmp(optarg, "thread");
			j->merge = strcmp(optarg, "time") ? PTRACE_BY_THREAD : PTRACE_BY_TIME;
			break;
		case O_ADDR:
			ok = addr_arg(&j->filter, optarg);
			break;
		case O_MODULE:
			j->filter.module = optarg;
			break;
		case O_FUNCTION:
			j->filter.function = optarg;
			break;
		case O_SUMMARY:
			j->summary = true;
			break;
		case O_JSON:
			j->json = true;
			break;
		case O_LIST:
			j->list = true;
			break;
		case O_RANGES:
			j->ranges = true;
			break;
		case O_VERIFY:
			j->verify = true;
			break;
		case O_CAUSES:
			j->walk.why = true;
			break;
		case O_MEMORY:
			ok = size_arg(optarg, &j->walk.memory);
			break;
		case O_PT_RAW:
			j->raw.stream = optarg;
			break;
		case O_IMAGE:
			j->raw.image = xrealloc(j->raw.image, j->raw.nimage + 1, sizeof(*j->raw.image));
			j->raw.image[j->raw.nimage++] = optarg;
			break;
		case O_CPU:
			j->raw.cpu = optarg;
			break;
		case O_START_IP:
			j->raw.start_ip = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return PTRACE_OK;
		case 'V':
			puts("ptrace-decode 0.1");
			return PTRACE_OK;
		default:
			fputs("Try ptrace-decode --help.\n", stderr);
			return PTRACE_USAGE;
		}
		if (!ok)
			return fail(PTRACE_USAGE, "\"%s\" is not a value this option takes (see --help)",
				    optarg);
	}
	if (!j->raw.stream && (j->raw.nimage || j->raw.cpu || j->raw.start_ip))
		return fail(PTRACE_USAGE, "%s", "--image, --cpu and --start-ip go with --pt-raw");
	if (optind + !j->raw.stream != argc) {
		fputs(usage, stderr);
		return PTRACE_USAGE;
	}
	j->dir = argv[optind]; /* NULL with --pt-raw */
	return -1;
}

static int open_output(struct job *j)
{
	int fd = 1;

	if (j->output && strcmp(j->output, "-")) {
		fd = open(j->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fd < 0) {
			fprintf(stderr, "ptrace-decode: cannot write %s: %s\n", j->output, strerror(errno));
			return -1;
		}
	}
	obuf_init(&j->out, fd);
	return 0;
}

/* What to write where. Without any choice: the summary on a terminal, else text. */
static int choose(struct job *j)
{
	const struct sink *s;

	if (!j->format && !j->summary && !j->json && !j->verify && !j->list && !j->ranges) {
		if (j->output || !isatty(1))
			j->format = "text";
		else
			j->summary = true;
	}
	s = sink_find(j->format ? j->format : "null");
	if (!s)
		return fail(PTRACE_USAGE, "there is no format \"%s\": text, csv, lackey, raw, bin, null",
			    j->format);
	j->sink = *s;
	if (j->times && !s->times)
		return fail(PTRACE_USAGE, "%s has no place for --times: use --format=text or csv", s->name);
	if (s->binary && !j->output && isatty(1))
		return fail(PTRACE_USAGE, "format %s is not for a terminal: use -o FILE or a pipe",
			    j->format);
	if (open_output(j))
		return PTRACE_IO;
	j->sink.o = &j->out;
	j->sink.run = j->run;
	j->sink.symbols = j->symbols;
	j->sink.time = j->times ? j->time : NULL;
	j->walk.blocks = s->blocks;
	j->walk.verify = j->verify;
	j->filter.run = j->run;
	return -1;
}

static void progress(struct job *j)
{
	double t = now();

	if (j->no_progress || t - j->t0 < 2 || t - j->shown < 0.5)
		return;
	j->shown = t;
	fprintf(stderr, "\r%llu million accesses decoded, %.1f million/s ",
		(unsigned long long)j->seen / 1000000, (double)j->seen / 1e6 / (t - j->t0));
}

static int batch(void *ctx, struct ptrace_rec *rec, size_t n)
{
	struct job *j = ctx;

	j->seen += n;
	progress(j);
	n = filter_batch(&j->filter, rec, j->times ? j->time : NULL, n, &j->stopped);
	if (j->summary || j->json)
		stats_batch(j->stats, rec, n);
	if (n && j->sink.batch(&j->sink, rec, n))
		return -1;
	return j->stopped || interrupted;
}

static void ended(void *ctx, uint32_t i, int status, const struct walk_result *res)
{
	struct job *j = ctx;
	struct proc *p = j->run->thread[i]->proc;

	if (j->stats) {
		if (j->summary || j->json) /* names cost more than a short decode */
			stats_thread(j->stats, p, res);
		if (status && j->stats->complete)
			snprintf(j->stats->reason, sizeof(j->stats->reason), "%s",
				 res->end == WALK_STOP ? stop_name(res->arg) : res->why);
		j->stats->complete &= !status;
	}
	if (j->verify)
		report_diffs(stdout, j->run, p, res);
}

static int decode(struct job *j)
{
	struct ptrace_stats local = {0}, *st = j->stats ? &j->stats->st : &local;
	struct decode d = {j->run, &j->walk, batch, ended, j, st, j->times ? j->time : NULL};
	const char *bad;
	uint32_t n;
	uint32_t *list = select_threads(j->run, &j->select, &n, &bad);
	int rc;

	if (!list)
		return fail(PTRACE_USAGE, "\"%s\" is not a list of threads or processes (see --help)", bad);
	if (!n) {
		free(list);
		return fail(PTRACE_BAD, "%s",
			    j->run->nthread
				    ? "no thread of the run is what --threads, --pid and --tid ask for"
				    : "the run holds no thread's log");
	}
	if (j->sink.begin && j->sink.begin(&j->sink)) {
		free(list);
		return PTRACE_IO;
	}
	rc = decode_threads(&d, list, n, j->merge);
	free(list);
	if (!j->no_progress && j->shown)
		fprintf(stderr, "\r\033[K");
	if (j->sink.end && j->sink.end(&j->sink) && !j->out.err)
		return PTRACE_IO;
	obuf_flush(&j->out);
	return rc;
}

static int verdict(struct job *j, int rc)
{
	const struct ptrace_stats *t = &j->stats->st;
	uint64_t unknown = t->unknown;

	/* not a verify run: nothing was compared, which must not look like success */
	if (t->accesses && !t->checked) {
		note(NULL, "nothing to compare: the run was not made with PTRACE_VERIFY=1");
		unknown += t->accesses;
	}
	if (t->checked)
		printf("compared %llu of %llu addresses with what the program logged\n",
		       (unsigned long long)t->checked, (unsigned long long)t->accesses);
	printf("verify: accesses=%llu wrong=%llu unknown=%llu missing=%llu opaque=%llu\n",
	       (unsigned long long)t->accesses, (unsigned long long)t->wrong, (unsigned long long)unknown,
	       (unsigned long long)t->missing, (unsigned long long)t->opaque_entries);
	if (t->wrong || unknown || t->missing || !t->accesses)
		return PTRACE_VERIFY;
	return rc;
}

static int output_status(struct job *j, int rc)
{
	if (fflush(stdout) && !j->out.err)
		j->out.err = errno;
	if (j->out.err == EPIPE)
		return PTRACE_PIPE;
	if (j->out.err) {
		fprintf(stderr, "ptrace-decode: cannot write %s: %s\n", j->output ? j->output : "the output",
			strerror(j->out.err));
		return PTRACE_IO;
	}
	return rc;
}

static int nothing(void *ctx, struct ptrace_rec *rec, size_t n)
{
	(void)ctx;
	(void)rec;
	(void)n;
	return interrupted;
}

/* What of a recorded image is traced is known when it has been run again. */
static void replay_for_ranges(struct job *j)
{
	struct ptrace_stats st = {0};
	struct walk_result res;

	for (uint32_t i = 0; i < j->run->nthread; i++) {
		struct thread *t = j->run->thread[i];
		struct proc *p = t->rec ? t->rec : t->proc;

		if (p->recorded) {
			decode_part(j->run, i, p, &j->walk, nothing, NULL, &st, &res);
			walk_result_free(&res);
		}
	}
}

static int run(struct job *j)
{
	int rc = choose(j);

	if (rc >= 0)
		return rc;
	if (j->list)
		report_list(stdout, j->run);
	if (j->ranges) {
		replay_for_ranges(j);
		report_ranges(stdout, j->run);
	}
	rc = j->run->damage ? PTRACE_PARTIAL : PTRACE_OK;
	if (j->format || j->summary || j->json || j->verify) {
		int k;

		if (j->summary || j->json || j->verify)
			j->stats = stats_new(j->run);
		if (j->stats)
			j->stats->some = filter_any(&j->filter);
		j->walk.counts = j->summary || j->json;
		if (j->stats)
			j->stats->why = j->walk.why;
		k = decode(j);
		rc = k ? k : rc;
		if (interrupted) { /* of a part there is no summary, and no verdict */
			fflush(stdout);
			return rc;
		}
		if (j->stats && rc == PTRACE_PARTIAL && j->stats->complete) {
			j->stats->complete = false;
			snprintf(j->stats->reason, sizeof(j->stats->reason), "parts of the run are damaged");
		}
		if (j->json)
			report_json(stdout, j->stats);
		else if (j->summary)
			report_text(j->format && !j->output && strcmp(j->format, "null") ? stderr : stdout,
				    j->stats);
		if (j->verify && (rc == PTRACE_OK || rc == PTRACE_PARTIAL))
			rc = verdict(j, rc);
	}
	return output_status(j, rc);
}

static int run_raw(struct job *j)
{
	struct ptrace_error e = {0};
	int rc;

	if (j->format && strcmp(j->format, "ip") && strcmp(j->format, "null"))
		return fail(PTRACE_USAGE, "a bare stream has no format \"%s\": ip, null", j->format);
	j->raw.ips = j->format && !strcmp(j->format, "ip");
	if (open_output(j))
		return PTRACE_IO;
	rc = ptraw_run(&j->raw, &j->out, &e);
	if (e.text[0])
		fail(rc, "%s", e.text);
	rc = output_status(j, rc);
	obuf_free(&j->out);
	free(j->raw.image);
	return rc;
}

int main(int argc, char **argv)
{
	struct job j = {.filter.to = UINT64_MAX, .walk.memory = 512ull << 20};
	struct ptrace_error e = {0};
	int rc;

	signal(SIGPIPE, SIG_IGN);
	j.t0 = now();
	j.no_progress = !isatty(2);
	rc = parse(&j, argc, argv);
	if (rc >= 0)
		return rc;
	if (j.raw.stream)
		return run_raw(&j);
	j.run = ptrace_run_open(j.dir, note, NULL, &e);
	if (!j.run)
		return fail(e.status, "%s", e.text);
	catch_interrupts();
	rc = run(&j);
	stats_free(j.stats);
	obuf_free(&j.out);
	ptrace_run_close(j.run);
	if (interrupted) {
		signal(interrupted, SIG_DFL);
		raise(interrupted);
	}
	return rc;
}
