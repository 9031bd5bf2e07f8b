# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two ranks of RCCL 7.2 add up their buffers, each on a GPU of its own; suspended in the middle of a collective, where a dump is refused
# gpus: 2xmi100
# userland: hip
# needs: build/interop/rccl/version, interop
# tier: all
# seconds: 1200
# memory: 5120

gpujob=$top/build/workloads/rccljob
export LD_LIBRARY_PATH=$top/build/interop/rccl/usr/lib/x86_64-linux-gnu
# Ranks find each other by TCP; one channel is one group on each GPU.
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MIN_NCHANNELS=1 NCCL_MAX_NCHANNELS=1
ip link set lo up

# in_collective: the first rank's kernel is there and the second rank is not
in_collective() {
	[ "$(state_get "$job" phase)" = collective ]
}

# goes_on: sums that both ranks have checked since
goes_on() {
	local generation
	generation=$(state_get "$job" generation)
	expect_state_above 120 generation "$((generation + 1))" "$((generation + 1))"
	expect_alive
}

machine_load 2xmi100
job_start --count 1024
for n in 1 2; do
	wait_until 60 in_collective || fail "no collective begins"
	job_suspend
	job_resume
	goes_on
done
echo "# suspended and resumed twice, generation $(state_get "$job" generation)"
# Buffers of ROCm 7.2's IPC are not listed before Linux 6.18. Later drivers do not save the stacks of a kernel that waits for another rank.
if loses_stacks; then
	pattern=$no_stacks
else
	pattern='6\.18'
fi
wait_until 60 in_collective || fail "no collective begins"
dump_refused --tcp-established --network-lock skip
expect_one_error "$pattern"
goes_on
echo "# a dump is refused, generation $(state_get "$job" generation)"
job_end
expect_no_objects
