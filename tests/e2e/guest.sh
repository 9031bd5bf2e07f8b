# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What comes after a scenario, inside the machine: clean up, keep its files, show its logs. $work is its directory.

workloads=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/workloads

# A failed scenario may leave nothing behind for the next one. Each program that starts costs the machine some 0.1 s.
scenario_clean() {
	local exe mount
	while read -r exe; do
		kill -KILL "${exe//[!0-9]/}" 2>/dev/null || true
	done < <(find /proc/[0-9]*/exe -lname "$workloads/*" 2>/dev/null)
	while read -r _ mount _; do
		[[ $mount != "$work"/* ]] || umount -l "$mount"
	done </proc/mounts
}

# artifacts_keep DIRECTORY MARK: of the kernel's log, what comes after the line that ends with MARK
artifacts_keep() {
	local dir=$1
	rm -rf "$dir"
	mkdir -p "$dir"
	dmesg | sed "1,/$2\$/d" >"$work/dmesg.log" || true
	find "$work" -maxdepth 1 -type f -size -8M -exec cp -t "$dir" {} +
	find "$work" -maxdepth 2 -path '*/images-*' -printf '%s %P\n' >"$dir/images.txt"
}

# What helps to find the reason: error lines of criu, the job's messages, the driver's.
logs_show() {
	local log
	for log in "$work"/*-dump.log "$work"/*-restore.log; do
		[ -e "$log" ] || continue
		grep -E 'Error|amdgpu_plugin: Warning' "$log" | tail -n 12 | sed "s,^,    ${log##*/}: ," || true
	done
	for log in "$work/job.log" "$work/dmesg.log"; do
		[ ! -s "$log" ] || tail -n 8 "$log" | sed "s,^,    ${log##*/}: ,"
	done
}
