# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2217
# Processes without a GPU, with GPUs, foreign render nodes, wrong settings or nothing there: as if the plugin were not installed
# gpus: 1xmi100
# tier: all

machine_conf=/etc/criu/amdgpu_plugin.conf
mkdir -p "${machine_conf%/*}"
trap 'rm -f "$machine_conf"' EXIT

# cycle WHAT [COMMAND...]: a process that only counts is dumped and restored, and the plugin has nothing to say and
# leaves no trace; the command runs between
cycle() {
	local counter=$work/counter pid before
	rm -f "$counter"
	setsid bash -c 'while sleep 0.05; do echo $((++n)) >"$0"; done' "$counter" </dev/null >/dev/null 2>&1 &
	pid=$!
	disown
	wait_until 10 test -s "$counter" || fail "the plain process does not count"
	job_pids=("$pid")
	dump
	[ -s "$images/inventory.img" ] || fail "the dump leaves no inventory ($1)"
	! grep -q amdgpu_plugin "$images/inventory.img" || fail "the inventory names the plugin ($1)"
	! grep -E 'Error \(amdgpu_plugin|amdgpu_plugin: Warning' "$work/$criu_runs-dump.log" || fail "the plugin is heard of ($1)"
	"${@:2}"
	before=$(<"$counter")
	criu_call restore -d || fail "criu restore ended with status $? ($1): $(criu_errors)"
	! grep -E 'Error \(amdgpu_plugin|amdgpu_plugin: Warning' "$work/$criu_runs-restore.log" || fail "the plugin is heard of ($1)"
	wait_until 10 changed "$counter" "$before" || fail "the restored process does not count ($1)"
	kill -KILL "$pid"
	wait_until 10 no_process "$pid" || fail "the plain process does not end"
}

# Since 4.1, criu notes which plugins the images need.
has_inventory() {
	[ "$(printf '%s\n' 4.1 "$(criu --version | sed -n 's/^Version: //p')" | sort -V | head -n 1)" = 4.1 ]
}

# inventory_shorten: as images of criu 4.0 and older, which have no list of plugins
inventory_shorten() {
	python3 - "$images/inventory.img" <<-'end'
	import struct, sys
	def varint(data, at):
	    value = shift = 0
	    while True:
	        value |= (data[at] & 127) << shift
	        at, shift = at + 1, shift + 7
	        if data[at - 1] < 128:
	            return value, at
	data = open(sys.argv[1], 'rb').read()
	body, kept, at, dropped = data[8:], b'', 0, 0
	while at < len(body):
	    begin = at
	    tag, at = varint(body, at)
	    value, at = varint(body, at)
	    at += value if tag & 7 == 2 else 0
	    if tag >> 3 == 12:
	        dropped += 1
	    else:
	        kept += body[begin:at]
	open(sys.argv[1], 'wb').write(data[:4] + struct.pack('<I', len(kept)) + kept)
	sys.exit(dropped != 1)
	end
}

# as_on_another_machine: images without a list of plugins come to a machine without a GPU
as_on_another_machine() {
	! has_inventory || inventory_shorten
	gpus-load none
}

changed() {
	[ -s "$1" ] && [ "$(<"$1")" != "$2" ]
}

cycle 'with GPUs'
echo 'KFD_NUMA_CHECK = perhaps' >"$machine_conf"
KFD_FW_VER_CHECK=maybe cycle 'with mistakes in the settings'
rm "$machine_conf"
! has_inventory || cycle 'with images that have no list of plugins' inventory_shorten

# A render node of another driver is refused as criu refuses it: no word of ours.
modprobe vgem
node=
for dir in /sys/class/drm/renderD*; do
	[ "$(basename "$(readlink -f "$dir/device/driver" 2>/dev/null)")" = amdgpu ] || node=/dev/dri/${dir##*/}
done
[ -e "$node" ] || fail "there is no render node of another driver"
sleep 1000 <"$node" >/dev/null 2>&1 &
job_pids=($!)
disown
dump_refused
! grep -E 'Error \(amdgpu_plugin|amdgpu_plugin: Warning' "$work/$criu_runs-dump.log" || fail "the plugin speaks of a foreign node"
kill -KILL "${job_pids[0]}"
cycle 'where the GPUs are gone' as_on_another_machine
cycle 'with a foreign render node only'
rmmod vgem
cycle 'with nothing'

# Another plugin before ours, and behind it: each gets its files.
machine_load 1xmi100
for order in 'other_plugin amdgpu_plugin' 'amdgpu_plugin other_plugin'; do
	rm -rf "$work/plugins"
	mkdir "$work/plugins"
	for plugin in $order; do
		cp "$(find "$top/build/workloads" "$top" -maxdepth 1 -name "$plugin.so" | head -n 1)" "$work/plugins/"
	done
	job_start "${small[@]}" --extra misc
	job_picture
	dump -L "$work/plugins"
	grep -q 'other_plugin: file .* saved' "$work/$criu_runs-dump.log" || fail "the other plugin was not asked"
	! has_inventory || grep -q amdgpu_plugin "$images/inventory.img" || fail "the inventory does not name the plugin"
	restore -L "$work/plugins"
	expect_unharmed
	job_end
done
