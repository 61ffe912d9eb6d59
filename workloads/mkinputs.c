// SPDX-License-Identifier: MIT
/*
 * mkinputs - write one input of the real-program cases to stdout.
 *
 *	mkinputs KIND N [SEED]
 *
 * The output depends on the arguments alone, so every machine measures the same work, and
 * nothing has to be downloaded or shipped. KIND and what N counts:
 *
 *	text	 bytes, about: English-looking prose with a skewed vocabulary
 *	log	 lines of a server's log
 *	sql	 rows of the larger table; statements for sqlite3
 *	c	 lines, about, of a C file without includes
 *	asm	 instructions of an assembler file without undefined symbols
 *	object	 functions of an assembler file that calls its SEED's neighbours (for ld)
 *	tar	 entries of a ustar archive of small files
 *	list	 entries of a ustar archive of empty files
 *	history	 commits, as a stream for git fast-import
 */
#include <stdarg.h>

#include "workload.h"

#define WORDS 4096

static uint64_t seed;
static char words[WORDS][20];

/* below - a number from 0 to limit - 1 */
static unsigned int below(unsigned int limit)
{
	return (unsigned int)((wl_rand(&seed) >> 32) * limit >> 32);
}

/* skewed - like below, but small numbers far more often */
static unsigned int skewed(unsigned int limit)
{
	double x = (double)(wl_rand(&seed) >> 40) / (double)(1 << 24);

	return (unsigned int)(x * x * x * x * (double)limit);
}

static void make_words(void)
{
	static const char *const syllables[] = {
		"ta", "ri",  "men", "so",  "la",  "con", "ter", "ing", "ed",  "pro", "ka",
		"ne", "ver", "al",  "ti",  "on",  "de",	 "res", "su",  "min", "el",  "qua",
		"ba", "lo",  "fi",  "gra", "tri", "um",	 "ex",	"pa",  "sti", "no",
	};

	for (int i = 0; i < WORDS; i++) {
		int count = 1 + (i > 24) + (i > 600) + (int)below(2);

		words[i][0] = '\0';
		while (count--)
			strcat(words[i], syllables[below(32)]);
	}
}

static const char *word(void)
{
	return words[skewed(WORDS)];
}

static void make_text(long bytes)
{
	while (bytes > 0) {
		unsigned int length = 4 + below(12);

		for (unsigned int i = 0; i < length; i++) {
			const char *w = word();
			int capital = i == 0 ? w[0] - 'a' + 'A' : w[0];
			const char *end = " ";

			if (i + 1 == length)
				end = below(5) ? ". " : ".\n";
			else if (!below(9))
				end = ", ";
			bytes -= printf("%c%s%s", capital, w + 1, end);
		}
	}
	putchar('\n');
}

static void make_log(long lines)
{
	static const char *const levels[] = {"info", "info", "debug", "info", "warn", "error"};
	unsigned int second = 0;

	while (lines--) {
		second += below(3);
		printf("2021-%02u-%02uT%02u:%02u:%02uZ host%02u %s[%u]: %s ", 1 + second / 2419200 % 12,
		       1 + second / 86400 % 28, second / 3600 % 24, second / 60 % 60, second % 60, skewed(20),
		       words[30 + below(8)], 1000 + skewed(4000), levels[below(6)]);
		printf("GET /%s/%s?id=%u from 10.%u.%u.%u took %u.%03u ms, %u bytes: %s %s\n", word(), word(),
		       below(100000), skewed(8), skewed(256), below(256), skewed(900), below(1000),
		       skewed(200000), word(), word());
	}
}

