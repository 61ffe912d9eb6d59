# SPDX-License-Identifier: MIT
# workloads.mk - the benchmark programs, the inputs of the real programs, and the harness.
#
# To be included by the Makefile in the root. Uses CC and B (the build
# folder, default build). The programs are always built with -O2, whatever the tracer itself is
# built with: what is measured must not change with the tracer's flags.
#
# Targets: workloads  inputs-small  inputs-bench  bench  bench-quick  bench-ops  bench-servers  test-real

B ?= build
WORKLOADS := gemm 2mm jacobi-2d seidel-2d correlation trisolv cholesky lu floyd-warshall \
	nussinov chase hashjoin sort bytecode
WORKLOAD_TOOLS := launch mkinputs opcost mcload
WORKLOAD_CFLAGS := -std=gnu11 -O2 -g -ffp-contract=off -Wall -Wextra -Werror
WORKLOAD_PROGS := $(addprefix $(B)/workloads/,$(WORKLOADS) $(WORKLOAD_TOOLS))

.PHONY: workloads inputs-small inputs-bench bench bench-quick bench-ops bench-servers test-real

workloads: $(WORKLOAD_PROGS)

# test/tests.sh verifies all of them
check-programs: workloads inputs-small

$(B)/workloads/%: workloads/%.c workloads/workload.h
	@mkdir -p $(@D)
	$(CC) $(WORKLOAD_CFLAGS) -o $@ $< -lm -lpthread

$(B)/inputs/%/stamp: workloads/inputs.sh $(B)/workloads/mkinputs
	workloads/inputs.sh $* $(B)

inputs-small: $(B)/inputs/small/stamp
inputs-bench: $(B)/inputs/bench/stamp

# BENCH: further options of workloads/bench, as in make bench BENCH='--reps 3 gzip xz'
bench: all workloads inputs-bench inputs-small $(B)/test/ptsim
	workloads/bench --build $(B) $(BENCH)
	workloads/pt-speed $(B) | tee $(B)/bench/pt-speed.txt
	workloads/analyze-speed $(B) | tee $(B)/bench/analyze-speed.md

bench-quick: all workloads inputs-small
	workloads/bench --build $(B) --quick $(BENCH)

bench-ops: all workloads
	workloads/opcost.sh $(B)

bench-servers: all workloads
	workloads/server.sh $(B)

# VERIFY: further options of test/real/verify.sh
test-real: all workloads inputs-small
	test/real/verify.sh --build $(B) $(VERIFY)
