#!/bin/sh
# SPDX-License-Identifier: MIT
# ptraw.sh - ptrace-decode --pt-raw: hand-made streams (test/ptraw/cases.txt) give the instructions they must; wrong
# options and input give one line and the documented exit status.
# usage: ptraw.sh BUILD
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
b=$(cd "${1:-$here/build}" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
D=$b/ptrace-decode
pass=0 fail=0
ok() { # ok NAME COMMAND...: passes when the command does
	name=$1; shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $name ($*)"; sed 's/^/    /' err | head -5; fi
}
status() { want=$1; shift; "$@" >out 2>err; got=$?; [ $got = "$want" ] || { echo "exit status $got, not $want"; return 1; }; }
says() { grep -q -e "$1" err && [ "$(wc -l <err)" = 1 ]; }

gcc -c -o code.o "$here/test/ptraw/code.S" &&
	ld -Ttext=0x401000 --section-start=.gone=0x500000 --section-start=.far=0x7f1234560000 --section-start=.code32=0x8048000 -e 0 -o code code.o &&
	nm code >syms || exit 1
for s in text far code32; do objcopy -O binary -j .$s code $s.img || exit 1; done
head -c 8192 /dev/zero >zero
label() { awk -v l="$1" '$3 == l { sub(/^0+/, "", $1); print $1 }' syms; }
image() {
	case $1 in
	text) echo "--image=text.img@0x401000" ;;
	far) echo "--image=far.img@7f1234560000" ;;
	code32) echo "--image=code32.img@0x8048000:0x0" ;;
	page0) echo "--image=text.img@401000:0:4096" ;;
	page1) echo "--image=text.img@0x402000:0x1000:0x1000" ;;
	wrong) echo "--image=zero@0x400f00" ;;
	esac
}

awk '/^#/ { next }
	$1 == "case" { if (system("mkdir " $2)) exit 1; d = $2; print d >"cases"; inp = 0; next }
	$1 == "ips" || $1 == "end" { inp = 0 }
	inp { print >(d "/packets"); next }
	$1 == "packets" { inp = 1; next }
	NF > 1 || $1 == "any_ips" { k = $1; $1 = ""; print substr($0, 2) >(d "/" k) }' "$here/test/ptraw/cases.txt" || exit 1

one() { # one CASE: compares what is printed, the summary, the exit status
	c=$1
	"$b/test/mkpt" syms "$c/stream" <"$c/packets" || return 1
	set --
	for i in $(cat "$c/images" 2>/dev/null || echo text far code32); do set -- "$@" "$(image "$i")"; done
	if [ -f "$c/args" ]; then
		a=$(cat "$c/args")
		set -- "$@" "${a%=*}=$(label "${a#*=}")"
	fi
	status "$(cat "$c/status")" "$D" --pt-raw="$c/stream" --cpu=6/142/10 "$@" || return 1
	if [ -f "$c/error" ]; then
		says "$(cat "$c/error")"
		return
	fi
	tail -1 out >sum
	status "$(cat "$c/status")" timeout 20 "$D" --pt-raw "$c/stream" --cpu 6/142/10 "$@" --format=ip -o ips || return 1
	n=$(wc -l <ips)
	[ -f "$c/any_ips" ] || {
		awk 'NR == FNR { sub(/^0+/, "", $1); a[$3] = $1; next } { for (i = 1; i <= NF; i++) print a[$i] }' \
			syms "$c/ips" >want
		cmp -s want ips || { diff want ips | head -5; return 1; }
	}
	grep -q "^pt: instructions=$n blocks=[1-9][0-9]* $(cat "$c/summary")\$" sum || { cat sum; return 1; }
	[ "$(tail -1 err)" = "$(cat sum)" ] || { echo "other counts with --format=ip"; return 1; }
}
while read -r c; do ok "$c" one "$c"; done <cases

# wrong use and wrong input
s=loop_call_syscall/stream
bad() { want=$1 re=$2; shift 2; status "$want" "$D" "$@" && says "$re"; }
ok "no image" bad 2 'at least one --image' --pt-raw $s
ok "image without address" bad 2 'not FILE@ADDR' --pt-raw $s --image=text.img
ok "image with a bad address" bad 2 'not FILE@ADDR' --pt-raw $s --image=text.img@xyz
ok "image with a bad offset" bad 2 'not FILE@ADDR' --pt-raw $s --image=text.img@401000:-1
ok "image with too much" bad 2 'not FILE@ADDR' --pt-raw $s --image=text.img@401000:0:16:1
ok "image that is not there" bad 3 'cannot open nothere' --pt-raw $s --image=nothere@401000
ok "offset behind the end" bad 3 'bytes only' --pt-raw $s --image=text.img@401000:0x100000
ok "beyond the end of memory" bad 3 'beyond the end of memory' --pt-raw $s --image=text.img@fffffffffffff000
ok "no cpu" bad 2 'not FAMILY/MODEL/STEPPING' --pt-raw $s --image=text.img@401000 --cpu=skylake
ok "unknown cpu" bad 2 'knows no such processor' --pt-raw $s --image=text.img@401000 --cpu=6/1/1
ok "start-ip" bad 2 'not an address' --pt-raw $s --image=text.img@401000 --start-ip=here
ok "format" bad 2 'no format' --pt-raw $s --image=text.img@401000 --format=text
ok "no stream" bad 3 'cannot open nothere' --pt-raw nothere --image=text.img@401000
: >empty
ok "empty stream" bad 3 'is empty' --pt-raw empty --image=text.img@401000
ok "only zeros" bad 3 'no PSB' --pt-raw zero --image=text.img@401000
ok "options without --pt-raw" bad 2 'go with --pt-raw' --image=text.img@401000 somewhere
ok "no room for output" status 5 "$D" --pt-raw $s --image=text.img@401000 --format=ip -o /dev/full
cp text.img 'odd@name:1'
ok "odd file name" status 0 "$D" --pt-raw $s "--image=odd@name:1@401000" --cpu=6/142
printf 'ptraw: %d passed, %d failed\n' $pass $fail
[ $fail = 0 ]
