# SPDX-License-Identifier: MIT
# One Makefile, not recursive. Each folder's C files are found by wildcard.
#   make | make demo | make check | make bench | make lint | make install | make clean

PREFIX ?= /usr/local
DESTDIR ?=
B := build
CC ?= gcc
CSTD := -std=gnu11
WARN := -Wall -Wextra -Wshadow -Werror
OPT ?= -O2 -g
CFLAGS_ALL = $(CSTD) $(WARN) $(OPT) -Iinclude -MMD -MP $(CFLAGS)
VERSION := 0.1

.PHONY: all demo check bench lint install clean deps
all: $(B)/libptrace_rt.so $(B)/ptrace-collect $(B)/ptrace-record $(B)/ptrace-analyze $(B)/ptrace-decode \
	$(B)/ptrace-replay

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

# analyzer: a first run waits for it. -O3 takes 4 % of its instructions
AN_OPT := $(filter -O3,$(OPT:-O2=-O3))
AN_SRC := $(filter-out analyzer/main.c,$(wildcard analyzer/*.c))
AN_OBJ := $(call obj,$(AN_SRC))
$(B)/ptrace-analyze: $(call obj,analyzer/main.c) $(AN_OBJ)
	$(CC) $(LDFLAGS) -o $@ $^ -lZydis -lelf -lxxhash -lpthread

# decoder: libptrace_decode is everything but main.c. What is installed shows only its public names.
DEC_SRC := $(filter-out decoder/main.c,$(wildcard decoder/*.c))
DEC_OBJ := $(call obj,$(DEC_SRC))
DEC_LIBS := -lipt -lelf -ldw -lZydis -lxxhash -lzstd -llz4 -lpthread
$(B)/libptrace_decode.a: $(DEC_OBJ)
	rm -f $@ && ar rcs $@ $^
$(B)/public/libptrace_decode.a: $(DEC_OBJ)
	@mkdir -p $(@D)
	ld -r -o $(@D)/decode.o $^
	objcopy --wildcard --keep-global-symbol='ptrace_*' $(@D)/decode.o
	rm -f $@ && ar rcs $@ $(@D)/decode.o
$(B)/ptrace-decode: $(call obj,decoder/main.c) $(B)/libptrace_decode.a
	$(CC) $(LDFLAGS) -o $@ $^ $(DEC_LIBS)

# preload: the runtime is freestanding (rules: preload/README.md); collector and recorder are programs
RT_SRC := $(wildcard preload/rt_*.c)
RT_ASM := $(wildcard preload/rt_*.S)
RT_OBJ := $(RT_SRC:%.c=$(B)/obj/%.o) $(RT_ASM:%.S=$(B)/obj/%.o)
RT_CFLAGS := -fPIC -ffreestanding -fno-stack-protector -mgeneral-regs-only -fvisibility=hidden \
	-fno-builtin -fcf-protection=none -fno-asynchronous-unwind-tables -ftls-model=initial-exec
$(B)/obj/preload/rt_%.o: preload/rt_%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(RT_CFLAGS) -c -o $@ $<
$(B)/obj/preload/rt_%.o: preload/rt_%.S
	@mkdir -p $(@D)
	$(CC) -Iinclude -Ipreload -MMD -MP -c -o $@ $<
$(B)/libptrace_rt.so: $(RT_OBJ)
	$(CC) -shared -nostdlib -Wl,-z,initfirst -Wl,-z,now -Wl,-z,noexecstack -Wl,--build-id \
		-Wl,-soname,libptrace_rt.so -Wl,-e,rt_replay_entry -o $@ $^ -lgcc
# static: it starts while the traced program waits, and its own loading would be half of that. Where there are no
# static libraries: make COLLECT_LDFLAGS=
COLLECT_LDFLAGS ?= -static
$(B)/ptrace-collect: $(call obj,$(wildcard preload/collect*.c))
	$(CC) $(LDFLAGS) $(COLLECT_LDFLAGS) -o $@ $^ -lxxhash -lzstd -lpthread
$(B)/ptrace-record: $(call obj,$(wildcard preload/record*.c))
	$(CC) $(LDFLAGS) -o $@ $^

RP_OBJ := $(call obj,$(wildcard preload/replay*.c)) $(B)/obj/preload/replay_stub.o
$(B)/obj/preload/replay_stub.o: preload/replay_stub.S
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<
$(B)/ptrace-replay: $(RP_OBJ) $(B)/libptrace_decode.a
	$(CC) $(LDFLAGS) -o $@ $^ $(DEC_LIBS)

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(if $(filter analyzer/%,$<),-Ianalyzer $(AN_OPT)) $(if $(filter decoder/% preload/replay%,$<),-Idecoder) \
		$(if $(filter preload/%,$<),-Ipreload) -c -o $@ $<

# --- what a bare Debian 12 machine lacks -------------------------------------------------------
DEBS := gcc g++ make pkg-config libzydis-dev libelf-dev libdw-dev libxxhash-dev libunwind-dev libipt-dev \
	libzstd-dev liblz4-dev
DEBS_CHECK := clang clang-format gzip xz-utils tar sed mawk bash perl lua5.4 python3.11 sqlite3 openssl git \
	binutils shellcheck
define need
	@miss=; for p in $(1); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || miss="$$miss $$p"; done; \
	[ -z "$$miss" ] && exit 0; \
	if [ "$$(id -u)" = 0 ]; then run=; elif sudo -n true 2>/dev/null; then run=sudo; else \
		echo "missing packages; run: sudo apt-get install$$miss" >&2; exit 1; fi; \
	echo "installing$$miss"; \
	{ $$run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$run apt-get install -y -qq $$miss; } \
		>$(B)/apt.log 2>&1 || { tail -5 $(B)/apt.log >&2; echo "apt-get install$$miss failed" >&2; exit 1; }
endef
deps:
	@mkdir -p $(B)
	$(call need,$(DEBS))
deps-check: deps
	$(call need,$(DEBS_CHECK))

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# fragments: test and workload programs
-include test/progs.mk workloads/workloads.mk test/test.mk test/fuzz.mk test/flow/flow.mk

# --- the two commands a newcomer types -----------------------------------------------------------
demo: deps
	@$(MAKE) --no-print-directory -j2 all >$(B)/build.log 2>&1 || { tail -20 $(B)/build.log >&2; exit 1; }
	@sh workloads/demo.sh $(B)

check: deps-check
	@$(MAKE) --no-print-directory -j2 all check-programs >$(B)/build.log 2>&1 || \
		{ grep -E -A5 'error|Error|\*\*\*' $(B)/build.log | tail -40 >&2; exit 1; }
	@sh test/run.sh $(B)

lint: deps-check
	@sh test/lint.sh

# --- installing ---------------------------------------------------------------------------------
install: all $(B)/public/libptrace_decode.a
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man3 \
		$(DESTDIR)$(PREFIX)/share/man/man5 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 755 $(addprefix $(B)/ptrace-,analyze record collect decode replay) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/libptrace_rt.so $(DESTDIR)$(PREFIX)/lib
	install -m 644 $(B)/public/libptrace_decode.a $(DESTDIR)$(PREFIX)/lib
	install -m 644 include/ptrace_decode.h include/trace.h $(DESTDIR)$(PREFIX)/include
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' decoder/libptrace_decode.pc.in \
		>$(DESTDIR)$(PREFIX)/lib/pkgconfig/libptrace_decode.pc
	for n in 1 3 5 7; do for f in man/*.$$n; do [ ! -e $$f ] || install -m 644 $$f $(DESTDIR)$(PREFIX)/share/man/man$$n; done; done

clean:
	rm -rf $(B)
