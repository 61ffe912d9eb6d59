// SPDX-License-Identifier: MIT
// The library of ldr_dtor.c.
#include <stdlib.h>

void say(const char *what);

static void at(void)
{
	say("library's atexit");
}

__attribute__((constructor)) static void begin(void)
{
	say("library's constructor");
	atexit(at);
}

__attribute__((destructor)) static void end(void)
{
	say("library's destructor");
}
