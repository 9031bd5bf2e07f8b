# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What all scripts of the test machine share: messages, the cache of prepared images and its lock, and where
# packages come from. Sourced, never run. An image is a directory CACHE/KIND-NAME-KEY; KEY is a hash of its recipe,
# so that a changed recipe makes a new image. It is built under a temporary name and renamed when complete.

VM_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034
TREE=$(cd -- "$VM_DIR/../.." && pwd)
CACHE=${CRIU_AMDGPU_CACHE:-/var/cache/criu-amdgpu}

# shellcheck source=recipes.sh
. "$VM_DIR/recipes.sh"
# shellcheck source=images.sh
. "$VM_DIR/images.sh"

note() {
	printf 'vm: %s\n' "$*" >&2
}

# die STATUS MESSAGE...
die() {
	local status=$1
	shift
	printf 'vm: error: %s\n' "$*" >&2
	exit "$status"
}

# need_root STATUS
need_root() {
	[ "$(id -u)" = 0 ] || die "$1" "preparing and starting the test machine needs root"
}

now() {
	printf '%s\n' "$EPOCHREALTIME"
}

# elapsed START: seconds since then. Some languages write the fraction with a comma.
elapsed() {
	awk -v a="${1/,/.}" -v b="${EPOCHREALTIME/,/.}" 'BEGIN { printf "%.1f", b - a }'
}

# step NAME COMMAND...: run it and say how long it took. Status of COMMAND; errexit does not reach into it.
step() {
	local name=$1 start
	shift
	start=$(now)
	printf 'vm: %s ...\n' "$name" >&2
	"$@" || return
	printf 'vm: %s: done in %s s\n' "$name" "$(elapsed "$start")" >&2
}

# The archive that this machine's apt is set up for: "URI" of its main Debian entry.
mirror_uri() {
	local uri
	if [ -n "${CRIU_AMDGPU_MIRROR:-}" ]; then
		printf '%s\n' "$CRIU_AMDGPU_MIRROR"
		return
	fi
	# Template variables of apt, not of the shell. Security and third-party archives do not carry whole suites.
	uri=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)/$(LABEL)' 'Created-By: Packages' 'Component: main' |
		awk '$2 == "Debian/Debian" { print $1; exit }')
	if [ -z "$uri" ]; then
		note "apt knows no Debian archive: run apt-get update, or set CRIU_AMDGPU_MIRROR to one's address"
		return 1
	fi
	printf '%s\n' "$uri"
}

# Options that let apt of another root or suite reach the archive the way the machine's apt does, with patience.
apt_proxy_options() {
	local name value
	echo 'Acquire::Retries "3";'
	for name in Acquire::http::Proxy Acquire::https::Proxy; do
		value=
		eval "$(apt-config shell value "$name")"
		[ -z "$value" ] || printf '%s "%s";\n' "$name" "$value"
	done
}

# image_path KIND NAME: where the image is or will be. The recipe is the table row and the functions that build it.
image_path() {
	local kind=$1 name=$2 row key
	row=$("recipe_$kind" "$name") || return
	key=$({ echo "$row"; declare -f "$(image_builder "$kind" "$name")" root_make root_options; } | sha256sum) || return
	printf '%s/%s-%s-%s\n' "$CACHE" "$kind" "$name" "${key:0:12}"
}

# image_builder KIND NAME: the function that builds it, which may be one for this image alone
image_builder() {
	if declare -F "build_$1_$2" >/dev/null; then
		echo "build_$1_$2"
	else
		echo "build_$1"
	fi
}

# image_ensure KIND NAME: path of the complete image, which is built when it is not there yet.
image_ensure() {
	local path
	path=$(image_path "$1" "$2") || return
	[ -d "$path" ] || image_build "$1" "$2" "$path" >&2 || return
	printf '%s\n' "$path"
}

