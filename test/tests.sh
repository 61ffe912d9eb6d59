# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # b is run.sh's
# tests.sh - the tests of make check in order, cheapest first; sourced by run.sh
run unit_sem "$b"/test/unit_sem
run unit_plan "$b"/test/unit_plan
run unit_head "$b"/test/unit_head
run unit_decode "$b"/test/unit_decode
run unit_cut "$b"/test/unit_cut
run unit_scratch "$b"/test/unit_scratch
run unit_walk "$b"/test/unit_walk
run unit_format "$b"/test/unit_format
run unit_merge "$b"/test/unit_merge
run unit_flow "$b"/test/unit_flow
run unit_r15 "$b"/test/unit_r15
run unit_lz "$b"/test/unit_lz
run ptraw test/ptraw.sh "$b"
run unit_ptenc "$b"/test/unit_ptenc
run unit_fill "$b"/test/unit_fill
run unit_pt_collect "$b"/test/unit_pt_collect
run unit_pt_poll "$b"/test/unit_pt_poll
run semtest "$b"/test/semtest
run semtest_self "$b"/test/semtest --selftest
run discover test/discover.sh "$b"/ptrace-analyze
run emit test/emit/run.sh "$b"
run plan_sim "$b"/test/plan_sim -n 2 /bin/bash
run plan_sim_pt "$b"/test/plan_sim -n 2 --cf=pt /bin/bash
run plan_sim_ptw "$b"/test/plan_sim -n 2 --cf=pt --ptwrite /bin/bash
run oracle env BUILD="$b" test/oracle/selftest.sh
run ptsim test/ptsim.sh "$b"
run pt_rt test/pt_rt.sh "$b"
run api test/api.sh "$b"
run rt_hook test/rt_hook.sh
run rt_env test/rt_env.sh
run rt_libc test/rt_libc.sh
run sysout test/sysout.sh "$b"
run avoid test/avoid.sh "$b"
run pt_times test/pt_times.sh "$b"
run order test/order.sh "$b"
run forks test/forks.sh "$b"
run rough test/rough.sh "$b"
run step_sig env B="$b" test/step_sig.sh
run sig test/sig.sh "$b"
run_beside hold test/hold.sh "$b"
p=$b/test/progs
# a signal at every instruction of programs that know nothing of it
run sigs env BUILD="$b" SIGS_JOBS=2 test/sigs.sh "$p"/r15_forms "$p"/sig_nested "$p"/sig_skip "$p"/keep_loop "$p"/rep_strings \
	"$p"/x87 "$p"/sig_longjmp "$p"/computed_goto "$p"/varargs "$p"/popf "$p"/enter_leave "$p"/tailcall "$p"/proc_fork_handler \
	"$p"/disp32 "$p"/back_to_back "$p"/fs_base "$p"/lock_jump "$p"/setjmp.O0
# every program once, and the variants that differ most
# shellcheck disable=SC2046 # names without spaces
run e2e env BUILD="$b" E2E_JOBS=2 test/e2e.sh $(OUT=$p test/progs/build.sh --list-base) \
	"$p"/jt_dense.O0 "$p"/jt_dense.stripped "$p"/jt_sparse.clang "$p"/computed_goto.clang \
	"$p"/calls_indirect.cet "$p"/calls_indirect.nopie "$p"/setjmp.O0 "$p"/ucontext.clang \
	"$p"/tailcall.cet "$p"/escape_const.O0 "$p"/varargs.O0 "$p"/memheavy.Os "$p"/vtables.nopie \
	"$p"/proc_fork "$p"/proc_vfork "$p"/proc_atfork "$p"/thr_join "$p"/thr_nested "$p"/thr_tsd \
	"$p"/stk_jump "$p"/stk_context "$p"/stk_sigjmp "$p"/proc_pidfd "$p"/sys_writes "$p"/ldr_dl_fork
run_beside replay test/replay.sh "$b"
# control flow that is not in the log: programs with one thread
run flow env BUILD="$b" test/flow/flow.sh "$p"/jt_dense "$p"/computed_goto "$p"/setjmp "$p"/flags_odd "$p"/last_ret \
	"$p"/rep_strings "$p"/exceptions "$p"/ucontext "$p"/r15_branch "$p"/tailcall "$p"/plt_self "$p"/dlopen \
	"$p"/signals "$p"/sig_longjmp "$p"/sig_frame "$p"/fault_loop "$p"/stk_jump "$p"/rtm_abort
# Intel PT, under the simulator
# shellcheck disable=SC2046
run pt env BUILD="$b" PT_JOBS=2 test/pt.sh $(OUT=$p test/progs/build.sh --list-base) \
	"$p"/thr_join "$p"/thr_tsd "$p"/proc_fork "$p"/proc_vfork "$p"/stk_context
