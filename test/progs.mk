# SPDX-License-Identifier: MIT
# The test programs and the targets that run them. Included by the top Makefile, which
# may use $(PROGS), all programs with their variants, and $(PROGS_BASE), without them.
include test/oracle/oracle.mk

PROGS = $(shell test/progs/build.sh --list)
PROGS_BASE = $(shell test/progs/build.sh --list-base)

check-programs: build/test/oracle build/test/compare build/test/libmarker.so progs

.PHONY: check-programs progs oracle-selftest e2e e2e-base
progs:
	test/progs/build.sh

oracle-selftest: build/test/oracle build/test/compare build/test/libmarker.so
	test/oracle/selftest.sh

e2e: build/test/oracle build/test/compare progs
	test/e2e.sh $(PROGS)

e2e-base: build/test/oracle build/test/compare progs
	test/e2e.sh $(PROGS_BASE)
