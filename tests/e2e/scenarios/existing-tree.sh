# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# The plugin of a tree of CRIU restores what it has dumped: tests/interop/criu-ci
# gpus: default
# userland: experimental
# tier: all
# needs: build/interop/tree/amdgpu_plugin.so

existing=$top/build/interop/tree

# round NAME GPUS ARG...: a job with these arguments is dumped, ends, is restored, and has every byte
round() {
	local name=$1
	pair=$name
	# The plugin wants the render minors to begin with 128.
	machine_load "$2" "s/^drm_render_minor.*/drm_render_minor = 128 + 1/"
	shift 2
	job_start "$@"
	dump -L "$existing"
	restore -L "$existing"
	expect_right
	job_end
	echo "criu-ci: $name: ok"
}

round "one GPU" default --vram 3M
round "two GPUs, two processes" 2xmi100 --vram 3M --children 1
# With one process the plugin restores in parallel to criu, from 4.2 on.
round "two GPUs, one process" 2xmi100 --vram 3M
