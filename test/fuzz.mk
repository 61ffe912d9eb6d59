# SPDX-License-Identifier: MIT
# Fuzz targets: every reader of a file that others write (test/fuzz/README.md). Included by the top Makefile.
#   make fuzz-replay                     the corpus through every target, gcc, sanitizers: minutes to build
#   make check                           the same with the objects of the build, as a test
#   make fuzz-build                      the targets with clang's libFuzzer
#   make fuzz-run FUZZ_SECONDS=60 [FUZZ=elf]  fuzz each for that long; new inputs and crashes in $(B)/fuzz
FUZZ ?= walk run bin elf rtelf pt
FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang
FUZZ_FLAGS = $(CSTD) $(FUZZ_OPT) -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all -Iinclude -Ianalyzer -Idecoder -Itest/fuzz -MMD -MP
FUZZ_SRC_walk := $(DEC_SRC) test/fuzz/parts.c
FUZZ_SRC_run := $(FUZZ_SRC_walk)
FUZZ_SRC_bin := $(DEC_SRC)
FUZZ_SRC_pt := $(DEC_SRC)
FUZZ_SRC_elf := $(AN_SRC) decoder/map.c decoder/map_check.c decoder/util.c
FUZZ_SRC_rtelf := $(AN_SRC) preload/rt_elf.c test/fuzz/elf_key.c
FUZZ_LIBS := -lipt -lelf -ldw -lZydis -lxxhash -lzstd -llz4 -lpthread

$(B)/fuzz/clang/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(FUZZ_PART) -c -o $@ $<
$(B)/fuzz/gcc/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(WARN) $(FUZZ_FLAGS) -c -o $@ $<
FUZZ_OPT := -O1
# hundreds of indirect jumps with checks around them: clang takes minutes to optimise that, gcc minutes in any
# case, so make check has that one file without sanitizers
$(B)/fuzz/clang/decoder/walk_loop.o: FUZZ_OPT := -O0
$(B)/fuzz/gcc/decoder/walk_loop.o: FUZZ_FLAGS := $(CSTD) -O1 -g -Iinclude -Idecoder -MMD -MP
# only for inputs made of parts
$(B)/fuzz/clang/test/fuzz/parts.o: FUZZ_PART := -DFUZZ_MUTATE_PARTS

define fuzz_target
$(B)/fuzz/fuzz_$(1): $$(patsubst %.c,$(B)/fuzz/clang/%.o,test/fuzz/fuzz_$(1).c $$(FUZZ_SRC_$(1)))
	$$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $$@ $$^ $$(FUZZ_LIBS)
$(B)/fuzz/replay_$(1): $$(patsubst %.c,$(B)/fuzz/gcc/%.o,test/fuzz/fuzz_$(1).c test/fuzz/replay.c $$(FUZZ_SRC_$(1)))
	$$(CC) -fsanitize=address,undefined -o $$@ $$^ $$(FUZZ_LIBS)
$(B)/fuzz/plain_$(1): $$(patsubst %.c,$(B)/fuzz/plain/%.o,test/fuzz/fuzz_$(1).c test/fuzz/replay.c \
		$$(filter test/%,$$(FUZZ_SRC_$(1)))) $$(call obj,$$(filter-out test/%,$$(FUZZ_SRC_$(1))))
	$$(CC) -o $$@ $$^ $$(FUZZ_LIBS)
check-programs: $(B)/fuzz/plain_$(1)
endef
$(B)/fuzz/plain/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer -Idecoder -Itest/fuzz -c -o $@ $<
$(foreach t,walk run bin elf rtelf pt,$(eval $(call fuzz_target,$(t))))

$(B)/fuzz/seed: test/fuzz/seed.c test/fuzz/parts.c $(B)/libptrace_decode.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Idecoder -Itest/fuzz -o $@ $^ $(DEC_LIBS)

.PHONY: fuzz-build fuzz-replay fuzz-run fuzz-seeds
fuzz-build: $(FUZZ:%=$(B)/fuzz/fuzz_%)
fuzz-replay: $(FUZZ:%=$(B)/fuzz/replay_%)
	B=$(B) test/fuzz/corpus.sh replay
fuzz-seeds: all $(B)/fuzz/seed progs
	B=$(B) test/fuzz/seeds.sh
fuzz-run: fuzz-build
	B=$(B) FUZZ="$(FUZZ)" FUZZ_SECONDS=$(FUZZ_SECONDS) test/fuzz/run.sh

-include $(shell find $(B)/fuzz -name '*.d' 2>/dev/null)
