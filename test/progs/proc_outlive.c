// SPDX-License-Identifier: MIT
// BREAKS: children that outlive their parent: the run is not over when the first process is, and what the last
// child did is in it.
// BUILD: cc -O2
// THREADS: 3
// STATUS: 3
#include <sys/wait.h>

#include "check.h"

int main(void)
{
	int alive[2], order[2];
	char c;

	CHECK(!pipe(alive) && !pipe(order));
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid)
			continue;
		close(alive[1]);
		close(order[i == 0 ? 0 : 1]);
		(void)!read(alive[0], &c, 1); /* until the parent has ended */
		if (i == 1)
			(void)!read(order[0], &c, 1); /* until the first child has ended */
		printf("proc_outlive child %d %x\n", i, work(i, 500));
		return 0;
	}
	close(order[0]);
	close(order[1]);
	printf("proc_outlive parent\n");
	return 3;
}
