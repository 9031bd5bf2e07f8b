# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two ranks of RCCL 7.2 are dumped and restored in the middle of collectives; criu is killed in the middle of a dump, a rank after a restore
# gpus: 2xmi100
# userland: hip
# needs: build/interop/rccl/version, interop
# tier: all
# seconds: 1800
# memory: 6144

# shellcheck source=tests/e2e/rccl.sh
. "$top/tests/e2e/rccl.sh"

options=(--tcp-established --network-lock skip --ghost-limit 64M --link-remap)
tries=6 came_back=0 kept=

# Buffers of ROCm 7.2's IPC are not listed before Linux 6.18. There, ranks have to reach each other by memory of the host.
if ! kernel_since 6.18; then
	tries=3
	job_start --count 1024
	wait_collective
	dump_refused "${options[@]}"
	expect_one_error '6\.18'
	goes_on
	ranks_end
	export NCCL_P2P_DISABLE=1
fi
job_start --count 1024
wait_until 100 ports_are_free || fail "ports of connections that have ended stay in use"
for ((n = 1; n <= tries; n++)); do
	wait_collective
	images_new
	if criu_call dump -t "${job_pids[0]}" "${options[@]}"; then
		expect_gone
		restore --tcp-established --network-lock skip
		came_back=$((came_back + 1))
		rm -rf "$kept"
		kept=$images
	else
		# Without control stacks, a kernel that waits for the other rank is refused.
		loses_stacks || fail "criu dump failed: $(criu_errors)"
		expect_one_error "$no_stacks"
		rm -rf "$images"
	fi
	goes_on
done
echo "# dumps: $came_back of $tries came back, $((tries - came_back)) were refused; generation $(state_get "$job" generation)"
wait_collective
dump_killed "" "${options[@]}"
goes_on
job_end
expect_no_objects

# The last one comes back once more, and one of its ranks is killed: the other one waits for ever, and frees all when it is killed.
[ "$came_back" -gt 0 ] || { ranks_have_ended; return 0; }
wait_until 100 ports_are_free || fail "ports of connections that have ended stay in use"
images=$kept
restore --tcp-established --network-lock skip
goes_on
kill -KILL "${job_pids[1]}"
! wait_until 5 no_process "${job_pids[0]}" || fail "the first rank is gone"
! alive "${job_pids[1]}" || fail "the second rank is still there"
job_kill
expect_gone
ranks_have_ended
