# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs with private memory on the HSA runtime, stopped in the middle of kernels, and before the runtime allocates more
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$hsajob
# The runtime's default of that time needs a driver of its own, which is not Linux'.
export HSA_ENABLE_IPC_MODE_LEGACY=0
options=(--share ipc --kernels "$top/build/gcn/private.co")

pair="${options[*]}"
job_start "${options[@]}"
process_shape >"$work/shape"
for n in 1 2; do
	job_suspend
	job_resume
	job_goes
done
job_end
expect_no_objects
rm -f "$work/shape"
if loses_stacks; then
	stays "$no_stacks" "${options[@]}"
else
	comes_back "${options[@]}"
fi

both_stopped() {
	local pid
	for pid in "${job_pids[@]}"; do
		[[ $(<"/proc/$pid/stat") == *') T '* ]] || return 1
	done
}

# stopped_and_asking: both are stopped, and their queues' signals say that a kernel waits for private memory
stopped_and_asking() {
	local asking=0 pid at
	both_stopped || return 1
	while read -r _ pid at; do
		[ "$(dd if="/proc/$pid/mem" iflag=skip_bytes skip=$((at)) bs=8 count=1 status=none | od -An -td8)" -ne 0 ] || return 1
		asking=$((asking + 1))
	done < <(grep '^asks: ' "$job.log")
	[ "$asking" -eq 2 ]
}

# The runtime is stopped before it allocates for a kernel that wants more. On a busy machine it is quicker now and then.
pair="a kernel that waits for memory"
job_may_say='asks: '
for n in 1 2 3 4; do
	rm -f "$job.log"
	job_start "${options[@]}" --stop-at 5
	wait_until 60 both_stopped || fail "the programs do not stop"
	! wait_until 5 stopped_and_asking || break
	[ "$n" -ne 4 ] || fail "no kernel waits for memory"
	job_kill
	expect_gone
	expect_no_objects
done
process_shape >"$work/shape"
job_suspend
job_resume
stopped_and_asking || fail "after the resume, no kernel waits for memory"
dump
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
expect_alive
stopped_and_asking || fail "after the restore, no kernel waits for memory"
kill -CONT "${job_pids[@]}"
job_goes
job_end
