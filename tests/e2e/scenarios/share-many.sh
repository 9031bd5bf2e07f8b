# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Many handles with mappings, and many processes with the buffers of all others, come back; what each number costs is told
# gpus: 2xmi100
# tier: all
# memory: 6144
# seconds: 1800

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# cost WHAT NUMBER: seconds of dump and restore for each thousand
cost() {
	local dump_seconds=$1 restore_seconds=$2 number=$3
	awk -v n="$number" -v d="$dump_seconds" -v r="$restore_seconds" -v what="$pair" 'BEGIN {
		printf "# %s: %d, dump %.2f s, restore %.2f s; for 1000: %.3f s, %.3f s\n", what, n, d, r, d * 1000 / n, r * 1000 / n
	}'
}

# many NUMBER CASE [ARG...]: NUMBER of BOs and handles
many() {
	local number=$1 seconds
	shift
	pair="$*"
	job_start "$@"
	dump
	seconds=$criu_seconds
	expect_gone
	expect_no_objects
	restore
	cost "$seconds" "$criu_seconds" "$number"
	expect_verified
	expect_progress
	job_end
	expect_no_objects
	expect_no_dmabufs
	shown "$*"
}

if kernel_lists; then
	for nr in 2500 5000 10000 20000; do
		many "$nr" many-handles --count "$nr"
	done
fi
for nr in 8 16 32 64; do
	many $((nr * nr * ${buffers:-64})) many-imports --processes "$nr" --count "${buffers:-64}"
done
