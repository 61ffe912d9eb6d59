// SPDX-License-Identifier: MIT
//
// flow_decode.c - the trace of a run's first thread, its control flow from a list of executed addresses
//
//   flow_decode RUN LIST OUT      LIST as flow_step wrote it; OUT as by ptrace-decode --format=raw
//
// Last line: what ptrace-decode --verify says. Exit status 0; 1 the decode ended early; 2 wrong use.
#include <stdlib.h>
#include "../../decoder/dec.h"
#include "../../decoder/flow.h"
#include "trace.h"
#include "flow_list.h"

static const uint64_t *list;
static size_t nlist;
static uint64_t records;

static struct flow *open_flow(struct thread *t)
{
	(void)t;
	return flow_list(list, nlist);
}

static int batch(void *ctx, struct ptrace_rec *rec, size_t n)
{
	records += n;
	return fwrite(rec, sizeof(*rec), n, ctx) != n;
}

static void note(void *ctx, const char *line)
{
	(void)ctx;
	fprintf(stderr, "flow_decode: %s\n", line);
}

int main(int argc, char **argv)
{
	struct ptrace_raw_head h = {PTRACE_RAW_MAGIC, PTRACE_RAW_VERSION, sizeof(struct ptrace_rec)};
	struct walk_opts o = {.memory = 512ull << 20, .flow = open_flow, .verify = true};
	struct ptrace_error e = {0};
	struct ptrace_stats st = {0};
	struct walk_result res;
	ptrace_run *r = argc == 4 ? ptrace_run_open(argv[1], note, NULL, &e) : NULL;
	FILE *f = r ? fopen(argv[3], "wb") : NULL;
	size_t size = 0;
	int k;

	list = f ? (const uint64_t *)file_map(argv[2], &size, &e) : NULL;
	if (!list || fwrite(&h, sizeof(h), 1, f) != 1) {
		fprintf(stderr, "usage: flow_decode RUN LIST OUT%s%s\n", *e.text ? ": " : "", e.text);
		return 2;
	}
	nlist = size / sizeof(*list);
	k = decode_thread(r, 0, &o, batch, f, &st, &res);
	if (fclose(f))
		k = 1;
	printf("accesses=%llu checked=%llu wrong=%llu unknown=%llu missing=%llu\n",
	       (unsigned long long)records, (unsigned long long)st.checked, (unsigned long long)st.wrong,
	       (unsigned long long)st.unknown, (unsigned long long)st.missing);
	walk_result_free(&res);
	return k || st.wrong || st.unknown || st.missing;
}
