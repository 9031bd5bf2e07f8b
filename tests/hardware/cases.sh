# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# The cases: each saves and restores jobs that know every byte of theirs, with the helpers of the scenarios (tests/e2e/lib.sh).
# What is not as it should be ends the case.

cases="
start          a job on all GPUs computes, checks itself and ends, without criu
tiny           64 KiB of VRAM: saved, gone, restored
small          16 MiB
medium         256 MiB
large          4 GiB
largest        80 % of the free VRAM
leave_running  saved twice while it runs; killed; restored
twice          saved and restored, and again
kinds          threads, shared memory of the host, buffers that are mapped several times, events of the GPU
packets        a compute queue that has run more packets than its ring has places, without code
svm            a range of shared virtual memory
tree           three processes
gpus           all GPUs, which copy to each other
other_gpu      restored on another GPU
killed_dump    a criu that is killed leaves stopped queues, which are let run
killed_restore a restore that is killed, and one that follows
ipc            a buffer that two processes share by IPC
vmm            virtual memory with handles, shared by two processes
dmabuf         open dma-bufs of three processes
rocm           a program on ROCm's HSA runtime
kernel         a program on HIP in the middle of a kernel
pytorch        PyTorch trains: the same losses, bit by bit
rccl           all_reduce_perf of rccl-tests: no wrong value
llama          llama.cpp with the model LLAMA_MODEL: the same text
hip_tests      hip-tests (in HIP_TESTS): they pass
rocm_tests     ROCm/rocm-tests (in ROCM_TESTS): its suite for criu passes
own            the command of --job: the same output
"

cases_list() {
	printf '%s' "${cases#?}"
}

cases_names() {
	awk 'NF { print $1 }' <<<"$cases"
}

# shellcheck source=tests/e2e/lib.sh
. "$scripts/lib.sh"
trap - ERR

# The driver's objects are known by the processes that have some.
no_objects_left() {
	[ -z "$(kfd_processes)" ]
}

objects_left() {
	echo "those of processes $(kfd_processes | tr '\n' ' ')"
}

objects() {
	kfd_processes
}

# ends STATE TEXT: neither right nor wrong
ends() {
	printf '%s %s\n' "$1" "$2" >"$work/outcome"
	exit 0
}

# save ARG...: where the plugin refuses, before it has written contents, the job has to go on
save() {
	local why
	images_new
	! criu_call dump -t "${job_pids[0]}" "$@" || return 0
	why=$(sed -n 's/.*Error (amdgpu_plugin): //p' "$work/$criu_runs-dump.log" | head -n 1)
	[[ -n $why && -z $(find "$images" -name 'amdgpu-pages-*') ]] || fail "criu dump failed: $(criu_errors)"
	"${goes_on:-job_goes_on}"
	ends refused "$why"
}

job_goes_on() {
	expect_unharmed
	job_end
}

# comes_back: saved, gone, restored, every byte right, computes on
comes_back() {
	save
	expect_gone
	expect_no_objects
	restore
	expect_unharmed
	rm -rf "$images"
}

# begins ARG...: a job
begins() {
	job_start "$@"
	job_picture
}

# sized MIB ARG...: a job on one GPU, where VRAM, disk and the time of a slow copy allow it
sized() {
	local mib=$1
	((mib > 0)) || ends skipped "the driver does not tell how much VRAM is free"
	((mib <= most_vram)) || ends skipped "$mib MiB of VRAM, at most $most_vram are to be used"
	((mib * 5 / 4 + 64 <= most_disk)) || ends skipped "needs $((mib * 5 / 4 + 64)) MiB of disk, at most $most_disk are to be used"
	((mib / 100 < most_seconds)) || ends skipped "may take $((mib / 100)) s, and $most_seconds s are left"
	begins --gpus 0 --vram "${mib}M" "${@:2}"
	comes_back
	job_end
}

one() {
	begins --gpus 0 "$@"
	comes_back
	job_end
}

# shared CASE: of sharejob
shared() {
	gpujob=$programs/sharejob
	begins "$1"
	comes_back
	job_end
}

case_start() {
	begins
	expect_unharmed
	job_end
}

case_tiny() { one --vram 64K --gtt 64K --userptr 64K; }
case_small() { sized 16; }
case_medium() { sized 256; }
case_large() { sized 4096; }
case_largest() { sized "$most_vram"; }

case_leave_running() {
	begins --gpus 0
	for _ in 1 2; do
		save --leave-running
		expect_unharmed
	done
	job_kill
	expect_gone
	expect_no_objects
	restore
	expect_unharmed
	job_end
}

case_twice() {
	begins
	comes_back
	comes_back
	job_end
}

case_kinds() { one --events --extra threads --extra memfd --extra maps; }

case_packets() {
	begins --gpus 0 --extra packets
	comes_back
	comes_back
	job_end
}

case_svm() {
	"$gpujob" --state "$work/probe" --gpus 0 --extra svm --background >"$work/probe.out" 2>&1 ||
		ends skipped "the job does not start: $(head -n 1 "$work/probe.out")"
	kill -KILL "$(state_get "$work/probe" pid)"
	wait_until 20 no_objects_left || fail "a killed job keeps $(objects_left)"
	one --extra svm
}

case_tree() {
	begins --children 2
	comes_back
	job_end
}

case_gpus() {
	(($(gpu_count) > 1)) || ends skipped "there is one GPU"
	begins --vram 64M
	comes_back
	job_end
}