static void make_sql(long rows)
{
	unsigned int customers = (unsigned int)(rows / 8 + 1);

	puts("CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT, grade INT);\n"
	     "CREATE TABLE sale(id INTEGER PRIMARY KEY, customer INT, item TEXT, price REAL,"
	     " day INT);\nBEGIN;");
	for (unsigned int i = 1; i <= customers; i++)
		printf("INSERT INTO customer VALUES(%u,'%s %s','%s',%u);\n", i, word(), word(), word(),
		       below(10));
	for (long i = 1; i <= rows; i++)
		printf("INSERT INTO sale VALUES(%ld,%u,'%s',%u.%02u,%u);\n", i, 1 + skewed(customers), word(),
		       below(500), below(100), below(365));
	puts("COMMIT;\nCREATE INDEX sale_customer ON sale(customer);\n"
	     "CREATE INDEX sale_day ON sale(day, item);\n"
	     "SELECT c.city, count(*), round(sum(s.price), 2) FROM sale s JOIN customer c"
	     " ON c.id = s.customer GROUP BY c.city ORDER BY 3 DESC, 1 LIMIT 20;\n"
	     "SELECT item, day, price FROM sale ORDER BY price DESC, item, id LIMIT 20;\n"
	     "SELECT a.day, count(*) FROM sale a JOIN sale b ON a.day = b.day + 1 AND"
	     " a.item = b.item AND a.price > 490 AND b.price > 490 GROUP BY a.day ORDER BY 2 DESC, 1 LIMIT "
	     "10;\n"
	     "UPDATE sale SET price = price * 1.1 WHERE customer IN"
	     " (SELECT id FROM customer WHERE grade > 6);\n"
	     "SELECT name, total, rank() OVER (ORDER BY total DESC) FROM (SELECT c.name AS name,"
	     " round(sum(s.price), 2) AS total FROM customer c JOIN sale s ON s.customer = c.id"
	     " GROUP BY c.id) ORDER BY total DESC, name LIMIT 15;\n"
	     "SELECT count(*) FROM customer WHERE name LIKE '%ta%' AND upper(city) > 'K';\n"
	     "SELECT DISTINCT substr(item, 1, 3) FROM sale ORDER BY 1 LIMIT 20;\n"
	     "DELETE FROM sale WHERE day % 7 = 3;\nSELECT count(*), max(id) FROM sale;");
}

/* c_expression - of a, b, c and small numbers; no division, so nothing is undefined */
static void c_expression(int depth)
{
	static const char *const ops[] = {"+", "-", "*", "&", "|", "^"};

	if (depth == 0 || !below(4)) {
		if (below(3))
			putchar("abc"[below(3)]);
		else
			printf("%uu", below(1000));
		return;
	}
	putchar('(');
	c_expression(depth - 1);
	printf(" %s ", ops[below(6)]);
	c_expression(depth - 1);
	putchar(')');
}

/* c_function - returns the number of lines written */
static int c_function(unsigned int id)
{
	int lines = 21;

	printf("static unsigned f%u(unsigned a, unsigned b, struct item *p, unsigned n)\n{\n"
	       "\tunsigned c = ",
	       id);
	c_expression(3);
	printf(";\n\tfor (unsigned i = 0; i < n; i++) {\n\t\tp[i].key ^= ");
	c_expression(2);
	printf(";\n\t\tif (p[i].key > a && p[i].weight < %u.5)\n\t\t\tp[i].count += ", below(90));
	c_expression(2);
	printf(";\n\t\telse\n\t\t\tp[i].weight = p[i].weight * 0.5 + (double)(");
	c_expression(2);
	printf(");\n\t}\n\tswitch (c & 7) {\n");
	for (unsigned int i = 0; i < 6; i++, lines += 3) {
		printf("\tcase %u:\n\t\tc += ", i);
		c_expression(3);
		printf(";\n\t\tbreak;\n");
	}
	if (id) {
		printf("\tdefault:\n\t\tc ^= f%u(b, c, p, n / 2);\n\t}\n", below(id));
		printf("\tfor (struct item *q = p; q; q = q->next)\n"
		       "\t\tc = c * 31 + (unsigned)q->name[c %% sizeof(q->name)];\n");
	} else {
		printf("\tdefault:\n\t\tc++;\n\t}\n\tif (c > b)\n\t\tc -= b;\n");
	}
	printf("\treturn n ? ");
	c_expression(3);
	printf(" : c;\n}\n\n");
	return lines;
}

static void make_c(long lines)
{
	unsigned int count = 0;

	puts("struct item {\n\tstruct item *next;\n\tunsigned key, count;\n\tdouble weight;\n"
	     "\tchar name[16];\n};\n");
	for (lines -= 20; lines > 0; count++)
		lines -= c_function(count);
	printf("unsigned (*const functions[])(unsigned, unsigned, struct item *, unsigned) = {\n");
	for (unsigned int i = 0; i < count; i++)
		printf("\tf%u,%s", i, i % 8 == 7 || i + 1 == count ? "\n" : "");
	puts("};");
}

static const char *reg64(void)
{
	static const char *const regs[] = {
		"%rax", "%rbx", "%rcx", "%rdx", "%rsi", "%rdi", "%r8",
		"%r9",	"%r10", "%r11", "%r12", "%r13", "%r14", "%r15",
	};

	return regs[below(14)];
}

