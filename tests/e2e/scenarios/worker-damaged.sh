# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Damaged, truncated and over-long contents: the whole restore fails with one line, and nothing is left
# gpus: 2xmi100

# expect_refused TEXT: by a restore with the damaged file; then the good one is back
expect_refused() {
	local log
	! criu_call restore -d || fail "restored from a file that should be refused: $1"
	log=$work/$criu_runs-restore.log
	[ "$(grep -c 'Error (amdgpu_plugin)' "$log")" -eq 1 ] || fail "not one error line: $(criu_errors)"
	grep -q "Error (amdgpu_plugin): gpu .*${pages##*/}.*$1" "$log" || fail "the error is not \"$1\": $(criu_errors)"
	expect_gone
	expect_no_objects
	cp "$work/good.img" "$pages"
}

job_start --children 1 --vram 1M
process_shape >"$work/shape"
dump
expect_gone
expect_no_objects
pages=$(find "$images" -name 'amdgpu-pages-*' | sort | tail -n 1)
cp "$pages" "$work/good.img"
byte=$(od -An -tu1 -j 70000 -N 1 "$pages")
# shellcheck disable=SC2059
printf "\\x$(printf %x $((255 - byte)))" | dd of="$pages" bs=1 seek=70000 conv=notrunc status=none
expect_refused 'is damaged: CRC-32C of its'
truncate -s -4096 "$pages"
expect_refused 'bytes, .* expected'
echo >>"$pages"
expect_refused 'bytes, .* expected'
KFD_PARALLEL_RESTORE=0 restore
! grep -q "restored by criu's main process" "$work/$criu_runs-restore.log" ||
	fail "KFD_PARALLEL_RESTORE=0 changes nothing"
expect_verified
expect_shape "$work/shape"
job_end
