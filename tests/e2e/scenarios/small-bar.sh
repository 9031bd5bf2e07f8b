# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU of whose VRAM the CPU sees only a part
# gpus: 1xmi100
# kernels: each

gpus-load "$gpus_dir/1xmi100.txt" vis_vramlimit=64 >"$work/load.log" 2>&1 ||
	fail "loading a GPU with 64 MiB of visible VRAM: $(tail -n 1 "$work/load.log")"
# Banks of memory: VRAM that the CPU sees is of heap type 1, the rest of type 2.
grep -q '^heap_type 2$' /sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/properties || fail "the CPU sees all of the VRAM"

job_start --vram 3M
job_returns
job_end