image_build() {
	local kind=$1 name=$2 path=$3 status=0
	need_root 1
	mkdir -p -- "$CACHE/log" || return
	exec 8>"$CACHE/lock"
	if ! flock -n 8; then
		note "another process prepares images in $CACHE: waiting for it"
		flock 8
	fi
	if [ ! -d "$path" ]; then
		rm -rf --one-file-system -- "$CACHE"/tmp.*
		step "prepare $kind $name (about ${PREPARE_SECONDS[$kind]:-30} s, once)" \
			image_build_locked "$kind" "$name" "$path" || status=$?
	fi
	exec 8>&-
	return "$status"
}

# The builder gets a mount name space of its own: whatever it mounts below TMP is gone when it is. It has the lock
# too, so that nobody starts anew while it goes on after we were killed.
image_build_locked() {
	local kind=$1 name=$2 path=$3 tmp log
	tmp=$CACHE/tmp.$kind-$name
	log=$CACHE/log/$kind-$name.log
	# The expansions are those of the inner shell.
	if ! unshare --mount --propagation private -- \
		bash -c 'set -eu -o pipefail; . "$1/lib.sh"; "$(image_builder "$2" "$3")" "$3" "$4"' build "$VM_DIR" "$kind" "$name" "$tmp" \
		</dev/null >"$log" 2>&1; then
		{ grep -E '^E: |^Err:|: Depends: |^suite |[Nn]o space left' "$log" || tail -n 12 "$log"; } |
			tail -n 8 | cut -c1-200 | sed 's/^/    /' >&2
		note "error: preparing $kind $name failed; all messages are in $log"
		rm -rf --one-file-system -- "$tmp"
		return 1
	fi
	mv -T -- "$tmp" "$path" || return
	image_drop_stale
}

# Removes what no recipe of this tree asks for any more. Machines hold a shared lock on the images they use: those stay.
image_drop_stale() {
	local old kind name
	for old in "$CACHE"/*-*-*/; do
		old=${old%/}
		IFS=- read -r kind name _ <<<"${old##*/}"
		[ "$old" != "$(image_path "$kind" "$name" 2>/dev/null)" ] || continue
		flock -n -x "$old" -c true || continue
		note "removing $old, which no recipe asks for any more"
		rm -rf --one-file-system -- "$old"
	done
}

# image_hold PATH: keep the image from being removed for as long as this process or a child of it runs.
image_hold() {
	local fd
	exec {fd}<"$1"
	flock -s "$fd"
}

# kernel_run KERNEL-IMAGE NAME=DIRECTORY... -- COMMAND ARG...: in the kernel's build root, where each DIRECTORY is to be
# seen at /mnt/NAME (with NAME:ro, read-only). The mounts are gone with the name space that they are made in.
kernel_run() {
	# The expansions are those of the inner shell.
	# shellcheck disable=SC2016
	unshare --mount --propagation private -- bash -c '
		set -eu
		root=$1/root
		shift
		mount -t tmpfs tmpfs "$root/mnt"
		while [ "$1" != -- ]; do
			name=${1%%=*}
			mkdir "$root/mnt/${name%:ro}"
			mount --bind "${1#*=}" "$root/mnt/${name%:ro}"
			[ "$name" = "${name%:ro}" ] || mount -o remount,bind,ro "$root/mnt/${name%:ro}"
			shift
		done
		shift
		mount -t proc proc "$root/proc"
		mount -t tmpfs tmpfs "$root/tmp"
		exec chroot "$root" "$@"
	' kernel_run "$@"
}

# kernel_make KERNEL-IMAGE NAME=DIRECTORY... -- ARG...: kbuild there. Without vmlinux there is no BTF: no news for anyone.
kernel_make() {
	local kernel=$1 mounts=()
	shift
	while [ "$1" != -- ]; do
		mounts+=("$1")
		shift
	done
	kernel_run "$kernel" "${mounts[@]}" -- make -s -C "/lib/modules/$(cat "$kernel/version")/build" "-j$(nproc)" \
		"${@:2}" 2>&1 | sed '/Skipping BTF generation/d'
}

host_qemu_major() {
	qemu-system-x86_64 --version | sed -n '1s/.*version \([0-9]*\).*/\1/p'
}

# QEMU 7.2 computes cmpxchg16b wrongly when a machine has several processors.
host_qemu_is_old() {
	[ "$(host_qemu_major)" -lt 9 ]
}