# vram_by_gpu: bytes of VRAM that the job has on each GPU
vram_by_gpu() {
	grep -H . "/sys/class/kfd/kfd/proc/${job_pids[0]}"/vram_* | sed 's,.*/vram_,,'
}

# Two GPUs of one kind change places.
case_other_gpu() {
	local minors used
	mapfile -t minors < <(for node in $(gpu_nodes); do node_get "$node" drm_render_minor; done)
	((${#minors[@]} > 1)) || ends skipped "there is one GPU"
	begins --gpus 0 --vram 8M
	used=$(vram_by_gpu | sort -t: -k2nr | head -n 1)
	save
	expect_gone
	KFD_DEVICE_MAP="renderD${minors[0]}=renderD${minors[1]},renderD${minors[1]}=renderD${minors[0]}" restore
	expect_right
	[ "$(vram_by_gpu | sort -t: -k2nr | head -n 1 | cut -d: -f1)" != "${used%:*}" ] || fail "the job is still on GPU ${used%:*}"
	job_end
}

case_killed_dump() {
	begins --gpus 0
	# A refusal comes before.
	save --leave-running
	dump_killed
	expect_unharmed
	comes_back
	job_end
}

case_killed_restore() {
	local criu made
	begins --gpus 0 --vram 16M
	save
	expect_gone
	# The job is criu's child until it is let go, also when it has no command line yet.
	criu restore -D "$images" -o "$work/killed.log" -v4 </dev/null >/dev/null 2>&1 &
	criu=$!
	sleep 0.3
	kill -STOP "$criu"
	mapfile -t made < <(pgrep -P "$criu" || true)
	kill -KILL "$criu" "${made[@]}"
	expect_gone
	wait_until 20 no_objects_left || fail "a killed restore keeps $(objects_left)"
	restore
	expect_unharmed
	job_end
}

case_ipc() { shared ipc; }
case_vmm() { shared vmm-shared; }
case_dmabuf() { shared dmabuf; }

case_rocm() {
	gpujob=$programs/hsajob
	[ -x "$gpujob" ] || ends skipped "it was built without ROCm's HSA runtime"
	ldd "$gpujob" | grep 'not found' >/dev/null && ends skipped "ROCm's HSA runtime is not installed"
	begins
	comes_back
	job_end
}

# gfx_name: of the first GPU, as compilers call it
gfx_name() {
	local version
	version=$(node_get "$(gpu_nodes | sed -n 1p)" gfx_target_version)
	printf 'gfx%d%x%x' $((version / 10000)) $((version / 100 % 100)) $((version % 100))
}

# hip_found: of ROCm 6 or 7. The packages of 7.14 and later do not tell the loader of their directory, which is then named to it.
hip_found() {
	local library
	! /sbin/ldconfig -p | grep -E 'libamdhip64\.so\.[67]' >/dev/null || return 0
	library=$(compgen -G "${ROCM_PATH:-/opt/rocm}/lib/libamdhip64.so.[67]" || compgen -G "${ROCM_PATH:-/opt/rocm}/core/lib/libamdhip64.so.[67]") ||
		return 1
	export LD_LIBRARY_PATH=${library%%/libamdhip64*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

case_kernel() {
	local clang gfx
	gpujob=$programs/hipjob
	clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -V | tail -n 1) || true
	clang=$(ls /opt/rocm/core*/lib/llvm/bin/clang /opt/rocm*/lib/llvm/bin/clang /opt/rocm*/llvm/bin/clang 2>/dev/null | tail -n 1 | grep . || type -P "${clang:-clang}") ||
		ends skipped "there is no clang, which ROCm brings"
	gfx=$(gfx_name)
	"$clang" -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu="$gfx" -nogpulib -O2 -ffp-contract=off -o "$work/busy.co" \
		"$codes/busy.cl" >"$work/clang.out" 2>&1 || ends skipped "$clang makes no code for $gfx: $(head -n 1 "$work/clang.out")"
	hip_found || ends skipped "the HIP runtime of ROCm 6 or 7 is not installed"
	export ROCR_VISIBLE_DEVICES=0
	begins --share nothing --kernels "$work/busy.co"
	comes_back
	job_end
}

# main_of_case NAME DIR VRAM DISK SECONDS: in a process of its own; the limits, in MiB
main_of_case() {
	dir=$2
	most_vram=$3
	most_disk=$4
	most_seconds=$5
	work=$dir/$1
	job=$work/job
	gpujob=$programs/gpujob
	criu_limit=$most_seconds
	job_limit=$most_seconds
	trap 'on_error "$LINENO" "$BASH_COMMAND" "${BASH_SOURCE[0]}"' ERR
	"case_$1"
}

# rates: of the contents, by the plugin's lines in criu's logs
rates() {
	cat "$work"/*-dump.log "$work"/*-restore.log 2>/dev/null | sed -nE \
		's/.*amdgpu_plugin: gpu 0x[0-9a-f]+: (saved|restored) ([0-9]+) bytes in ([0-9.]+) s.*/\1 \2 \3/p' | awk '
		{ bytes[$1] += $2; seconds[$1] += $3 }
		END { for (way in bytes) if (seconds[way] > 0) printf "%s %.1f MiB at %.0f MB/s; ", way, bytes[way] / 1048576, bytes[way] / seconds[way] / 1e6 }'
}
