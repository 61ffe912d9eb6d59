# decoder: walker and formats
$(B)/test/unit_walk $(B)/test/unit_format: $(B)/test/%: test/%.c $(B)/libptrace_decode.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Idecoder -o $@ $< $(B)/libptrace_decode.a $(DEC_LIBS)
$(B)/test/unit_merge: test/unit_merge.c test/fuzz/parts.c $(B)/libptrace_decode.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Idecoder -Itest/fuzz -o $@ $^ $(DEC_LIBS)
check-programs: $(B)/test/unit_walk $(B)/test/unit_format $(B)/test/unit_merge

# semantics IR: unit test, differential test against the processor
SEM_OBJ := $(call obj,$(wildcard analyzer/sem_*.c))
$(B)/test/unit_sem: test/unit_sem.c $(SEM_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis
$(B)/test/semtest: $(wildcard test/semtest*.c) test/semtest.h $(SEM_OBJ)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis
check-programs: $(B)/test/unit_sem $(B)/test/semtest

# planner: golden plans of small functions; the decoder's program against the full effect
$(B)/test/unit_plan $(B)/test/plan_sim: $(B)/test/%: test/%.c $(AN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis -lelf -lxxhash -lpthread
check-programs: $(B)/test/unit_plan $(B)/test/plan_sim

# planner: minimum cuts
$(B)/test/unit_cut: test/unit_cut.c $(B)/obj/analyzer/cut_flow.o $(B)/obj/analyzer/scratch.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^)
check-programs: $(B)/test/unit_cut

# decodings from earlier ones
$(B)/test/unit_decode: test/unit_decode.c test/random_insn.h $(B)/obj/analyzer/decode.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis
check-programs: $(B)/test/unit_decode

# discovery: heads of instructions
$(B)/test/unit_head: test/unit_head.c test/random_insn.h $(B)/obj/analyzer/disc_head.o $(B)/obj/analyzer/nondet.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis
check-programs: $(B)/test/unit_head

# analyzer: memory of one group's analysis
$(B)/test/unit_scratch: test/unit_scratch.c $(B)/obj/analyzer/scratch.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^)
check-programs: $(B)/test/unit_scratch

