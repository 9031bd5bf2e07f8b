# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Helpers of the scenarios rccl*: two ranks of RCCL 7.2, each with a GPU of its own, add up their buffers again and again. The second
# one comes late: the first one's kernel waits on its GPU.

gpujob=$top/build/workloads/rccljob
export LD_LIBRARY_PATH=$top/build/interop/rccl/usr/lib/x86_64-linux-gnu
# Ranks find each other by TCP; one channel is one group on each GPU.
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MIN_NCHANNELS=1 NCCL_MAX_NCHANNELS=1
ip link set lo up
# The runtime gets private memory for fewer waves than it asks for.
job_may_say='reserved node is already in use|Failed to map requested scratch| +[0-9]+ scratch mapped'

in_collective() {
	[ "$(state_get "$job" phase)" = collective ]
}

# wait_collective: the first rank's kernel is there, or comes in a moment, and the second rank waits
wait_collective() {
	wait_until 60 in_collective || fail "no collective begins"
}

# goes_on: sums that both ranks have checked since
goes_on() {
	local generation
	generation=$(state_get "$job" generation)
	expect_state_above 120 generation "$((generation + 1))" "$((generation + 1))"
	expect_alive
}

# ports_are_free: of connections that have ended; a restore cannot bind such a port for a minute
ports_are_free() {
	[ -z "$(ss -Htan state time-wait)" ]
}

# ranks_have_ended: nothing of them is left but the locks of rocm-smi's library
ranks_have_ended() {
	rm -f /dev/shm/rocm_smi_renderD*
	expect_no_objects
}

# ranks_end: all sums were right
ranks_end() {
	job_end
	ranks_have_ended
}
