# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# One image restored four times at the same moment, on four idle GPUs: each copy has one of its own, five times
# gpus: 1xmi100
# tier: all
# seconds: 600

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"
# shellcheck source=tests/e2e/copies.sh
. "$top/tests/e2e/copies.sh"

job_start "${small[@]}"
dump
machine_load 2xmi100 '/^hive_id/d; s/count = 2/count = 4/'
for n in 1 2 3 4; do
	mkdir "$work/copy$n"
	cp -a "$images" "$work/copy$n/images"
done

# computes N: its generation moves
computes() {
	local generation
	generation=$(state_get "$work/copy$1/state" generation)
	[ -s "$work/copy$1/first" ] || echo "$generation" >"$work/copy$1/first"
	[ "$generation" -gt "$(<"$work/copy$1/first")" ]
}

for round in 1 2 3 4 5; do
	pair="round $round"
	rm -f "$work/go" "$work/enough"
	rm -f "$work"/copy[1-4]/first
	for n in 1 2 3 4; do job_copy_start "$work/copy$n"; done
	sleep 0.5
	: >"$work/go"
	for n in 1 2 3 4; do
		wait_until 60 test -s "$work/copy$n/status" || fail "restore $n does not end"
		[ "$(<"$work/copy$n/status")" = 0 ] || fail "restore $n: $(grep -m 2 Error "$work/copy$n/restore.log")"
	done
	for n in 1 2 3 4; do
		wait_until 30 computes "$n" || fail "copy $n does not compute: $(tail -n 1 "$work/copy$n/log")"
	done
	copies_have_gpus "$work"/copy[1-4]
	: >"$work/enough"
	wait
	expect_no_objects
	pair_shown
done
