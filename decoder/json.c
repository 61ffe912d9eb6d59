/* SPDX-License-Identifier: MIT
 *
 * json.c - the little JSON the decoder needs
 *
 * Reading is tolerant on purpose: run.json and proc.json may be cut (the run was killed) or
 * come from another version, and nothing the decode depends on is in them. A key is one of the outermost
 * object's: those of objects in it may have the same names. A string is told from a key by what follows it.
 */
#include <string.h>
#include "dec.h"

/* s at the opening quote; copies the unescaped text, returns the place after the closing quote */
static const char *string(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	for (s++; *s && *s != '"'; s++) {
		char c = *s;

		if (c == '\\' && s[1]) {
			c = *++s;
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		if (n + 1 < size)
			buf[n++] = c;
	}
	if (size)
		buf[n] = 0;
	return *s ? s + 1 : s;
}

/* text behind the colon of a key; NULL */
static const char *value(const char *text, const char *key)
{
	char name[64];
	int depth = 0;

	while ((text = strpbrk(text, "\"{}[]"))) {
		if (*text != '"') {
			depth += *text == '{' || *text == '[' ? 1 : -1;
			text++;
			continue;
		}
		text = string(text, name, sizeof(name));
		text += strspn(text, " \t\r\n");
		if (*text == ':' && depth == 1 && !strcmp(name, key))
			return text + 1 + strspn(text + 1, " \t\r\n");
	}
	return NULL;
}

bool json_get(const char *text, const char *key, char *buf, size_t size)
{
	size_t n;

	text = value(text, key);
	if (!text)
		return false;
	if (*text == '"') {
		string(text, buf, size);
		return true;
	}
	n = strcspn(text, ",}] \t\r\n");
	if (n >= size)
		n = size - 1;
	memcpy(buf, text, n);
	buf[n] = 0;
	return true;
}

bool json_words(const char *text, const char *key, char *buf, size_t size)
{
	size_t n = 0;

	text = value(text, key);
	if (!text || *text != '[')
		return false;
	buf[0] = 0;
	for (text++; n + 2 < size; text += strspn(text, ", \t\r\n")) {
		text += strspn(text, " \t\r\n");
		if (*text != '"')
			break;
		if (n)
			buf[n++] = ' ';
		text = string(text, buf + n, size - n);
		n += strlen(buf + n);
	}
	return true;
}

void json_puts(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			putc(c, f);
	}
	putc('"', f);
}
