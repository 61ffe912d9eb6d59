/* SPDX-License-Identifier: MIT
 *
 * pt_raw.c - ptrace-decode --pt-raw: a bare Intel PT stream, against images the user names
 *
 * The stream can be from anywhere. What cannot be decoded is counted and said, the rest is decoded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "out.h"
#include "pt.h"

#define MAX_SAID 10 /* losses that get a line of their own */

struct raw {
	const struct ptraw *r;
	struct ptimg *img;
	struct pt_config cfg;
	uint8_t *buf; /* the stream behind PTD_HEAD */
	size_t size;
	uint64_t start_ip;
	uint64_t insns, blocks, errors, nomap, said;
	uint64_t novf, nptw;
	struct ptinsn *insn;
	struct pt_block block; /* the last one */
	struct obuf *out;
};

static bool number(const char **s, int radix, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(*s, &end, radix);
	if (end == *s || errno || !strchr("0123456789abcdefABCDEF", **s))
		return false;
	*s = end;
	return true;
}

/* decimal, or hexadecimal behind 0x: what begins with 0 is not octal */
static bool count(const char **s, uint64_t *v)
{
	return number(s, **s == '0' && ((*s)[1] | 0x20) == 'x' ? 16 : 10, v);
}

static bool cpu_arg(const char *s, struct pt_cpu *cpu)
{
	uint64_t f, m, st = 0;

	if (!s)
		return true;
	if (!number(&s, 10, &f) || *s++ != '/' || !number(&s, 10, &m) ||
	    (*s && (*s++ != '/' || !number(&s, 10, &st))) || *s || f > 0xffff || m > 255 || st > 255)
		return false;
	*cpu = (struct pt_cpu){pcv_intel, (uint16_t)f, (uint8_t)m, (uint8_t)st};
	return true;
}

/* FILE@ADDR[:OFFSET[:SIZE]]; the last @ counts, a file's name may have others */
static int image_arg(struct raw *w, const char *arg, struct ptrace_error *e)
{
	const char *s = strrchr(arg, '@');
	uint64_t addr, offset = 0, len = UINT64_MAX;
	const uint8_t *bytes;
	char *path;
	size_t size;
	int rc = -1;

	if (!s || s == arg || (s++, !number(&s, 16, &addr)) || (*s == ':' && (s++, !count(&s, &offset))) ||
	    (*s == ':' && (s++, !count(&s, &len))) || *s)
		return err_set(e, PTRACE_USAGE, "--image=%s: not FILE@ADDR[:OFFSET[:SIZE]]", arg);
	path = xprintf("%.*s", (int)(strrchr(arg, '@') - arg), arg);
	bytes = file_map(path, &size, e); /* until the end */
	if (bytes && offset >= size)
		err_set(e, PTRACE_BAD, "--image=%s: the file has %zu bytes only", arg, size);
	else if (bytes && len == 0)
		err_set(e, PTRACE_USAGE, "--image=%s: a size of 0", arg);
	else if (bytes)
		rc = ptimg_add(w->img, addr, bytes + offset, len < size - offset ? len : size - offset, path,
			       offset, e);
	free(path);
	return rc;
}

static int stream_read(struct raw *w, struct ptrace_error *e)
{
	const uint8_t *b = file_map(w->r->stream, &w->size, e);

	if (!b)
		return -1;
	if (!w->size)
		return err_set(e, PTRACE_BAD, "%s is empty", w->r->stream);
	w->buf = mmap(NULL, PTD_HEAD + w->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->buf == MAP_FAILED) {
		w->buf = NULL;
		return err_set(e, PTRACE_IO, "no memory for the %zu bytes of %s", w->size, w->r->stream);
	}
	memcpy(w->buf + PTD_HEAD, b, w->size);
	file_unmap(b, w->size);
	return 0;
}

static int set_up(struct raw *w, struct ptrace_error *e)
{
	const struct ptraw *r = w->r;
	const char *s = r->start_ip;

	pt_config_init(&w->cfg);
	if (s && (!number(&s, 16, &w->start_ip) || *s || !w->start_ip))
		return err_set(e, PTRACE_USAGE, "--start-ip=%s: not an address", r->start_ip);
	if (!cpu_arg(r->cpu, &w->cfg.cpu))
		return err_set(e, PTRACE_USAGE, "--cpu=%s: not FAMILY/MODEL/STEPPING", r->cpu);
	if (r->cpu && pt_cpu_errata(&w->cfg.errata, &w->cfg.cpu) < 0)
		return err_set(e, PTRACE_USAGE, "--cpu=%s: libipt knows no such processor", r->cpu);
	if (!r->nimage)
		return err_set(
			e, PTRACE_USAGE,
			"--pt-raw needs at least one --image=FILE@ADDR: a stream alone names no instruction");
	for (uint32_t i = 0; i < r->nimage; i++)
		if (image_arg(w, r->image[i], e))
			return -1;
	return stream_read(w, e);
}

