#!/bin/sh
# SPDX-License-Identifier: MIT
# sysout.sh BUILD - what rt_sysout() says of system calls against the memory that they change: calls made by
# hand with two patterns in memory, then real programs
set -u
b=$(cd "${1:-build}" && pwd)
check=$b/test/sysout_check
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
pass=0 fail=0 stops=0
one() { # one [OPTION]... COMMAND...: everything that was written was said
	if timeout 300 "$check" "$@" </dev/null >out 2>err; then
		pass=$((pass + 1))
	else
		fail=$((fail + 1))
		echo "FAIL: $*"
		grep -a -e '^not said' -e '^cannot be read' -e '^not noticed' -e '^sysout:' err | head -5
	fi
	n=$(sed -n 's/^sysout: .* stop \([0-9]*\);.*/\1/p' err)
	stops=$((stops + ${n:-0}))
	[ "${SYSOUT_VERBOSE:-}" = "" ] || echo "$* $(grep -a ^sysout: err)"
}

one -s seen "$b/test/sysout_prog" 0x5a
one -s seen "$b/test/sysout_prog" 0xa5
# what the check is worth: when a call's writes are not said, it must notice
one -x 0 -x 5 -x 13 -x 16 -x 23 -x 47 -x 55 -x 98 -x 232 -x 299 "$b/test/sysout_prog"
# and as the runtime asks, in the program itself
for p in 0x5a 0xa5; do
	if timeout 60 "$b/test/sysout_prog" $p self >out 2>&1 </dev/null; then
		pass=$((pass + 1))
	else
		fail=$((fail + 1))
		echo "FAIL: sysout_prog $p self: $(head -3 out)"
	fi
done
made=$(awk '$2 != "stop" && $3 == "ok" { print $1 }' seen | sort -u | wc -l)
tried=$(awk '$1 < 337 || ($1 > 423 && $1 < 471) { print $1 }' seen | sort -u | wc -l) # there are these
stops=0 # those that real programs make

one ls -lR /usr/share/doc/gcc /proc/self
one bash -c 'for i in 1 2; do x=$(echo $i | sed s/1/2/); done; printf "a\nb\n" | while read -r l; do echo "$l"; done'
one perl -e 'open F, ">f"; print F "x\n" x 99; close F; open F, "f"; @l = <F>; print scalar(@l), -s "f", `pwd`'
one sqlite3 db 'create table t(a, b); insert into t values (1, 2), (3, 4); create index i on t(b); select * from t;'
one tar cf t.tar /usr/share/doc/gcc
one git init -q repository
date >repository/file
one git -C repository add .
one git -C repository -c user.name=n -c user.email=e commit -qm message
one git --no-pager -C repository log --stat

echo "$pass passed, $fail failed; $made of $tried system calls made with success by hand; real programs: $stops not known"
[ $fail = 0 ]
