/* SPDX-License-Identifier: MIT
 *
 * mkpt.c - a stream from words: mkpt SYMBOLS OUT <packets
 *
 * SYMBOLS is nm's output. A line is a packet; where an address stands, a label may.
 *     psb psbend pad ovf stop        mode 64|32|16      tsc V  tma CTC FC  mtc V  cyc V  cbr V
 *     fup|tip|pge|pgd ADDR [IPC]     IPC as in the packet, 3 (48 bits, sign extended) if not given; "-": no address
 *     tnt TNT...                     up to 6 in a short packet, else in a long one
 *     ptw V [ip]                     raw HEX            cut N   (takes N bytes off the end)
 * libipt's encoder makes the packets.
 */
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t buf[1 << 20];
static struct pt_encoder *enc;
static struct {
	char name[64];
	uint64_t addr;
} sym[4096];
static size_t nsym;

static void die(const char *what, const char *line)
{
	fprintf(stderr, "mkpt: %s: %s\n", what, line);
	exit(1);
}

static void symbols(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long long a;
	char t;

	if (!f)
		die("cannot open", path);
	while (nsym < 4096 && fscanf(f, "%llx %c %63s", &a, &t, sym[nsym].name) == 3)
		sym[nsym++].addr = a;
	fclose(f);
}

static uint64_t value(const char *s)
{
	char *end;
	uint64_t v;

	for (size_t i = 0; i < nsym; i++)
		if (!strcmp(sym[i].name, s))
			return sym[i].addr;
	v = strtoull(s, &end, 0);
	if (!*s || *end)
		die("neither a label nor a number", s);
	return v;
}

static void put(const struct pt_packet *p, const char *line)
{
	if (pt_enc_next(enc, p) < 0)
		die("libipt does not encode", line);
}

static uint64_t offset(void)
{
	uint64_t o = 0;

	pt_enc_get_offset(enc, &o);
	return o;
}

static void tnt(const char *s, const char *line)
{
	struct pt_packet p = {.type = strlen(s) <= 6 ? ppt_tnt_8 : ppt_tnt_64};

	for (; *s; s++, p.payload.tnt.bit_size++)
		p.payload.tnt.payload = p.payload.tnt.payload << 1 | (*s == 'T');
	put(&p, line);
}

static void raw(const char *s)
{
	uint64_t o = offset();
	unsigned int b;

	for (; sscanf(s, "%2x", &b) == 1; s += 2)
		buf[o++] = (uint8_t)b;
	pt_enc_sync_set(enc, o);
}

static const struct {
	const char *name;
	enum pt_packet_type type;
} plain[] = {{"psb", ppt_psb},
	     {"psbend", ppt_psbend},
	     {"pad", ppt_pad},
	     {"ovf", ppt_ovf},
	     {"stop", ppt_stop}},
  ips[] = {{"fup", ppt_fup}, {"tip", ppt_tip}, {"pge", ppt_tip_pge}, {"pgd", ppt_tip_pgd}};

static void packet(const char *line)
{
	struct pt_packet p = {0};
	char w[4][256] = {"", "", "", ""};
	int n = sscanf(line, "%255s %255s %255s %255s", w[0], w[1], w[2], w[3]);

	if (n < 1 || w[0][0] == '#')
		return;
	for (int i = 0; i < 5; i++)
		if (!strcmp(w[0], plain[i].name)) {
			p.type = plain[i].type;
			put(&p, line);
			return;
		}
	for (int i = 0; i < 4; i++)
		if (!strcmp(w[0], ips[i].name)) {
			p.type = ips[i].type;
			p.payload.ip.ipc = n > 2 ? (enum pt_ip_compression)value(w[2]) : pt_ipc_sext_48;
			if (!strcmp(w[1], "-"))
				p.payload.ip.ipc = pt_ipc_suppressed;
			else
				p.payload.ip.ip = value(w[1]);
			put(&p, line);
			return;
		}
	if (!strcmp(w[0], "tnt")) {
		tnt(w[1], line);
	} else if (!strcmp(w[0], "raw")) {
		raw(w[1]);
	} else if (!strcmp(w[0], "cut")) {
		pt_enc_sync_set(enc, offset() - value(w[1]));
	} else {
		uint64_t v = value(w[1]);

		if (!strcmp(w[0], "mode")) {
			p.type = ppt_mode;
			p.payload.mode.leaf = pt_mol_exec;
			p.payload.mode.bits.exec = pt_set_exec_mode(v == 64   ? ptem_64bit
								    : v == 32 ? ptem_32bit
									      : ptem_16bit);
		} else if (!strcmp(w[0], "tsc")) {
			p.type = ppt_tsc;
			p.payload.tsc.tsc = v;
		} else if (!strcmp(w[0], "tma")) {
			p.type = ppt_tma;
			p.payload.tma.ctc = (uint16_t)v;
			p.payload.tma.fc = (uint16_t)value(w[2]);
		} else if (!strcmp(w[0], "mtc")) {
			p.type = ppt_mtc;
			p.payload.mtc.ctc = (uint8_t)v;
		} else if (!strcmp(w[0], "cyc")) {
			p.type = ppt_cyc;
			p.payload.cyc.value = v;
		} else if (!strcmp(w[0], "cbr")) {
			p.type = ppt_cbr;
			p.payload.cbr.ratio = (uint8_t)v;
		} else if (!strcmp(w[0], "ptw")) {
			p.type = ppt_ptw;
			p.payload.ptw.payload = v;
			p.payload.ptw.plc = 1; /* 8 bytes */
			p.payload.ptw.ip = !strcmp(w[2], "ip");
		} else {
			die("no such packet", line);
		}
		put(&p, line);
	}
}

int main(int argc, char **argv)
{
	struct pt_config c;
	char line[512];
	FILE *f;

	if (argc != 3)
		die("usage", "mkpt SYMBOLS OUT <packets");
	symbols(argv[1]);
	pt_config_init(&c);
	c.begin = buf;
	c.end = buf + sizeof(buf);
	enc = pt_alloc_encoder(&c);
	if (!enc)
		die("no encoder", argv[2]);
	while (fgets(line, sizeof(line), stdin))
		packet(line);
	f = fopen(argv[2], "wb");
	if (!f || fwrite(buf, 1, offset(), f) != offset() || fclose(f))
		die("cannot write", argv[2]);
	pt_free_encoder(enc);
	return 0;
}