/* The instruction that could not be read is there, but not to its end: the image ends in it. */
static bool cut_insn(struct raw *w, struct ptd_item *it)
{
	const struct pt_block *b = &w->block;
	uint8_t byte[15];

	if (it->lost.err != -pte_bad_insn)
		return false;
	/* libipt does not say where it was: it is behind the last block that it could make */
	if (b->ninsn && b->ip == it->lost.ip)
		for (uint32_t i = 0; i < b->ninsn && ptinsn_next(w->insn, it->lost.ip, b->mode, &it->lost.ip);
		     i++)
			;
	return ptimg_read(w->img, it->lost.ip, byte, sizeof(byte)) < sizeof(byte);
}

static void say_lost(struct raw *w, struct ptd_item *it)
{
	bool nomap = it->lost.err == -pte_nomap || cut_insn(w, it);

	if (nomap)
		w->nomap++;
	else if (it->lost.err)
		w->errors++;
	else
		return;
	if (++w->said > MAX_SAID)
		return;
	fprintf(stderr, "ptrace-decode: %s: byte %llu: ", w->r->stream, (unsigned long long)it->lost.offset);
	if (nomap)
		fprintf(stderr, "no image holds 0x%llx\n", (unsigned long long)it->lost.ip);
	else
		fprintf(stderr, "%s, at 0x%llx\n", pt_errstr(pt_errcode(it->lost.err)),
			(unsigned long long)it->lost.ip);
}

static void put_ips(struct raw *w, const struct pt_block *b)
{
	uint64_t ip = b->ip;

	for (uint32_t i = 0; i < b->ninsn; i++) {
		char *p = obuf_line(w->out);

		p = put_hex(p, ip, 1);
		*p++ = '\n';
		obuf_done(w->out, p);
		if (i + 1 < b->ninsn && !ptinsn_next(w->insn, ip, b->mode, &ip)) {
			fprintf(stderr,
				"ptrace-decode: cannot read the instruction at 0x%llx, %u after it are left "
				"out\n",
				(unsigned long long)ip, b->ninsn - i - 1);
			w->errors++;
			return;
		}
	}
}

static bool known(void *ctx, uint64_t ip)
{
	uint8_t byte;

	return ptimg_read(ctx, ip, &byte, 1) != 0;
}

static int decode(struct raw *w, struct ptrace_error *e)
{
	struct pt_image *image;
	struct ptd_item it;
	struct ptd d;
	int rc = 0;

	image = ptimg_build(w->img, e);
	if (!image || ptd_open(&d, &w->cfg, w->buf, w->size, image, known, w->img, w->start_ip, e))
		return -1;
	for (ptd_next(&d, &it); it.kind != PTD_END && !w->out->err; ptd_next(&d, &it)) {
		if (it.kind == PTD_LOST) {
			say_lost(w, &it);
		} else if (it.kind == PTD_BLOCK) {
			w->block = it.block;
			w->blocks++;
			w->insns += it.block.ninsn;
			if (w->r->ips)
				put_ips(w, &it.block);
		}
	}
	w->novf = d.pkt.novf;
	w->nptw = d.pkt.nptw;
	if (!d.starts)
		rc = err_set(e, PTRACE_BAD, "%s: nothing to start at: %s; --start-ip says where it begins",
			     w->r->stream, d.pkt.have_ip ? "no address in an image" : "no PSB");
	ptd_close(&d);
	return rc;
}

static int report(struct raw *w)
{
	FILE *f = w->r->ips ? stderr : stdout;

	if (w->said > MAX_SAID)
		fprintf(stderr, "ptrace-decode: %s: %llu more places like these\n", w->r->stream,
			(unsigned long long)(w->said - MAX_SAID));
	fprintf(f, "pt: instructions=%llu blocks=%llu errors=%llu nomap=%llu ovf=%llu ptw=%llu\n",
		(unsigned long long)w->insns, (unsigned long long)w->blocks, (unsigned long long)w->errors,
		(unsigned long long)w->nomap, (unsigned long long)w->novf, (unsigned long long)w->nptw);
	return w->errors || w->nomap || w->novf ? PTRACE_PARTIAL : PTRACE_OK;
}

int ptraw_run(const struct ptraw *r, struct obuf *out, struct ptrace_error *e)
{
	struct raw w = {.r = r, .img = ptimg_new(), .out = out};
	int rc = PTRACE_BAD;

	w.insn = ptinsn_new(w.img);
	if (!set_up(&w, e) && !decode(&w, e))
		rc = report(&w);
	else
		rc = e->status;
	obuf_flush(out);
	ptinsn_free(w.insn);
	ptimg_free(w.img);
	if (w.buf)
		munmap(w.buf, PTD_HEAD + w.size);
	return rc;
}