static void asm_instruction(long label)
{
	static const char *const ops[] = {"addq", "subq", "xorq", "andq", "movq", "cmpq"};

	switch (below(7)) {
	case 0:
		printf("\t%s\t%s, %s\n", ops[below(6)], reg64(), reg64());
		break;
	case 1:
		printf("\tmovq\t%u(%s,%s,8), %s\n", below(400), reg64(), reg64(), reg64());
		break;
	case 2:
		printf("\t%s\t$%u, -%u(%%rbp)\n", ops[below(6)], below(100000), 8 * below(32));
		break;
	case 3:
		printf("\tj%s\t.L%ld\n", below(2) ? "ne" : "g", label ? label - 1 : 0);
		break;
	case 4:
		printf("\tleaq\tdata+%u(%%rip), %s\n", below(4096), reg64());
		break;
	case 5:
		printf("\tvaddpd\t%u(%s), %%ymm%u, %%ymm%u\n", 32 * below(20), reg64(), below(16), below(16));
		break;
	default:
		printf("\tshrq\t$%u, %s\t# %s\n", below(64), reg64(), word());
		break;
	}
}

static void make_asm(long count)
{
	puts("\t.text\n\t.globl\tentry\n\t.type\tentry, @function\nentry:\n\t.cfi_startproc");
	for (long i = 0; i < count; i++) {
		if (i % 8 == 0)
			printf(".L%ld:\n", i / 8);
		asm_instruction(i / 8);
	}
	puts("\tret\n\t.cfi_endproc\n\t.size\tentry, .-entry\n\t.bss\n\t.comm\tdata, 8192, 64\n"
	     "\t.section\t.note.GNU-stack,\"\",@progbits");
}

/*
 * make_object - functions sSEED_0 and up; each calls one of its own and one of the file with
 * SEED - 1 (file 0 calls itself), so a link of the files 0 to k has no undefined symbol but
 * _start, which file 0 defines.
 */
static void make_object(long functions, unsigned int id)
{
	printf("\t.section .rodata.str1.1,\"aMS\",@progbits,1\n");
	for (long i = 0; i < functions; i++)
		printf(".S%ld:\t.string \"%s %s %ld\"\n", i, word(), word(), i % 50);
	puts("\t.text");
	if (id == 0)
		puts("\t.globl _start\n_start:");
	for (long i = 0; i < functions; i++) {
		printf("\t.globl s%u_%ld\n\t.type s%u_%ld, @function\ns%u_%ld:\n\t.cfi_startproc\n", id, i,
		       id, i, id, i);
		printf("\tleaq .S%ld(%%rip), %%rdi\n\tcall s%u_%u\n\tcall s%u_%u\n"
		       "\tmovq d%u_%ld(%%rip), %%rax\n\tret\n\t.cfi_endproc\n",
		       i, id, below((unsigned int)functions), id ? id - 1 : 0, below((unsigned int)functions),
		       id, i);
		printf("\t.size s%u_%ld, .-s%u_%ld\n", id, i, id, i);
	}
	puts("\t.data");
	for (long i = 0; i < functions; i++)
		printf("\t.globl d%u_%ld\nd%u_%ld:\t.quad s%u_%u\n", id, i, id, i, id,
		       below((unsigned int)functions));
	puts("\t.section .note.GNU-stack,\"\",@progbits");
}

#define TAR_BODY 2048 /* bytes a file has at most; whole blocks */

