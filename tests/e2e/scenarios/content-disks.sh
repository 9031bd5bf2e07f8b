# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Images on ext4 and xfs by direct I/O and on tmpfs through the page cache; a disk that is full in the middle
# gpus: 1xmi100
# tier: all

# images_on TYPE MIB: an empty image directory on a file system of its own
images_on() {
	images_new
	if [ "$1" = tmpfs ]; then
		mount -t tmpfs -o "size=$2M" tmpfs "$images"
		return
	fi
	truncate -s "$2M" "$work/disk-$1-$2"
	"mkfs.$1" -q "$work/disk-$1-$2" >"$work/mkfs.log" 2>&1 || fail "mkfs.$1: $(tail -n 1 "$work/mkfs.log")"
	mount -t "$1" -o loop "$work/disk-$1-$2" "$images"
}

expect_way() {
	grep -q "gpu .*: $1 [0-9]* bytes .* $2\$" "$work/$criu_runs-"*.log || fail "on $type, contents were not $1 $2"
}

modprobe -a loop ext4 xfs
job_start --vram 3M
process_shape >"$work/shape"
images_on ext4 4
! criu_call dump -t "${job_pids[0]}" || fail "criu dump succeeded on a disk of 4 MiB"
grep -q 'amdgpu_plugin: Warning: .*the disk has no room' "$work/$criu_runs-dump.log" || fail "no early warning"
grep -q 'Error (amdgpu_plugin): .*No space left' "$work/$criu_runs-dump.log" || fail "no error: $(criu_errors)"
umount "$images"
expect_right
for type in ext4 xfs tmpfs; do
	case $type in
	tmpfs) way=buffered ;;
	*) way=direct ;;
	esac
	images_on "$type" 320
	criu_call dump -t "${job_pids[0]}" || fail "criu dump ended with status $?: $(criu_errors)"
	expect_way saved "$way"
	expect_gone
	restore
	expect_way restored "$way"
	expect_verified
	umount "$images"
done
expect_shape "$work/shape"
job_end
modprobe -r loop
