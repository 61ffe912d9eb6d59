# SPDX-License-Identifier: MIT
# A walk whose control flow is a list of executed addresses. Included by the top Makefile.
$(B)/test/flow_step: test/flow/flow_step.c test/flow/flow_list.h test/oracle/tracee.c test/oracle/oracle.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -o $@ $(filter %.c,$^)
$(B)/test/flow_decode: test/flow/flow_decode.c test/flow/flow_list.c test/flow/flow_list.h $(B)/libptrace_decode.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Idecoder -o $@ $(filter %.c %.a,$^) $(DEC_LIBS)
check-programs: $(B)/test/flow_step $(B)/test/flow_decode