# threads, processes, stacks, the loader, system calls: those that take a second or less there (make soak has all)
together='-e /thr_join$ -e /thr_tsd$ -e /proc_fork$ -e /proc_vfork$ -e /stk_context$' # were compared just now
# shellcheck disable=SC2046,SC2086
run pt_procs env BUILD="$b" PT_JOBS=2 PT_VERIFY=1 test/pt.sh \
	$(OUT=$p test/progs/build.sh --list-procs-short | grep -v $together)
run_beside pt_selftest test/pt_selftest.sh "$b"
run pt_real env BUILD="$b" test/pt.sh --real
# packets lost, where keyframes come often: no wrong record, the losses are said, and what comes after them is there
lossy() { # NAME SETTINGS... COMMAND
	name=$1
	shift
	run "$name" env BUILD="$b" PT_JOBS=2 PT_SET=PTRACE_PT_KEY=4K "$@"
}
lossy pt_ovf PT_LOSSES=5 PT_OPTIONS='--ovf 20000' test/pt.sh "$p"/deep_recursion "$p"/exceptions
lossy pt_ovf_ptwrite PT_PTWRITE=all PT_LOSSES=5 PT_OPTIONS='--ovf 20000' test/pt.sh "$p"/libc_strings "$p"/memheavy "$p"/exceptions
lossy pt_truncated PT_PTWRITE=all PT_LOSSES=5 PT_OPTIONS='--truncate 2' test/pt.sh "$p"/libc_strings "$p"/memheavy
lossy pt_truncated_more PT_PTWRITE=all PT_LOSSES=0 PT_OPTIONS='--truncate 2' test/pt.sh "$p"/exceptions
# records of the kernel's are lost alone: nothing is; with others that would have said that the area was full
lossy pt_ring_lost PT_PTWRITE=all PT_OPTIONS='--ring-lost 2' test/pt.sh "$p"/memheavy "$p"/exceptions
lossy pt_small_buffers PT_VERIFY=1 PT_LOSSES=0 PT_SET='PTRACE_PT_KEY=4K PTRACE_PT_AUX=64K PTRACE_PT_RING=4K' PT_OPTIONS='--ring-lost 3' \
	test/pt.sh "$p"/exceptions "$p"/deep_recursion "$p"/thr_queue "$p"/thr_spin
lossy pt_losses_threads PT_VERIFY=1 PT_LOSSES=0 PT_OPTIONS='--ovf 30000 --truncate 6 --ring-lost 5' test/pt.sh "$p"/thr_slots "$p"/thr_tsd "$p"/proc_fork
lossy pt_ring_lost_truncated PT_PTWRITE=all PT_LOSSES=0 PT_OPTIONS='--ring-lost 5 --truncate 3' test/pt.sh "$p"/memheavy "$p"/exceptions
run pt_no_event env BUILD="$b" PT_LOSSES=50 PT_OPTIONS='--open-errno 16,2,100000' test/pt.sh "$p"/thr_join
# values by ptwrite, all of them, and what is not in loops
run pt_ptwrite env BUILD="$b" PT_JOBS=2 PT_PTWRITE=all test/pt.sh "$p"/jt_dense "$p"/setjmp "$p"/computed_goto "$p"/calls_indirect \
	"$p"/ucontext "$p"/vtables "$p"/libc_strings "$p"/rep_strings "$p"/signals "$p"/sig_longjmp "$p"/sig_frame "$p"/fault_loop \
	"$p"/r15_branch "$p"/flags_odd "$p"/memheavy "$p"/thr_join "$p"/proc_fork
run pt_ptwrite_some env BUILD="$b" PT_JOBS=2 PT_PTWRITE=1 test/pt.sh "$p"/exceptions "$p"/tailcall "$p"/memheavy
# signals at any time
run pt_signals env BUILD="$b" PT_VERIFY=1 test/pt.sh --one "$b"/test/sig_values
run pt_ptwrite_signals env BUILD="$b" PT_VERIFY=1 PT_PTWRITE=all test/pt.sh --one "$b"/test/sig_values
run procs env BUILD="$b" PROCS_JOBS=2 test/procs.sh
# what the processor computes for every kind of operand, against the decoder
run operands env BUILD="$b" test/procs.sh "$p"/odd_sizes "$p"/given_regs "$p"/bare_funcs "$p"/two_operands "$p"/enter_leave "$p"/rep_strings
# a fork that goes back to another stack, whose frames keep their variables in memory
run fork_stacks env BUILD="$b" test/procs.sh "$p"/proc_fork_frames.O0
# shellcheck disable=SC2046
run_beside verify_real test/real/verify.sh --build "$b" $(workloads/cases.sh list kernels) \
	$(workloads/cases.sh list real | grep -v -x -e cc1)
run trees test/real/trees.sh --build "$b" zstd make pipeline gitclone python-threads python-processes \
	python-signals python-asyncio perl valgrind
run fuzz_corpus env B="$b" test/fuzz/corpus.sh
run badinput env B="$b" test/badinput.sh
run oddenv env B="$b" test/oddenv.sh
