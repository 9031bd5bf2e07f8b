# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# One image of a program on ROCm's HSA runtime that has no SDMA queue (HSA_ENABLE_SDMA=0), restored twice on one GPU: both compute
# gpus: 1xmi100
# tier: all

export HSA_ENABLE_SDMA=0
gpujob=$hsajob
job_start
dump
expect_no_objects
for n in 1 2; do
	mkdir "$work/copy$n"
	cp -a "$images" "$work/copy$n/images"
	cp "$job" "$work/copy$n/state"
	: >"$work/copy$n/log"
	unshare -m -p -f --propagation private --mount-proc bash -c '
		mount --bind "$1/state" "$2"
		mount --bind "$1/log" "$2.log"
		status=0
		criu restore -d -D "$1/images" -o "$1/restore.log" -v4 </dev/null >"$1/out" 2>&1 || status=$?
		echo "$status" >"$1/status"
		until [ -e "$1/../enough" ]; do sleep 0.1; done' - "$work/copy$n" "$job" &
	wait_until 60 test -s "$work/copy$n/status" || fail "restore $n does not end"
	[ "$(<"$work/copy$n/status")" = 0 ] || fail "restore $n: $(grep -m 2 Error "$work/copy$n/restore.log")"
done

# goes_on N FROM: its generation is above FROM
goes_on() {
	[ "$(state_get "$work/copy$1/state" generation)" -gt "$2" ]
}

for n in 1 2; do
	wait_until 60 goes_on "$n" "$(state_get "$work/copy$n/state" generation)" || fail "copy $n does not compute: $(tail -n 1 "$work/copy$n/log")"
done
: >"$work/enough"
wait
expect_no_objects
