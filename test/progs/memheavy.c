// SPDX-License-Identifier: MIT
// BREAKS: ordinary programs: a hash table with malloc and free, string functions, qsort, strtod, printf of
// doubles, realloc. Most of it runs in libc.
// BUILD: cc -O2
// VARIANTS: O0 O3 Os clang cet nopie stripped
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry { struct entry *next; double value; char key[]; };
static struct entry *buckets[37];

static unsigned hash(const char *s)
{
	unsigned h = 5381;

	while (*s)
		h = h * 33 ^ (unsigned char)*s++;
	return h;
}

static struct entry *get(const char *key)
{
	struct entry **p = &buckets[hash(key) % 37];

	for (; *p; p = &(*p)->next) {
		if (!strcmp((*p)->key, key))
			return *p;
	}
	*p = calloc(1, sizeof(**p) + strlen(key) + 1);
	strcpy((*p)->key, key);
	return *p;
}

static int by_value(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	return x->value < y->value ? -1 : x->value > y->value ? 1 : strcmp(x->key, y->key);
}

int main(void)
{
	char text[] = "the quick 1.5 brown fox 2.25e1 jumps over -0.125 the lazy dog the end 1e-3 fox";
	struct entry **all = NULL;
	size_t n = 0;
	char *save;

	for (int round = 0; round < 3; round++) {
		char copy[sizeof(text)], *end;

		memcpy(copy, text, sizeof(text));
		for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
			double d = strtod(w, &end);

			get(w)->value += *end ? strlen(w) : d;
		}
	}
	for (int i = 0; i < 37; i++) {
		for (struct entry *e = buckets[i]; e; e = e->next) {
			all = realloc(all, (n + 1) * sizeof(*all));
			all[n++] = e;
		}
	}
	qsort(all, n, sizeof(*all), by_value);
	for (size_t i = 0; i < n; i++)
		printf("%s=%.6g ", all[i]->key, all[i]->value);
	for (size_t i = 0; i < n; i++)
		free(all[i]);
	free(all);
	printf("\nmemheavy %zu %p\n", n, memchr(text, 'q', sizeof(text)) == text + 4 ? (void *)0 : (void *)1);
	return 0;
}
