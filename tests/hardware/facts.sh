# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What a report says about the machine, without what tells one machine from another: serial numbers, unique ids, names.

nodes=/sys/class/kfd/kfd/topology/nodes

# first_line FILE: or "?"
first_line() {
	local line='?'
	[ ! -r "$1" ] || read -r line <"$1" || true
	printf '%s\n' "${line:-?}"
}

# node_get NODE KEY: from its properties
node_get() {
	awk -v key="$2" '$1 == key { print $2 }' "$nodes/$1/properties"
}

# gpu_nodes: numbers of the nodes that are GPUs
gpu_nodes() {
	local node
	for node in $(printf '%s\n' "$nodes"/* | sed 's,.*/,,' | sort -n); do
		[ "$(first_line "$nodes/$node/gpu_id")" = 0 ] || [ "$(first_line "$nodes/$node/gpu_id")" = '?' ] || echo "$node"
	done
}

gpu_count() {
	gpu_nodes | wc -l
}

first_render_minor() {
	node_get "$(gpu_nodes | head -n 1)" drm_render_minor
}

# vram_free_mib MINOR: 0 where the driver does not tell
vram_free_mib() {
	local device=/sys/class/drm/renderD$1/device total used
	total=$(first_line "$device/mem_info_vram_total")
	used=$(first_line "$device/mem_info_vram_used")
	[[ $total$used =~ ^[0-9]+$ ]] || { echo 0; return; }
	echo $(((total - used) >> 20))
}

# bar_mib MINOR: the largest of the GPU's address ranges, through which the CPU sees VRAM
bar_mib() {
	local from to _ most=0
	while read -r from to _; do
		((to - from < most)) || most=$((to - from + 1))
	done <"/sys/class/drm/renderD$1/device/resource"
	echo $((most >> 20))
}

firmware() {
	local file
	for file in "$1"/fw_version/*; do
		[ ! -e "$file" ] || printf '%s=%s ' "${file##*/}" "$(first_line "$file")"
	done
}

# gpu_facts NODE
gpu_facts() {
	local node=$1 minor device
	minor=$(node_get "$node" drm_render_minor)
	device=/sys/class/drm/renderD$minor/device
	echo "gpu $(first_line "$nodes/$node/gpu_id") (node $node, renderD$minor):"
	echo "  name: $(first_line "$nodes/$node/name"), gfx target $(node_get "$node" gfx_target_version)"
	echo "  device: $(first_line "$device/vendor"):$(first_line "$device/device"), revision $(first_line "$device/revision")"
	echo "  capability: $(node_get "$node" capability), debug properties $(node_get "$node" debug_prop)"
	echo "  XCCs: $(node_get "$node" num_xcc), SDMA engines $(node_get "$node" num_sdma_engines) + $(node_get "$node" num_sdma_xgmi_engines)"
	echo "  partitions: compute $(first_line "$device/current_compute_partition"), memory $(first_line "$device/current_memory_partition")"
	echo "  VRAM: $(first_line "$device/mem_info_vram_total") bytes, used $(first_line "$device/mem_info_vram_used"), largest BAR $(bar_mib "$minor" 2>/dev/null) MiB"
	echo "  PCI link: $(first_line "$device/current_link_speed") x$(first_line "$device/current_link_width"), NUMA node $(first_line "$device/numa_node")"
	echo "  IOMMU: $(first_line "$device/iommu_group/type")"
	echo "  firmware: KFD $(node_get "$node" fw_version), SDMA $(node_get "$node" sdma_fw_version); $(firmware "$device")"
	awk '$1 == "type" || $1 == "node_to" || $1 == "weight" { printf "%s%s %s", $1 == "type" ? "  link: " : ", ", $1, $2 }
		$1 == "weight" { print "" }' "$nodes/$node/io_links"/*/properties 2>/dev/null
}

