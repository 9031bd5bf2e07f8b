# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Two GPUs that write into each other's VRAM, while the kernel moves pages of the CPU to make room for large ones
# gpus: 2xmi100

# moved: how many pages the kernel has moved since it was booted
moved() {
	awk '$1 == "pgmigrate_success" { print $2 }' /proc/vmstat
}

# As long as the scenario runs.
pages_move() {
	while kill -0 $$ 2>/dev/null; do
		echo 1 >/proc/sys/vm/compact_memory
		sleep 0.1
	done
}

# job_pages: where the job's own memory is
job_pages() {
	local range permissions inode _
	while read -r range permissions _ _ inode _; do
		[[ $permissions$inode != rw-p0 ]] || dd if="/proc/${job_pids[0]}/pagemap" bs=4096 status=none \
			iflag=skip_bytes,count_bytes skip=$((16#${range%-*} / 512)) \
			count=$(((16#${range#*-} - 16#${range%-*}) / 512))
	done <"/proc/${job_pids[0]}/maps" | od -An -v -w8 -tx8 | cut -c 5-
}

job_has_moved() {
	! job_pages | cmp -s "$work/pages" -
}

# while_pages_move COMMAND...
while_pages_move() {
	local before
	before=$(moved)
	"$@"
	[ "$(moved)" -gt "$before" ] || fail "$*: the kernel moves no pages"
}

job_start --vram 2M
process_shape >"$work/shape"
job_pages >"$work/pages"
pages_move &
mover=$!
wait_until 20 job_has_moved || fail "the job's pages stay where they are"
while_pages_move dump
expect_gone
expect_images 2 1
while_pages_move restore
expect_verified
kill "$mover"
expect_shape "$work/shape"
expect_progress
job_end
