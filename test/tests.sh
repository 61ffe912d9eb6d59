# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # b is run.sh's
# tests.sh - the tests of make check in order, cheapest first; sourced by run.sh
run unit_sem "$b"/test/unit_sem
run unit_plan "$b"/test/unit_plan
run unit_walk "$b"/test/unit_walk
run unit_format "$b"/test/unit_format
run unit_r15 "$b"/test/unit_r15
run semtest "$b"/test/semtest
run semtest_self "$b"/test/semtest --selftest
run discover test/discover.sh "$b"/ptrace-analyze
run emit test/emit/run.sh "$b"
run plan_sim "$b"/test/plan_sim -n 2 /bin/bash
run oracle env BUILD="$b" test/oracle/selftest.sh
run api test/api.sh "$b"
run rt_hook test/rt_hook.sh
run rt_env test/rt_env.sh
run rt_libc test/rt_libc.sh
