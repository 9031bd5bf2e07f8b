# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Builders of the images of the test machine: build_KIND NAME DIRECTORY. lib.sh calls them with errexit set, in a
# mount name space of their own, with the output in a log file. A userland is what the machine runs; a kernel is
# vmlinuz, its modules and a root to build modules in; an initrd is the first stage of a kernel's boot; qemu is an
# emulator newer than the host's, unpacked aside; source is the source of a criu; driver is the kernel's amdgpu, built
# but for the chip (tests/asicsim); edited is the same with changes of ours (docs/kernel).

# A suite in motion may have a Release file past its date; that is no reason to stop.
root_options() {
	local line
	echo --mode=root
	echo --components=main
	echo --aptopt='Acquire::Check-Valid-Until "false"'
	echo --aptopt='Acquire::Languages "none"'
	echo --aptopt='APT::Install-Recommends "false"'
	while read -r line; do
		echo --aptopt="$line"
	done < <(apt_proxy_options)
	for line in man doc locale info lintian bash-completion; do
		echo --dpkgopt="path-exclude=/usr/share/$line/*"
	done
}

# root_make VARIANT SUITE PACKAGES DIRECTORY [OPTION...]
root_make() {
	local variant=$1 suite=$2 packages=$3 dir=$4 base=$2 uri options
	shift 4
	uri=$(mirror_uri)
	mapfile -t options < <(root_options)
	# These suites are what others do not have yet.
	case $suite in
	experimental) base=sid ;;
	*-backports) base=${suite%-backports} ;;
	esac
	[ "$base" = "$suite" ] ||
		options+=(--setup-hook="echo deb $uri $suite main >\"\$1/etc/apt/sources.list.d/$suite.list\"")
	mmdebstrap "${options[@]}" --variant="$variant" --include="$packages" "$@" "$base" "$dir" "$uri" || {
		echo "suite $suite of $uri does not give: $packages"
		return 1
	}
}

build_userland() {
	local suite packages
	read -r suite packages < <(recipe_userland "$1")
	root_make minbase "$suite" "$packages" "$2"
	# Mount points, which the read-only root of the machine cannot make itself.
	mkdir -p "$2/share" "$2/disk" "$2/usr/lib/modules"
	dpkg-query --admindir="$2/var/lib/dpkg" -W >"$2/packages.txt"
}

# Without the code of all GPUs but the MI100: 6 GB would be left of this otherwise. The models are in /usr/share/tiny-llama.
build_userland_programs() {
	local suite packages models=/usr/share/tiny-llama
	read -r suite packages < <(recipe_userland programs)
	root_make minbase "$suite" "$packages" "$2" --dpkgopt='path-exclude=/usr/lib/*/rocblas/*gfx*' \
		--dpkgopt='path-include=/usr/lib/*/rocblas/*gfx908*'
	"$PROGRAMS_DIR/drop-gpus" gfx908 "$2"/usr/lib/x86_64-linux-gnu/librocblas.so.?.? \
		"$(find "$2/usr/lib" -name 'libggml-hip.so' -type f)"
	mkdir -p "$2/share" "$2/disk" "$2/usr/lib/modules" "$2$models"
	chroot "$2" python3 - "$models" F32 F16 Q8_0 Q4_0 <"$PROGRAMS_DIR/write-model"
	dpkg-query --admindir="$2/var/lib/dpkg" -W >"$2/packages.txt"
}

# Unpacked, not configured: no package script runs, so that nobody makes initrds or boot menus.
kernel_unpack() {
	root_make extract "$1" "$2" "$3" \
		--setup-hook='cd "$1" && mkdir -p usr/bin usr/sbin usr/lib usr/lib64 && ln -s usr/bin usr/sbin usr/lib usr/lib64 .'
}

