# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What the images of the test machine are made of: one row for each userland, kernel and emulator, with the Debian
# suite and the packages. A new userland or kernel is one more row here. Names stay; versions are the suite's.
# shellcheck disable=SC2034

# Packages that the host needs. Everything else is built from them.
HOST_PACKAGES="
gcc g++ libc6-dev make pkg-config clang libclang-rt-14-dev
libdrm-dev libhsa-runtime-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libcmocka-dev musl-tools
libprotobuf-dev libcap-dev lld
qemu-system-x86 mmdebstrap debian-archive-keyring busybox-static
cpio zstd xz-utils e2fsprogs util-linux asciidoctor libarchive-dev python3 zsh fish"

USERLAND_DEFAULT=forky
KERNEL_DEFAULT=6.12

USERLAND_BASE="kmod,iproute2,procps,util-linux,strace,pciutils,e2fsprogs,python3-minimal"
USERLAND_PLUGIN="criu,libdrm2,libdrm-amdgpu1,libprotobuf-c1,libarchive13t64"
USERLAND_ROCM="rocminfo,libhsa-runtime64-1"
# HIP 6.4, and the compiler of that of ROCm 7.2 (tests/interop/get-rocm).
USERLAND_HIP="libamdhip64-6,libllvm22,libclang-common-22-dev,clang-22,lld-22"
# llama.cpp with its backend for HIP, and what writes a model.
USERLAND_PROGRAMS="libamdhip64-6,llama.cpp-tools,llama.cpp-examples,llama.cpp-tests,libggml0-backend-hip,python3-gguf,curl"
USERLAND_ENGINES="podman,conmon,crun,runc,netavark,aardvark-dns,catatonit,containers-storage,nftables,iptables"
USERLAND_ENGINES+=",containerd,docker.io,docker-cli,tini-static,checkpointctl,jq,curl,busybox-static,libcriu2"
USERLAND_ENGINES+=",python3-grpcio,python3-protobuf,protobuf-compiler,docker-registry,systemd-standalone-sysusers,systemd-standalone-tmpfiles"
# criu 4.3, beside sid's other packages.
USERLAND_EXPERIMENTAL="criu/experimental,libcompel1/experimental,libcriu2/experimental,python3-pycriu/experimental,xfsprogs,runc,crun,iptables"
# Its first process is that of a pid namespace in the machine (tests/e2e/scenarios/suspend-systemd.sh).
USERLAND_SYSTEMD="systemd,dbus-daemon"
USERLAND_SLURM="slurmctld,slurmd,slurm-client,sudo,systemd-standalone-sysusers"

PROGRAMS_DIR=$VM_DIR/../programs

# recipe_userland NAME: "suite packages", then what else goes into it
recipe_userland() {
	case $1 in
	forky) echo "forky $USERLAND_BASE,$USERLAND_PLUGIN,$USERLAND_ROCM,xfsprogs,runc,crun,libcriu2,iptables" ;;
	hip) echo "forky $USERLAND_BASE,$USERLAND_PLUGIN,$USERLAND_ROCM,$USERLAND_HIP" ;;
	programs)
		echo "forky $USERLAND_BASE,$USERLAND_PLUGIN,$USERLAND_ROCM,$USERLAND_PROGRAMS"
		(cd "$PROGRAMS_DIR" && sha256sum -- drop-gpus write-model) ;;
	engines) echo "forky $USERLAND_BASE,$USERLAND_PLUGIN,$USERLAND_ROCM,$USERLAND_ENGINES" ;;
	slurm) echo "forky $USERLAND_BASE,$USERLAND_PLUGIN,$USERLAND_SLURM" ;;
	systemd) echo "forky $USERLAND_BASE,$USERLAND_PLUGIN,$USERLAND_SYSTEMD" ;;
	trixie) echo "trixie $USERLAND_BASE,$USERLAND_PLUGIN" ;;
	bookworm) echo "bookworm $USERLAND_BASE,${USERLAND_PLUGIN/%t64}" ;;
	experimental) echo "experimental $USERLAND_BASE,${USERLAND_PLUGIN/criu,/},$USERLAND_ROCM,$USERLAND_EXPERIMENTAL" ;;
	*)
		note "no userland is called '$1'; there are: forky (with ROCm's tools) hip programs engines slurm systemd trixie bookworm experimental"
		return 1 ;;
	esac
}