static void tar_octal(char *field, size_t size, unsigned long value)
{
	field[--size] = '\0';
	while (size--) {
		field[size] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

static void make_tar(long entries, unsigned int limit)
{
	for (long i = 0; i < entries; i++) {
		static char head[512], body[TAR_BODY];
		unsigned int sum = 0, size = skewed(limit);

		memset(head, 0, sizeof(head));
		memset(body, 0, sizeof(body));
		snprintf(head, 100, "tree/%s/%s-%ld.txt", words[i / 64 % WORDS], word(), i);
		tar_octal(head + 100, 8, 0644);
		tar_octal(head + 108, 8, 0);
		tar_octal(head + 116, 8, 0);
		tar_octal(head + 124, 12, size);
		tar_octal(head + 136, 12, 1600000000ul + (unsigned long)i * 3607);
		memset(head + 148, ' ', 8);
		head[156] = '0';
		memcpy(head + 257,
		       "ustar\0"
		       "00",
		       8);
		for (int k = 0; k < 512; k++)
			sum += (unsigned char)head[k];
		tar_octal(head + 148, 7, sum);
		for (unsigned int k = 0; k < size; k++)
			body[k] = k % 60 == 59 ? '\n' : (char)('a' + below(26));
		fwrite(head, 1, 512, stdout);
		fwrite(body, 1, (size + 511) / 512 * 512, stdout);
	}
	for (int i = 0; i < 1024; i++)
		putchar(0);
}

/* A file of the history is a list of line numbers; a line's text follows from its number. */
#define FILES 48
#define MAX_LINES 600

struct doc {
	uint32_t lines[MAX_LINES];
	unsigned int count;
};

static char line_text[512 * 1024];
static size_t line_used;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	line_used += (size_t)vsnprintf(line_text + line_used, sizeof(line_text) - line_used, format, ap);
	va_end(ap);
}

static void add_line(uint32_t number)
{
	uint64_t keep = seed;

	seed = number * 2654435761ull + 1;
	add("%*s%s = %s(%s, %u)", (int)below(4) * 2, "", word(), word(), word(), below(100));
	add(below(4) ? ";\n" : ";  /* %s %s */\n", word(), word());
	seed = keep;
}

static void edit(struct doc *d, uint32_t *next)
{
	unsigned int at = below(d->count), length = 1 + below(8);

	for (unsigned int i = at; i < d->count && i < at + length; i++)
		d->lines[i] = (*next)++;
	if (below(2) && d->count < MAX_LINES) {
		memmove(d->lines + at + 1, d->lines + at, (d->count - at) * sizeof(*d->lines));
		d->lines[at] = (*next)++;
		d->count++;
	} else if (d->count > 100) {
		memmove(d->lines + at, d->lines + at + 1, (d->count - at - 1) * sizeof(*d->lines));
		d->count--;
	}
}

static void make_history(long commits)
{
	static struct doc docs[FILES];
	uint32_t next = 1;

	for (long c = 0; c < commits; c++) {
		char message[128];
		int length = snprintf(message, sizeof(message), "%s the %s %s\n\n%s %s %s\n", word(), word(),
				      word(), word(), word(), word());

		printf("commit refs/heads/main\nmark :%ld\nauthor A. %s <%s@example.org> %ld +0000\n"
		       "committer C. %s <%s@example.org> %ld +0000\ndata %d\n%s",
		       c + 1, words[c % 9], words[c % 9], 1500000000 + c * 5003, words[c % 7], words[c % 7],
		       1500000000 + c * 5003, length, message);
		for (int f = 0; f < FILES; f++) {
			struct doc *d = &docs[f];

			if (c && below(16))
				continue;
			while (!c && d->count < 200 + (unsigned int)f * 5)
				d->lines[d->count++] = next++;
			for (unsigned int i = 0; i < 1 + below(4); i++)
				edit(d, &next);
			line_used = 0;
			for (unsigned int i = 0; i < d->count; i++)
				add_line(d->lines[i]);
			printf("M 100644 inline src/%s/%s-%d.c\ndata %zu\n", words[50 + f % 7], words[90 + f],
			       f, line_used);
			fwrite(line_text, 1, line_used, stdout);
			putchar('\n');
		}
	}
	puts("done");
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	unsigned int id = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : 0;

	seed = 0x5eed;
	make_words();
	seed += id;
	if (n <= 0)
		kind = "";
	if (!strcmp(kind, "text")) {
		make_text(n);
	} else if (!strcmp(kind, "log")) {
		make_log(n);
	} else if (!strcmp(kind, "sql")) {
		make_sql(n);
	} else if (!strcmp(kind, "c")) {
		make_c(n);
	} else if (!strcmp(kind, "asm")) {
		make_asm(n);
	} else if (!strcmp(kind, "object")) {
		make_object(n, id);
	} else if (!strcmp(kind, "tar")) {
		make_tar(n, TAR_BODY);
	} else if (!strcmp(kind, "list")) {
		make_tar(n, 1);
	} else if (!strcmp(kind, "history")) {
		make_history(n);
	} else {
		fprintf(stderr, "usage: mkinputs text|log|sql|c|asm|object|tar|list|history N "
				"[SEED]\n");
		return 2;
	}
	if (fflush(stdout)) {
		fprintf(stderr, "mkinputs: cannot write the %s input: disk full?\n", kind);
		return 1;
	}
	return 0;
}
