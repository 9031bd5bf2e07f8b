# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A job with a POSIX timer of a thread that has ended, which criu before 4.3 saves and cannot restore, is refused and can be suspended
# gpus: 1xmi100

job_start "${small[@]}" --extra timer
job_picture
! "$top/build/amdgpu-checkpoint" check "${job_pids[0]}" >"$work/check" || fail "check says that it would be dumped"
grep -q 'has a POSIX timer for its thread' "$work/check" || fail "check does not say why not: $(tail -n 3 "$work/check")"
version=$(criu --version | sed -n 's/^Version: //p')
if printf '4.3\n%s\n' "$version" | sort -C -V; then
	job_comes_back
	job_end
	return
fi
dump_refused
expect_one_error 'has a POSIX timer for its thread .*, which has ended: criu before 4.3 saves such a timer and cannot restore it'
expect_unharmed
"$top/build/amdgpu-checkpoint" suspend "${job_pids[0]}" >"$work/suspend" || fail "suspend ended with status $?: $(tail -n 1 "$work/suspend")"
"$top/build/amdgpu-checkpoint" resume "${job_pids[0]}" >"$work/resume" || fail "resume ended with status $?: $(tail -n 1 "$work/resume")"
expect_unharmed

# What would become of it.
KFD_RESTORABLE_CHECK=0 dump
restore_refused
expect_criu_error "Can't .* posix timer"
