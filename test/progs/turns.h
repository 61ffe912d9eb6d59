// SPDX-License-Identifier: MIT
// turns.h - threads that compute until the process ends
#ifndef TURNS_H
#define TURNS_H

#include "check.h"

#define SPINNERS 4

static volatile unsigned turns[SPINNERS]; // that each has made

static void *spin(void *arg) // arg: its number
{
	for (unsigned n = 0;; n++) {
		work(n, 50);
		turns[(long)arg]++;
	}
	return NULL;
}

#endif