# emitter: r15 rewriting against the processor; a mapped module run in the test's process; golden copy
$(B)/test/unit_r15: test/unit_r15.c test/emit_step.S $(AN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.S %.o,$^) -lZydis -lelf -lxxhash -lpthread
$(B)/test/unit_emit: test/unit_emit.c test/emit_step.S
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) $(LDFLAGS) -o $@ $^ -ldl
$(B)/test/emit_dump: test/emit_dump.c $(AN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis -lelf -lxxhash -lpthread
$(B)/test/emit/%.so: test/emit/%.c test/emit/odd.S
	@mkdir -p $(@D)
	$(CC) -O2 -fPIC -shared -Wl,-Bsymbolic -o $@ $^
$(B)/test/emit/golden.so: test/emit/golden.S
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -Wl,-Bsymbolic -Wl,--build-id=none -o $@ $^
check-programs: $(B)/test/unit_r15 $(B)/test/unit_emit $(B)/test/emit_dump $(B)/test/emit/funcs.so $(B)/test/emit/golden.so

# discovery: small functions whose every byte is known
.PHONY: check-discover
check-discover: $(B)/ptrace-analyze
	test/discover.sh $<

# collector: what it compresses, by liblz4; where it finds the end of a killed thread's log
$(B)/test/unit_lz: test/unit_lz.c $(B)/obj/preload/collect_lz.o
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ipreload $(LDFLAGS) -o $@ $^ -llz4
$(B)/test/unit_fill: test/unit_fill.c $(B)/obj/preload/collect_fill.o
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ipreload $(LDFLAGS) -o $@ $^
check-programs: $(B)/test/unit_lz $(B)/test/unit_fill
# and how it takes Intel PT packets from buffers made up
$(B)/test/unit_pt_collect: test/unit_pt_collect.c $(patsubst %,$(B)/obj/preload/collect_%.o,lz pt_file pt_open pt_pmu pt_read pt_why write)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ipreload $(LDFLAGS) -o $@ $^ -lxxhash -lzstd -llz4
# and which of its events have gone
$(B)/test/unit_pt_poll: test/unit_pt_poll.c $(B)/obj/preload/collect_pt.o
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ipreload $(LDFLAGS) -o $@ $^ -lpthread
check-programs: $(B)/test/unit_pt_collect $(B)/test/unit_pt_poll

# runtime: every hook with a hand-made map; broken surroundings; libc's processes, threads, signals
$(B)/test/rt_prog: test/rt_prog.c test/rt_prog.S
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -Wl,--build-id -o $@ $^ -lpthread
$(B)/test/bases_plug.so: test/bases_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -DPLUG -shared -fPIC -Wl,--build-id -o $@ $<
$(B)/test/bases_prog: test/bases_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -Wl,--build-id -o $@ $<
check-programs: $(B)/test/bases_plug.so $(B)/test/bases_prog
$(B)/test/order_prog: test/order_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O2 -g -o $@ $< -lpthread
check-programs: $(B)/test/order_prog
$(B)/test/times_prog: test/times_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O2 -g -o $@ $< -lpthread
check-programs: $(B)/test/times_prog
$(B)/test/rt_mkmap: test/rt_mkmap.c include/map.h
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -Iinclude -o $@ $< -lxxhash
$(B)/test/rt_libc: test/rt_libc.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -Wl,--build-id -o $@ $< -lpthread
$(B)/test/rt_chld: test/rt_chld.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $<
check-programs: $(B)/test/rt_prog $(B)/test/rt_mkmap $(B)/test/rt_libc $(B)/test/rt_chld

# signals at any time
SIG := $(patsubst test/sig/%.c,$(B)/test/%,$(wildcard test/sig/*.c))
$(SIG): $(B)/test/%: test/sig/%.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O2 -g -o $@ $<
check-programs: $(SIG)

# a signal at every instruction of what the tracer changes
$(B)/test/step_prog: test/step_prog.c test/progs/plt_lib.c test/progs/plt_lib.h
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O2 -g -fPIC -shared -Wl,-z,now -Wl,-soname,libstep.so -o $(B)/test/libstep.so test/progs/plt_lib.c
	$(CC) $(CSTD) $(WARN) -O1 -g -Wl,-z,now -Wl,-rpath,'$$ORIGIN' -o $@ $< -L$(B)/test -l:libstep.so
$(B)/test/step_sig: test/step_sig.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $<
check-programs: $(B)/test/step_prog $(B)/test/step_sig
# and of any program
$(B)/test/sigs_plug.so: test/sigs_plug.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O2 -g -fPIC -shared -o $@ $<
check-programs: $(B)/test/sigs_plug.so

# threads and processes whose log cannot be kept
$(B)/test/rough_prog: test/rough_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -pthread -o $@ $<
check-programs: $(B)/test/rough_prog

# signals and ends, recorded for a replay
$(B)/test/replay_prog: test/replay_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $<
check-programs: $(B)/test/replay_prog
$(B)/test/place_prog: test/place_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $<
check-programs: $(B)/test/place_prog
$(B)/test/hold_prog: test/hold_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $<
check-programs: $(B)/test/hold_prog

# many children that end at once
$(B)/test/forks_prog: test/forks_prog.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -fno-optimize-sibling-calls -o $@ $<
check-programs: $(B)/test/forks_prog

# --pt-raw: hand-made streams
$(B)/test/mkpt: test/ptraw/mkpt.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $< -lipt
check-programs: $(B)/test/mkpt

# what system calls write: the runtime's table against all memory of a program, before and after each call
SYSOUT_SRC := $(wildcard test/sysout/check.c test/sysout/mem.c preload/rt_sysout*.c)
$(B)/test/sysout_check: $(SYSOUT_SRC) $(wildcard test/sysout/*.h preload/rt_sysout*.h)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ipreload -DRT_SYSOUT_REMOTE -o $@ $(SYSOUT_SRC)
check-programs: $(B)/test/sysout_check
$(B)/test/sysout_prog: $(wildcard test/sysout/prog*.c) $(wildcard preload/rt_sysout*.c) test/sysout/prog.h $(wildcard preload/rt_sysout*.h)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ipreload -o $@ $(filter %.c,$^)
check-programs: $(B)/test/sysout_prog

# control flow from Intel PT: hand-made modules and packets
$(B)/test/unit_flow: test/unit_flow.c $(B)/libptrace_decode.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Idecoder -o $@ $< $(B)/libptrace_decode.a $(DEC_LIBS)
check-programs: $(B)/test/unit_flow
