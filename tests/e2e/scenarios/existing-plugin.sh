# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The plugin of CRIU's own source: what it dumps we restore, what we dump it restores, on one and on two GPUs
# gpus: default
# tier: all
# kernels: each
# needs: build/interop/4.2.1/amdgpu_plugin.so, interop

# It wants the render minors to begin with 128.
existing_load() {
	machine_load "$1" "s/^drm_render_minor.*/drm_render_minor = 128 + 1/"
}

# existing_pair DUMPING RESTORING ARG...: directories with plugins, arguments of the job
existing_pair() {
	local dumping=$1 restoring=$2
	shift 2
	job_start "$@"
	dump -L "$dumping"
	restore -L "$restoring"
	expect_right
	job_end
}

version=$(criu --version | sed -n 's/^Version: //p')
existing=$top/build/interop/$version
ours=/usr/lib/criu

existing_load default
existing_pair "$existing" "$existing" --vram 3M
existing_pair "$existing" "$ours" --vram 3M
existing_pair "$ours" "$existing" --vram 3M
existing_load 2xmi100
existing_pair "$existing" "$ours" --children 1
existing_pair "$ours" "$existing" --children 1
