# SPDX-License-Identifier: MIT
# The oracle and the trace comparer. Included by the top Makefile.
ORACLE_SRC := $(addprefix test/oracle/,oracle.c follow.c tracee.c decode.c eval.c)
ORACLE_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -Iinclude

$(B)/test/oracle: $(ORACLE_SRC) test/oracle/oracle.h test/oracle/tracee.h include/trace.h
	@mkdir -p $(@D)
	$(CC) $(ORACLE_CFLAGS) -o $@ $(ORACLE_SRC) -lZydis

$(B)/test/compare: test/oracle/compare.c include/trace.h
	@mkdir -p $(@D)
	$(CC) $(ORACLE_CFLAGS) -o $@ test/oracle/compare.c

$(B)/test/libmarker.so: test/oracle/marker.S
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,initfirst -o $@ $<
