# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# amdgpu-checkpoint on real dumps of this plugin and of that in CRIU's source: show, verify, match, doctor
# gpus: 2xmi100
# tier: all

tool=$top/build/amdgpu-checkpoint

# says STATUS PATTERN ARG...: of amdgpu-checkpoint
says() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$tool" "$@" >"$work/tool.out" 2>&1 || got=$?
	{
		echo "+ amdgpu-checkpoint $*"
		cat "$work/tool.out"
	} >>"$work/tool.log"
	[ "$got" -eq "$want" ] || fail "amdgpu-checkpoint $* ended with status $got, not $want: $(tail -n 1 "$work/tool.out")"
	grep -qE -- "$pattern" "$work/tool.out" || fail "amdgpu-checkpoint $* does not say \"$pattern\": $(head -n 1 "$work/tool.out")"
}

# ---- the machine ----

version=$(criu --version | sed -n 's/^Version: //p')
says 0 "^ok +criu: version $version\$" doctor
says 0 '^ok +plugin: /.*/amdgpu_plugin.so, version [0-9]' doctor
says 0 '^ok +driver: Linux .* with a KFD that can checkpoint' doctor
says 0 '^ok +gpu 0x[0-9a-f]+: .*gfx908\), renderD.*its queues can be restored' doctor
says 0 '^ok +settings: all have their defaults' doctor
topology_says 's/^fw_version .*/fw_version 64/'
cp -r /sys/class/kfd/kfd/topology "$work/machine"

# ---- images of this plugin ----

job_start --vram 3M --children 1
dump
pid=${job_pids[0]}
says 0 "^process $pid " show "$images"
says 0 'written by   plugin [0-9.]+(\+[0-9a-f]+(-dirty)?)?, criu .*hooks: [0-9]+, Linux ' show "$images"
says 0 'queues: compute [0-9]+, SDMA [1-9][0-9]*, events: [0-9]+' show "$images"
says 0 'VRAM: [0-9]+, [0-9.]+ [KM]iB$' show "$images"
says 0 '"verdict": "good"' --json verify "$images"
says 0 '^images: ([0-9]+), with a correct checksum: \1$' verify "$images"
says 0 '^buffers with data: ([0-9]+), checksums compared: \1,' verify "$images"
! grep -q "files.img is not there" "$work/tool.out" || fail "criu's list of files was not read"
says 0 "process $pid: fits" match "$images"
says 0 "process $pid: fits" match --machine "$work/machine" "$images"
says 0 "process $pid: fits" match --machine /sys/class/kfd/kfd/topology "$images"
! grep -q 'does not fit' "$work/tool.out" || fail "not every process fits"

good=$images
images=$work/images-flipped
cp -r "$good" "$images"
file=$(find "$images" -name 'amdgpu-pages-*.img' | sort | tail -n 1)
flip_bit "$file" $(($(stat -c %s "$file") / 2))
says 1 "^${file##*/}: is damaged: CRC-32C .*; buffer of .* of gpu 0x" verify "$images"
! criu_call restore -d || fail "the damaged images were restored"
grep -q 'Error (amdgpu_plugin): .*damaged' "$work/$criu_runs-restore.log" || fail "the plugin does not find the damage"
rm -r "$images"
images=$good
restore
expect_verified
# Its GPUs are in use now, which is said and forbids nothing.
says 0 'which others use' match "$images"
job_end

# What a restore refuses, match refuses, and with the setting that it names both do it.
machine_load 2xmi100
topology_says 's/^fw_version .*/fw_version 63/'
says 1 'KFD_FW_VER_CHECK=0 accepts it' match "$images"
! criu_call restore -d || fail "GPUs with older firmware were accepted"
export KFD_FW_VER_CHECK=0
says 0 "process $pid: fits" match "$images"
says 0 "^warning +KFD_FW_VER_CHECK: 0, from this shell's environment" doctor
restore
expect_verified
job_end
unset KFD_FW_VER_CHECK
topology_says
machine_load 1xmi100
says 1 "process $pid: does not fit" match "$images"
says 0 "process $pid: fits" match --machine "$work/machine" "$images"
gpus-load none >"$work/gpus-load.log" 2>&1 || fail "unloading the GPUs: $(tail -n 1 "$work/gpus-load.log")"
says 2 'this machine has no GPU' match "$images"
says 1 '^problem +driver: there is no KFD' doctor

# ---- images of the plugin in CRIU's source, where the machine has it (scenario existing-plugin) ----

existing=$top/build/interop/$version
if [ -e "$existing/amdgpu_plugin.so" ]; then
	# It wants the render minors to begin with 128.
	machine_load default
	job_start --vram 3M
	dump -L "$existing"
	says 0 'written by   unknown' show "$images"
	says 0 '^buffers with data: ([0-9]+), checksums compared: 0, without one: \1,' verify "$images"
	says 0 "process ${job_pids[0]}: fits" match "$images"
	CRIU_LIBS_DIR=$existing says 0 '^warning +plugin: .* reports no version' doctor
	restore
	expect_verified
	job_end
	cp -r "$images" "$work/images-cut"
	file=$(find "$work/images-cut" -name 'amdgpu-pages-*.img')
	truncate -s -4096 "$file"
	says 1 "^${file##*/}: is truncated: .*; buffer of .* of gpu 0x" verify "$work/images-cut"
	rm -r "$work/images-cut"
else
	echo "# image-tool: without images of CRIU's plugin, which is not built (make interop)"
fi