# The kernel, and a build root for modules with the compiler that its headers ask for.
KERNEL_TOOLS="gcc,make,kmod"
KERNEL_PACKAGES="linux-image-amd64,linux-headers-amd64,$KERNEL_TOOLS"
KERNEL_BASE="base-files,bash,coreutils,dash,diffutils,findutils,grep,sed,mawk,perl-base"

# recipe_kernel NAME: "suite packages"; a point release that the suite no longer keeps becomes its newest. Since 6.12.111
# RESTORE wants memory that comes back later.
recipe_kernel() {
	case $1 in
	6.12) echo "trixie $KERNEL_BASE,$(kernel_packages 6.12.107+deb13-amd64)" ;;
	6.12.117) echo "trixie $KERNEL_BASE,$(kernel_packages 6.12.117+deb13-amd64)" ;;
	7.2) echo "forky $KERNEL_BASE,$KERNEL_PACKAGES" ;;
	# It needs a newer linux-base than trixie's.
	7.3) echo "trixie-backports $KERNEL_BASE,linux-base/trixie-backports,$(kernel_packages 7.3.4+deb13-amd64)" ;;
	*) note "no kernel is called '$1'; there are: 6.12 6.12.117 7.2 7.3"; return 1 ;;
	esac
}

kernel_packages() {
	echo "linux-image-$1,linux-headers-$1,$KERNEL_TOOLS"
}

# kernel_release NAME: 6.12 of 6.12.117
kernel_release() {
	cut -d. -f1,2 <<<"$1"
}

# What the amdgpu driver on a simulated chip is built from, and how.
DRIVER_FILES=$VM_DIR/../asicsim/driver

# recipe_driver KERNEL: "suite package" with the kernel's source, then image of the kernel and what else goes into it
recipe_driver() {
	local suite
	read -r suite _ < <(recipe_kernel "$1") && [ -n "$suite" ] || return
	echo "$suite linux-source-$(kernel_release "$1")" && basename -- "$(image_path kernel "$1")" && (cd "$DRIVER_FILES" && sha256sum -- *) &&
		declare -f driver_source driver_make
}

# Edits of the driver's source, and recipe_edited KERNEL+NAME...: the driver's image, and the edits of it
EDITS=$VM_DIR/../../docs/kernel

recipe_edited() {
	local files=${1#*+}
	files=${files//+/.pl }.pl
	# One word for each edit.
	# shellcheck disable=SC2086
	basename -- "$(image_path driver "${1%%+*}")" && (cd "$EDITS" 2>/dev/null && sha256sum -- Edit.pm $files)
}

# recipe_qemu 10: "suite packages". Bookworm's own QEMU 7.2 now and then miscomputes with several processors.
recipe_qemu() {
	echo "bookworm-backports qemu-system-x86 qemu-system-common qemu-system-data seabios"
}

# recipe_source VERSION of criu: "suite package"
recipe_source() {
	case $1 in
	4.2.1) echo "forky criu" ;;
	4.1.1) echo "trixie criu" ;;
	*) note "no source is called '$1'; there are: 4.1.1 4.2.1"; return 1 ;;
	esac
}

# Modules that the first stage loads; the rest is loaded from the kernel's module directory.
INITRD_MODULES="virtio_pci virtio_blk virtio_rng 9pnet_virtio 9p overlay"

# recipe_initrd KERNEL: image of the kernel, then what else goes into its first stage
recipe_initrd() {
	image_path kernel "$1" && sha256sum <"$VM_DIR/guest/init" && echo "$INITRD_MODULES"
}

# What a person waits for, measured on 2 cores.
declare -A PREPARE_SECONDS=([userland]=25 [kernel]=40 [qemu]=5 [initrd]=1 [source]=10 [driver]=120 [edited]=120)