# Options of the kernel that matter; the others may name disks and machines.
command_line() {
	tr ' ' '\n' </proc/cmdline | grep -E '^(amdgpu\.|iommu|amd_iommu|intel_iommu|pci=|pcie|numa)' | tr '\n' ' ' || true
}

kernel_config() {
	{ zcat /proc/config.gz || cat "/boot/config-$(uname -r)"; } 2>/dev/null |
		grep -E '^CONFIG_(HSA_AMD|CHECKPOINT_RESTORE|KCMP|CGROUP_BPF|DEVICE_PRIVATE|PCI_P2PDMA|DMABUF_MOVE_NOTIFY)' | tr '\n' ' ' || true
}

parameters() {
	local name
	for name in noretry sched_policy vis_vramlimit gttsize mes mes_kiq hws_max_conc_proc no_system_mem_limit mtype_local; do
		printf '%s=%s ' "$name" "$(first_line "/sys/module/amdgpu/parameters/$name")"
	done
}

facts() {
	local node
	echo "test: version $(amdgpu-checkpoint --version 2>&1 | tail -n 1)"
	echo "kernel: $(uname -rvm)"
	echo "system: $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release)"
	echo "driver: version $(first_line /sys/module/amdgpu/version), source $(first_line /sys/module/amdgpu/srcversion)"
	echo "parameters: $(parameters)"
	echo "command line: $(command_line)"
	echo "configuration: $(kernel_config)"
	echo "XNACK: $([ "$(first_line /sys/module/amdgpu/parameters/noretry)" = 0 ] && echo 'possible (noretry=0)' || echo 'see noretry')"
	echo "processor: $(sed -n '/^model name/ { s/.*: //p; q }' /proc/cpuinfo), $(nproc) threads, $(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB"
	echo "virtual machine: $(grep -qw hypervisor /proc/cpuinfo && echo yes || echo no)"
	echo "ROCm: $(first_line "$(ls /opt/rocm/.info/version /opt/rocm/core*/.info/version 2>/dev/null | head -n 1)")"
	echo "criu: $(criu --version | tr '\n' ' ')"
	echo "criu check: $(criu check 2>&1 | tail -n 1)"
	for node in $(gpu_nodes); do
		gpu_facts "$node"
	done
}

# topology_copy DIRECTORY: for "amdgpu-checkpoint match --machine", without unique ids
topology_copy() {
	mkdir -p "$1"
	cp -r /sys/class/kfd/kfd/topology/. "$1" 2>/dev/null || true
	find "$1" -name properties -exec sed -i '/^unique_id /d' {} +
}

# ---- the kernel's log ----

kernel_log_mark() {
	log_begin="amdgpu-checkpoint-test ${dir##*.} begins"
	[ ! -w /dev/kmsg ] || echo "$log_begin" >/dev/kmsg || true
}

# kernel_log: what it has on GPUs since the begin; all that it still has, where it does not go back so far
kernel_log() {
	local all
	all=$(dmesg 2>/dev/null) || return 0
	grep -q "$log_begin" <<<"$all" && all=$(sed "1,/$log_begin/d" <<<"$all")
	grep -E 'amdgpu|kfd|drm|asicsim|BUG|WARNING|Oops|INFO: task' <<<"$all" || true
}

# ---- nothing that tells one machine from another ----

# ids: what to take out, one a line
ids() {
	local id
	uname -n
	awk '$1 == "unique_id" && $2 != "0" { print $2 }' "$nodes"/*/properties | while read -r id; do
		printf '%s\n%x\n' "$id" "$id"
	done
	[ ! -r /etc/machine-id ] || cat /etc/machine-id
}

# scrub DIRECTORY: of all its files
scrub() {
	local id script=
	while read -r id; do
		[ ${#id} -lt 4 ] || script+="s/$(printf '%s' "$id" | sed 's/[].[*^$\/]/\\&/g')/(removed)/gI;"
	done < <(ids)
	find "$1" -type f -exec sed -i "$script" {} +
}
