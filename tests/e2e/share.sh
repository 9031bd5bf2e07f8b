# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Helpers of the scenarios share-*: cases of sharejob (tests/workloads) that come back, or are refused.
#
# A scenario shows several cases, each a line "ok - SCENARIO: CASE".

gpujob=$top/build/workloads/sharejob
dmabufs_file=/sys/kernel/debug/dma_buf/bufinfo

# shown CASE...: what has just been shown
shown() {
	printf 'ok - %s: %s\n' "${work##*/}" "$*"
	pair=
}

# machine_apart: two GPUs in no hive, since those of a hive cannot import VRAM from each other (seen with Linux 7.2)
machine_apart() {
	machine_load 2xmi100 '/^hive_id/d'
}

# can_translate: whether GPUs can have an IOMMU; that of asicsim needs Linux 7
can_translate() {
	kernel_since 7
}

# machine_translated: two GPUs in no hive, each with its own addresses of system memory
machine_translated() {
	machine_load 2xmi100 's/^hive_id.*/iommu = yes/'
}

# kernel_lists: whether the kernel lists the objects of a render file, without which none is restored (Linux 6.18)
kernel_lists() {
	kernel_since 6.18
}

no_dmabuf_left() {
	grep -q '^Total 0 objects' "$dmabufs_file"
}

# expect_no_dmabufs: the kernel has none left, whoever had them
expect_no_dmabufs() {
	wait_until 10 no_dmabuf_left || fail "dma-bufs left in the kernel: $(tail -n 1 "$dmabufs_file")"
}

# ends_clean CASE...: the job ends and leaves nothing in the kernel, which shows the case
ends_clean() {
	job_end
	expect_no_objects
	expect_no_dmabufs
	shown "$*"
}

# goes_twice: dumped, gone and restored two times, and then ended
goes_twice() {
	job_returns
	job_returns
	job_end
}

# restore_staying: by a criu that stays until the job ends, and has nothing of the GPUs open meanwhile
restore_staying() {
	local criu
	states_blank
	criu_runs=$((criu_runs + 1))
	timeout -k 5 300 criu restore -D "$images" -o "$work/$criu_runs-restore.log" -v4 </dev/null >/dev/null 2>&1 &
	criu_staying=$!
	wait_until 60 states_written || fail "the job is not restored: $(criu_errors)"
	criu=$(pgrep -P "$criu_staying") || fail "criu did not stay: $(criu_errors)"
	wait_until 10 has_no_gpu "$criu" || fail "the criu that stays keeps $(fds "$criu" | grep -E "$of_gpus" | tr '\n' ';')"
}

# /dev/kfd is its own, to let queues run.
of_gpus='/dev/dri/|dmabuf'

has_no_gpu() {
	! fds "$1" | grep -E "$of_gpus" >/dev/null
}

# expect_criu_ended: the criu that stayed has ended with the job that it restored, and all was well
expect_criu_ended() {
	local status=0
	wait "$criu_staying" || status=$?
	[ "$status" -eq 0 ] || fail "the criu that stayed ended with status $status: $(criu_errors)"
}

# comes_back CASE [ARG...]: dumped, gone, restored; then everything is freed without an error
comes_back() {
	pair="$*"
	job_start "$@"
	job_returns expect_no_dmabufs
	ends_clean "$*"
}

# goes_on CASE [ARG...]: dumped twice while it goes on, which leaves nothing behind
goes_on() {
	pair="$*"
	job_start "$@"
	process_shape >"$work/shape"
	for _ in 1 2; do
		dump --leave-running
		job_goes
	done
	ends_clean "$*, dumped twice"
}

# stays PATTERN CASE [ARG...]: the dump is refused with one error line, and the job goes on
stays() {
	local pattern=$1
	shift
	pair="$*"
	job_start "$@"
	process_shape >"$work/shape"
	dump_refused
	expect_one_error "$pattern"
	job_goes
	ends_clean "$*, refused"
}

# comes_back_if_listed CASE [ARG...]: refused where the kernel does not list objects, with that reason
comes_back_if_listed() {
	if kernel_lists; then
		comes_back "$@"
	else
		stays '6\.18' "$@"
	fi
}
