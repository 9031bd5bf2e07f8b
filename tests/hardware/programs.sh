# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Cases with programs of others, where they are installed: what one prints after it was saved and restored has to be what it
# prints undisturbed.

# ---- any program ----

# program_start NAME COMMAND ARG...: in a session of its own, by whose leader "run" knows it; the output is in NAME.out. Sets
# leader.
program_start() {
	local name=$1
	shift
	setsid bash -c 'shift 2; "$@"; echo "status $?"' program --state "$work/$name" "$@" </dev/null >"$work/$name.out" \
		2>"$work/$name.err" &
	leader=$!
}

# program_alone NAME COMMAND ARG...: undisturbed, to its end. Sets program_seconds.
program_alone() {
	local start=$SECONDS
	program_start "$@"
	wait "$leader"
	program_seconds=$((SECONDS - start))
}

program_status() {
	sed -n '$s/^status //p' "$work/$1.out"
}

# prints NAME FILTER: what is compared of an output
prints() {
	"$2" <"$work/$1.out"
}

# program_caught: in the middle of its work. Sets job_pids. What it has on the GPUs has to be within the limits.
program_caught() {
	local pid users vram
	sleep $((program_seconds / 2))
	mapfile -t job_pids < <(echo "$leader"; pgrep -s "$leader" | grep -vx "$leader")
	users=$(comm -12 <(kfd_processes) <(printf '%s\n' "${job_pids[@]}" | sort))
	[ -n "$users" ] || ends skipped "does not use a GPU after $((program_seconds / 2)) s, half of its time"
	vram=$(for pid in $users; do cat "/sys/class/kfd/kfd/proc/$pid"/vram_*; done | awk '{ n += $1 } END { printf "%d", n / 1048576 }')
	((vram <= most_vram * $(gpu_count))) || ends skipped "$vram MiB of VRAM, at most $most_vram of a GPU are to be used"
	((vram * 5 / 4 + 64 <= most_disk)) || ends skipped "needs $((vram * 5 / 4 + 64)) MiB of disk, at most $most_disk are to be used"
}

# program_goes_on: to its end, with the output of the undisturbed run
program_goes_on() {
	wait_until $((program_seconds * 3 + 60)) no_process "$leader" ||
		fail "has not ended after $((program_seconds * 3 + 60)) s; undisturbed it takes $program_seconds"
	! cmp -s <(prints undisturbed "$filter") <(prints caught "$filter") || return 0
	program_alone again "${program[@]}"
	cmp -s <(prints undisturbed "$filter") <(prints again "$filter") ||
		ends skipped "prints something else each time, also undisturbed: nothing can be said"
	fail "prints something else than undisturbed: $(diff <(prints undisturbed "$filter") <(prints caught "$filter") | grep '^[<>]' | head -n 2 | tr '\n' ' ')"
}

# compared FILTER COMMAND ARG...
compared() {
	local filter=$1 program=("${@:2}") goes_on=program_goes_on leader program_seconds
	program_alone undisturbed "${program[@]}"
	[ "$(program_status undisturbed)" = 0 ] ||
		ends skipped "ends undisturbed with status $(program_status undisturbed): $(tail -n 1 "$work/undisturbed.err")"
	((program_seconds >= 4)) || ends skipped "ends after $program_seconds s: too soon to be caught in the middle"
	program_start caught "${program[@]}"
	program_caught
	! no_process "$leader" || ends skipped "ended before it could be saved"
	save
	expect_gone
	expect_no_objects
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	program_goes_on
}

# ---- those that are known ----

case_pytorch() {
	python3 -c 'import sys, torch; sys.exit(not (torch.version.hip and torch.cuda.is_available()))' >/dev/null 2>&1 ||
		ends skipped "there is no PyTorch for ROCm in python3"
	compared cat python3 "$examples/pytorch-steps.py" 20000
}

# The rest of what it prints are times.
wrong_values() {
	grep -E 'Out of bounds values|^status'
}

case_rccl() {
	type -P all_reduce_perf >/dev/null || ends skipped "all_reduce_perf of rccl-tests is not in PATH"
	(($(gpu_count) > 1)) || ends skipped "there is one GPU"
	compared wrong_values all_reduce_perf -b 64M -e 64M -g "$(gpu_count)" -n 5000 -c 1
}

case_llama() {
	local llama
	llama=$(type -P llama-completion || type -P llama-cli) || ends skipped "llama-completion of llama.cpp is not in PATH"
	[ -r "${LLAMA_MODEL-}" ] || ends skipped "LLAMA_MODEL does not name a model's file"
	# It may be stopped for more than 10 s, and would lose a HIP graph that it makes just then (docs/checkpoint.md).
	export GGML_CUDA_DISABLE_GRAPHS=1
	compared cat "$llama" -m "$LLAMA_MODEL" -ngl 99 --seed 1 --temp 0 -n "${LLAMA_TOKENS:-1000}" -no-cnv -p 'One, two, three,'
}

passed_tests() {
	grep -E 'All tests passed|^test cases:|^status'
}

case_hip_tests() {
	local dir=${HIP_TESTS:-/opt/rocm/share/hip/catch_tests}
	[ -n "${HIP_TESTS-}" ] || [ -d "$dir" ] || dir=/opt/rocm/core/share/hip/catch_tests
	[ -d "$dir" ] || ends skipped "HIP_TESTS does not name the directory of hip-tests, and there is no $dir"
	compared passed_tests find "$dir" -type f -executable '(' -name 'MemoryTest*' -o -name 'StreamTest*' ')' -exec '{}' ';'
}

# It calls criu itself.
case_rocm_tests() {
	local suite=${ROCM_TESTS-}/tests/e2e/recovery/criu leader program_seconds
	[ -d "$suite" ] || ends skipped "ROCM_TESTS does not name a directory of ROCm/rocm-tests"
	program_alone undisturbed python3 -m pytest "$suite"
	[ "$(program_status undisturbed)" = 0 ] || fail "pytest: $(tail -n 2 "$work/undisturbed.out" | head -n 1)"
}

case_own() {
	[ -n "${AMDGPU_TEST_JOB-}" ] || ends skipped "no --job was given"
	compared cat bash -c "$AMDGPU_TEST_JOB"
}
