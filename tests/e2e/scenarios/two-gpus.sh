# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016
# Two GPUs that write into each other's VRAM; each page of the job's memory is elsewhere when a dump lets it go on
# gpus: 2xmi100
# tier: all
# kernels: each

# The page table entries of the job's own memory, in hex, of those pages that are there.
cat >"$work/entries" <<-'EOF'
	#!/bin/bash
	while read -r range permissions _ _ inode _; do
		[[ $permissions$inode != rw-p0 ]] || dd if="/proc/$1/pagemap" bs=4096 status=none \
			iflag=skip_bytes,count_bytes skip=$((16#${range%-*} / 512)) \
			count=$(((16#${range#*-} - 16#${range%-*}) / 512))
	done <"/proc/$1/maps" | od -An -v -w8 -tx8 | sed -n 's/^ [89a-f]..//p'
EOF
# As if memory were about to break: the kernel moves what is in a page.
chmod 755 "$work/entries"

job_start --vram 2M
action_script "$work/move" "$work/entries ${job_pids[0]} | while read -r page; do
	echo \$((16#\$page * 4096)) >/sys/devices/system/memory/soft_offline_page
done
exit 0"
process_shape >"$work/shape"
"$work/entries" "${job_pids[0]}" | sort >"$work/before"
dump --leave-running --action-script "$work/move"
stay=$("$work/entries" "${job_pids[0]}" | sort | comm -12 "$work/before" - | wc -l)
[ "$stay" -lt $(($(wc -l <"$work/before") / 4)) ] || fail "$stay of $(wc -l <"$work/before") pages are where they were"
expect_right
job_returns
expect_images 2 1
job_end