build_kernel() {
	local name=$1 dir=$2 suite packages version
	read -r suite packages < <(recipe_kernel "$name")
	mkdir -p "$dir"
	kernel_unpack "$suite" "$packages" "$dir/root" || {
		rm -rf "$dir/root"
		echo "so it is the newest of the suite"
		kernel_unpack "$suite" "$KERNEL_BASE,$KERNEL_PACKAGES" "$dir/root"
	}
	version=$(basename -- "$dir"/root/usr/lib/modules/*)
	case $version in
	"$(kernel_release "$name")"[.-]*) ;;
	*) echo "suite $suite has kernel $version, not $name: its row in tests/vm/recipes.sh must follow"; return 1 ;;
	esac
	[ -e "$dir/root/usr/bin/awk" ] || ln -s mawk "$dir/root/usr/bin/awk"
	[ -e "$dir/root/usr/bin/sh" ] || ln -s dash "$dir/root/usr/bin/sh"
	mkdir -p "$dir/root/mnt" "$dir/root/proc" "$dir/root/tmp"
	chroot "$dir/root" depmod -a "$version"
	ln -s root/usr/lib/modules "$dir/modules"
	ln "$dir/root/boot/vmlinuz-$version" "$dir/vmlinuz" 2>/dev/null ||
		ln "$dir/root/usr/lib/modules/$version/vmlinuz" "$dir/vmlinuz"
	echo "$version" >"$dir/version"
}

# A static busybox, the modules that reach the root file system, and guest/init, which mounts it.
build_initrd() {
	local dir=$2 kernel root version top file name
	kernel=$(image_path kernel "$1")
	root=$kernel/root
	version=$(cat "$kernel/version")
	top=$dir/top
	mkdir -p "$top"/{bin,proc,sys,dev,modules,lower,upper,root}
	cp /bin/busybox "$top/bin/busybox"
	ln -s busybox "$top/bin/sh"
	cp "$VM_DIR/guest/init" "$top/init"
	initrd_module_files "$root" "$version" | while read -r file; do
		name=${file##*/}
		name=${name%.ko*}.ko
		unpack_module "$root$file" >"$top/modules/$name"
		echo "$name" >>"$top/modules/order"
	done
	(cd "$top" && find . | cpio --quiet -o -H newc) | gzip -1 >"$dir/initrd"
	rm -rf "$top"
}

# Files of INITRD_MODULES and of all that they need, in the order of loading.
initrd_module_files() {
	local module
	for module in $INITRD_MODULES; do
		chroot "$1" modprobe -S "$2" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

unpack_module() {
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*) cat "$1" ;;
	esac
}

# apt_of SUITE DIRECTORY deb|deb-src: sets "options", with which apt-get reads that suite and nothing of the host's
apt_of() {
	local dir=$2 uri
	uri=$(mirror_uri)
	mkdir -p "$dir/lists/partial"
	echo "$3 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $1 main" >"$dir/sources.list"
	apt_proxy_options >"$dir/apt.conf"
	export APT_CONFIG=$dir/apt.conf
	options=(-o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$dir/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false)
	apt-get "${options[@]}" update
}

