# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Queues of gfx11: saved while the job goes on, restored twice and ten times, with their CUs and priority, beside a desktop whose processes share a buffer
# tier: all
# gpus: 1xnavi31
# kernels: each
# seconds: 600

small=(--vram 64K --gtt 64K --userptr 64K --chain 500)

# goes_and_comes TIMES EXTRA
goes_and_comes() {
	job_start "${small[@]}" --extra "$2"
	job_picture
	dump --leave-running
	expect_unharmed
	job_comes_back "$1"
	job_end
}

# placed: of the compute queue's MQD, the masks of CUs and the priorities
placed() {
	awk '/queue on device/ { is_compute = /Compute/ }
		is_compute && $1 == "00000040:" { printf "%s ", $9 }
		is_compute && $1 == "00000060:" { printf "%s %s %s ", $2, $4, $5 }
		is_compute && $1 == "000000a0:" { printf "%s %s %s %s ", $6, $7, $8, $9 }
		is_compute && $1 == "00000200:" { printf "%s %s\n", $7, $8 }' /sys/kernel/debug/kfd/mqds
}

echo Y >/sys/module/amdgpu/parameters/asicsim_mes_derives
goes_and_comes 2 aql
echo N >/sys/module/amdgpu/parameters/asicsim_mes_derives
goes_and_comes 10 packets
expect_no_objects

job_start "${small[@]}" --extra masked
placed >"$work/placed"
[[ $(<"$work/placed") != *ffffffff* ]] || fail "the queue may run on all CUs of an engine: $(<"$work/placed")"
for _ in 1 2; do
	dump
	restore
	expect_right
	[ "$(placed)" = "$(<"$work/placed")" ] || fail "CUs and priorities were $(<"$work/placed"), and are $(placed)"
done
job_end
expect_no_objects

# A compositor and its client: two processes without /dev/kfd that have an object of the render node in common.
gpujob=$top/build/workloads/sharejob stranger_start render-pair
goes_and_comes 1 idle
stranger_end
