# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A criu that is killed at any step of the job by which it reads a trap handler leaves nothing in the process' own files: the guard takes it away, or else the next dump, or amdgpu-checkpoint
# gpus: 1xmi100
# tier: all
# kernels: each
# drivers: amdgpu, which has the memory where the addresses are
# seconds: 300

tool=$top/build/amdgpu-checkpoint

# killed_at POINT NTH [KILLALL]: in a dump, when that call returns; its guard as well
killed_at() {
	local status=0
	faults "$1 $2 ${3:-KILL}"
	images_new
	"${faulty[@]}" criu dump --leave-running -t "${job_pids[0]}" -D "$images" -o "$work/killed.log" -v4 </dev/null >/dev/null 2>&1 || status=$?
	faults
	[ "$status" -eq 137 ] || fail "criu ended with status $status, and not in its call $2 of $1"
	expect_alive
} 2>/dev/null

no_guards() {
	! pgrep -x amdgpu-guard >/dev/null
}

job_start --vram 64K --gtt 64K --userptr 64K --extra trap
job_picture
dump --leave-running
expect_unharmed

# The first page is of a file of criu's own.
for point in 'drm:GEM_CREATE 2' 'drm:GEM_VA 1' 'drm:CTX_ALLOC 1' 'drm:CS 1' 'drm:WAIT_CS 1' 'drm:CTX_FREE 1'; do
	read -r call nth <<<"$point"
	killed_at "$call" "$nth"
	wait_until 10 no_guards || fail "$call: a guard is left"
	expect_unharmed
	killed_at "$call" "$nth" KILLALL
	criu_call dump -t "${job_pids[0]}" --leave-running || fail "killed after $call: the next dump is refused: $(criu_errors)"
	grep -q 'a page in its file of renderD.* had been left' "$work/$criu_runs-dump.log" || fail "$call: nothing was left"
	! grep 'trap handler .* is not saved' "$work/$criu_runs-dump.log" || fail "$call: the trap handler is lost"
	expect_unharmed
done

killed_at drm:CS 1 KILLALL
"$tool" resume "${job_pids[0]}" >"$work/resume.out" 2>&1 || fail "amdgpu-checkpoint: $(<"$work/resume.out")"
grep -q 'removed what a killed dump had left in its file of renderD' "$work/resume.out" || fail "amdgpu-checkpoint: $(<"$work/resume.out")"
expect_unharmed
job_returns
job_end
