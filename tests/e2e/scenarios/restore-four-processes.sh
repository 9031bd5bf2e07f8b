# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Four processes on two GPUs, restored by criu's main process in 64 KiB of staging memory; progress on a FIFO and stderr
# gpus: 2xmi100
# tier: all

# progress_ends FILE STAGE: each GPU's last line says that all is done
progress_ends() {
	awk -v stage="$2" '$1 == stage { last[$2] = substr($3, 6) == substr($4, 7) }
		END { for (gpu in last) { n++; ok += last[gpu] }; exit n != 2 || ok != 2 }' "$1"
}

job_start --children 3 --vram 512K --buffers 5
process_shape >"$work/shape"
mkfifo "$work/progress"
cat "$work/progress" >"$work/progress.txt" &
exec {hold}>"$work/progress" # one FIFO for the dumps of all processes
KFD_PROGRESS=$work/progress dump
exec {hold}>&-
wait $!
progress_ends "$work/progress.txt" dump || fail "progress of the dump: $(tail -n 1 "$work/progress.txt")"
expect_images 2 4
KFD_MAX_BUFFER_SIZE=64K KFD_PROGRESS=/dev/stderr restore
log=$work/$criu_runs-restore.log
[ "$(grep -c "criu's main process restores the buffer data of 2 GPUs" "$log")" -eq 4 ] ||
	fail "not all processes handed their buffer data over"
[ "$(grep -c 'gpu .*: restored [0-9]* bytes' "$log")" -eq 8 ] || fail "not one line for each GPU of each process"
progress_ends "$log.out" restore || fail "progress of the restore: $(tail -n 1 "$log.out")"
job_goes
job_end