build_qemu() {
	local suite packages dir=$2 package options
	read -r suite packages < <(recipe_qemu "$1")
	mkdir -p "$dir/deb"
	apt_of "$suite" "$dir/apt" deb
	for package in $packages; do
		(cd "$dir/deb" && apt-get "${options[@]}" download "$package/$suite")
	done
	for package in "$dir"/deb/*.deb; do
		dpkg-deb -x "$package" "$dir"
	done
	rm -rf "$dir/apt" "$dir/deb"
	"$dir/usr/bin/qemu-system-x86_64" --version
}

# The upstream source in DIRECTORY/tree. Debian's patches are not needed, nor always in the archive.
build_source() {
	local suite package dir=$2 options
	read -r suite package < <(recipe_source "$1")
	mkdir -p "$dir/tree"
	apt_of "$suite" "$dir/apt" deb-src
	(cd "$dir" && apt-get "${options[@]}" source --download-only --tar-only "$package")
	tar -xf "$dir/${package}_$1".orig.tar.* -C "$dir/tree" --strip-components=1 ||
		{ echo "suite $suite does not have $package $1"; return 1; }
	rm -rf "$dir/apt" "$dir/$package"_*
	echo "$1" >"$dir/version"
}

# driver_source SUITE PACKAGE VERSION DIRECTORY: the driver's part of the kernel's source, without the registers of
# displays, which are half of it
driver_source() {
	local suite=$1 package=$2 version=$3 dir=$4 options found
	apt_of "$suite" "$dir/apt" deb
	found=$(apt-cache "${options[@]}" show "$package" | awk '$1 == "Version:" { print $2 }')
	grep -qxF "$version" <<<"$found" || {
		echo "suite $suite has $package ${found:-not at all}, but the headers of the prepared kernel are of $version:" \
			"remove $(image_path kernel "${package##*-}") so that both are prepared anew"
		return 1
	}
	(cd "$dir/apt" && apt-get "${options[@]}" download "$package=$version")
	dpkg-deb --fsys-tarfile "$dir/apt/${package}_"*.deb | tar -xO "./usr/src/$package.tar.xz" | xz -dc -T0 |
		tar -x -C "$dir" --strip-components=1 --exclude='*/asic_reg/dcn' --exclude='*/asic_reg/dpcs' \
			"$package/drivers/gpu/drm/amd"
	rm -rf "$dir/apt"
	mkdir -p "$dir/include/drm"
}

# driver_make KERNEL-IMAGE DIRECTORY: objects only, since a module would lack symbols; without information for
# debuggers, which would be thirty times as large
driver_make() {
	kernel_make "$1" driver="$2" -- M=/mnt/driver/drivers/gpu/drm/amd DRIVER=/mnt/driver \
		KCFLAGS=-g0 amdgpu.o
}

# The driver's files as one object, core.o, with stubs for what is left out; the chip is linked to it by kbuild.
build_driver() {
	local dir=$2 suite package kernel headers amd=drivers/gpu/drm/amd objects
	read -r suite package < <(recipe_driver "$1")
	kernel=$(image_path kernel "$1")
	headers=$(echo "$kernel"/root/usr/src/linux-headers-*-amd64)
	driver_source "$suite" "$package" "$(sed -n 's/.* Debian \(.*\)"/\1/p' "$headers/include/generated/package.h")" "$dir"
	cp "$DRIVER_FILES"/* "$dir/"
	cp "$DRIVER_FILES"/{Kbuild,flags.mk} "$dir/$amd/"
	driver_make "$kernel" "$dir"
	mapfile -t objects < <(cd "$dir" && find "$amd"/{amdgpu,amdkfd,pm} -name '*.o')
	(cd "$dir" && "$DRIVER_FILES/make-stubs" "$headers/Module.symvers" "${objects[@]}" >"$amd/stubs.c")
	# Once more, for the stubs.
	driver_make "$kernel" "$dir"
	kernel_run "$kernel" driver="$dir" -- ld -r -S -o /mnt/driver/core.o \
		"${objects[@]/#//mnt/driver/}" "/mnt/driver/$amd/stubs.o"
	find "$dir/drivers" \( -name '*.o' -o -name '.*.cmd' -o -name '*.ko' -o -name '*.mod*' -o -name .tmp_versions \) -delete
	sed -n 's/^#define LINUX_PACKAGE_ID " \(.*\)"/\1/p' "$headers/include/generated/package.h" >"$dir/version"
}

# build_edited KERNEL+NAME... DIRECTORY: as the driver, of whose source there is a copy already
build_edited() {
	local plain names name
	plain=$(image_path driver "${1%%+*}")
	names=${1#*+}
	driver_source() {
		mkdir -p "$4"
		cp -r "$plain"/{drivers,include} "$4/"
		for name in ${names//+/ }; do
			(cd "$4/drivers/gpu/drm/amd" && perl "-I$EDITS" -MEdit "$EDITS/$name.pl")
		done
	}
	build_driver "${1%%+*}" "$2"
}
