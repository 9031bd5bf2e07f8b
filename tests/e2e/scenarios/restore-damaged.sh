# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Damage of contents that shows in the end, or criu killed then, leaves no process; with a TCP connection tasks wait before
# gpus: 2xmi100

# line_of TEXT: the number of the last such line
line_of() {
	grep -n "$1" "$log" | tail -n 1 | cut -d : -f 1
}

# expect_damage_found late|early
expect_damage_found() {
	! criu_call restore -d || fail "damaged contents are restored"
	log=$work/$criu_runs-restore.log
	expect_one_error "gpu .*${pages##*/}.*is damaged"
	case $1 in
	late) grep -q 'Run late stage hook' "$log" ;;
	early) ! grep -q 'Run late stage hook' "$log" ;;
	esac || fail "the damage is not found $1"
	expect_gone
	expect_no_objects
}

late_stage() {
	grep -q 'Run late stage hook' "$log" 2>/dev/null
}

job_start --children 1 --vram 2M --gtt 64K
dump
expect_no_objects
pages=$(find "$images" -name 'amdgpu-pages-*' | sort | tail -n 1)
cp "$pages" "$work/good.img"
flip_bit "$pages" 70000
expect_damage_found late
: >"$images/tcp-stream-1f.img"
expect_damage_found early
rm "$images/tcp-stream-1f.img"
cp "$work/good.img" "$pages"

gpus_state slow
log=$work/killed.log
states_blank
criu restore -D "$images" -o "$log" -v4 </dev/null >"$log.out" 2>&1 &
wait_until 60 late_stage || fail "criu does not wait in the end: $(tail -n 1 "$log")"
sleep 0.5
kill -KILL $!
wait $! 2>/dev/null || true
expect_gone
! grep -q '^stamp ' "$job" "$job.1" || fail "a process ran without its GPU's contents"
gpus_state ok
expect_no_objects
restore
expect_verified
job_end
