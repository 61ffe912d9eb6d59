// SPDX-License-Identifier: MIT
// BREAKS: the order of ends: destructors and atexit handlers of libraries at dlclose, of what is still open at
// exit, while a thread still computes.
// BUILD: cc -O2 -pthread -Wl,-rpath,$ORIGIN -rdynamic
// PT_LONG: yes
// LIB: libldr_dtor.so ldr_dtor_plug.c
// STATUS: 6
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

static volatile unsigned turns;

void say(const char *what)
{
	printf("ldr_dtor %s\n", what);
}

static void *spin(void *arg)
{
	for (unsigned n = 0;; n++) {
		work(n, 20);
		turns++;
	}
	return arg;
}

static void last(void)
{
	say("program's atexit");
}

__attribute__((destructor)) static void end(void)
{
	say("program's destructor");
}

int main(void)
{
	pthread_t t;
	void *h;

	atexit(last);
	CHECK(!pthread_create(&t, NULL, spin, NULL));
	while (turns < 10)
		usleep(100);
	for (int i = 0; i < 2; i++) {
		CHECK((h = dlopen("libldr_dtor.so", RTLD_NOW)));
		if (!i)
			CHECK(!dlclose(h));
	}
	say("exit");
	exit(6);
}
