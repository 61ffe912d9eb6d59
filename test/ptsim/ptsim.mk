# SPDX-License-Identifier: MIT
# The Intel PT simulator. Included by the top Makefile.
PTSIM_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -Iinclude
PTSIM_SRC := $(addprefix test/ptsim/,ptsim.c alone.c truth.c kern_pmu.c kern_event.c kern_calls.c sim_tasks.c sim_exec.c \
	code.c insn.c emu.c pt_cpu.c pt_enc.c) test/oracle/tracee.c

$(B)/test/ptsim: $(PTSIM_SRC) $(wildcard test/ptsim/*.h) test/oracle/tracee.h
	@mkdir -p $(@D)
	$(CC) $(PTSIM_CFLAGS) -o $@ $(PTSIM_SRC) -lZydis
$(B)/test/pt_check: test/ptsim/pt_check.c
	@mkdir -p $(@D)
	$(CC) $(PTSIM_CFLAGS) -o $@ $< -lipt
$(B)/test/pt_client: test/ptsim/client.c
	@mkdir -p $(@D)
	$(CC) $(PTSIM_CFLAGS) -o $@ $<
$(B)/test/unit_ptenc: test/ptsim/unit_ptenc.c test/ptsim/pt_enc.c test/ptsim/pt_enc.h
	@mkdir -p $(@D)
	$(CC) $(PTSIM_CFLAGS) -o $@ test/ptsim/unit_ptenc.c test/ptsim/pt_enc.c -lipt
$(B)/test/pt_kinds: test/ptsim/kinds.c
	@mkdir -p $(@D)
	$(CC) -O1 -fno-stack-protector -fcf-protection=none -fno-builtin -static -nostdlib -mptwrite -Wall -Wextra -Werror -o $@ $<
check-programs: $(B)/test/ptsim $(B)/test/pt_check $(B)/test/unit_ptenc $(B)/test/pt_kinds $(B)/test/pt_client
