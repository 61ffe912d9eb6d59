# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # b is run.sh's
# tests.sh - the tests of make check beyond build/test/unit_*, sourced by run.sh
run semtest "$b"/test/semtest
run semtest_self "$b"/test/semtest --selftest
run rt_hook test/rt_hook.sh
run rt_env test/rt_env.sh
run rt_libc test/rt_libc.sh
