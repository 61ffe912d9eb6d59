# SPDX-License-Identifier: MIT
# The test programs and the targets that run them. Included by the top Makefile, which
# may use $(PROGS), all programs with their variants, and $(PROGS_BASE), without them.
include test/oracle/oracle.mk
include test/ptsim/ptsim.mk

PROGS = $(shell OUT=$(B)/test/progs test/progs/build.sh --list)
PROGS_BASE = $(shell OUT=$(B)/test/progs test/progs/build.sh --list-base)

check-programs: $(B)/test/oracle $(B)/test/compare $(B)/test/libmarker.so progs

.PHONY: check-programs progs oracle-selftest e2e e2e-base procs pt-procs soak test-trees
progs:
	OUT=$(B)/test/progs test/progs/build.sh

oracle-selftest: $(B)/test/oracle $(B)/test/compare $(B)/test/libmarker.so
	BUILD=$(B) test/oracle/selftest.sh

e2e: $(B)/test/oracle $(B)/test/compare progs
	BUILD=$(B) test/e2e.sh $(PROGS)

e2e-base: $(B)/test/oracle $(B)/test/compare progs
	BUILD=$(B) test/e2e.sh $(PROGS_BASE)

procs: all progs
	BUILD=$(B) PROCS_JOBS=2 test/procs.sh

# real programs with threads, processes, signals, with and without cached maps; TREES='redis --plain' some of them
test-trees: all
	test/real/trees.sh --build $(B) --cold $(TREES)

# Intel PT under the simulator: all of those, with variants, minutes
pt-procs: all check-programs
	BUILD=$(B) PT_JOBS=2 PT_VERIFY=1 test/pt.sh $$(OUT=$(B)/test/progs test/progs/build.sh --list-procs-all)

soak: pt-procs
	nice env BUILD=$(B) test/pt.sh --long
	nice env BUILD=$(B) SIGS_JOBS=2 test/sigs.sh $(PROGS)
	nice env BUILD=$(B) SIGS_JOBS=2 test/sigs.sh --usec 100 $$(OUT=$(B)/test/progs test/progs/build.sh --list-procs)
	nice sh workloads/soak.sh $(B)
	nice test/real/trees.sh --build $(B) --cold $(TREES)
