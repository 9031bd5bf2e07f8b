# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Every image of the plugin missing, cut, too long, of another process, with a wrong bit: nothing is restored
# gpus: 1xmi100
# tier: all

job_start "${small[@]}" --seed 2 --buffers 2
dump
other=$images
job_start "${small[@]}" --buffers 1
dump
good=$images
images=$work/images-damaged

# refused WHAT FILE COMMAND...: the command damages the file
refused() {
	local what=$1 file=$images/$2
	shift 2
	rm -rf "$images"
	cp -r "$good" "$images"
	"$@" "$file" || fail "$what ${file##*/}: cannot be done"
	! criu_call restore -d || fail "${file##*/} $what, and the restore succeeded"
	expect_gone
	grep -q 'Error' "$work/$criu_runs-restore.log" || fail "${file##*/} $what: no error line"
	printf '%s %s: %s\n' "${file##*/}" "$what" \
		"$(grep -h 'Error (amdgpu_plugin)' "$work/$criu_runs-restore.log" | tr '\n' ';')" >>"$work/damage.log"
}

halve() {
	truncate -s $(($(stat -c %s "$1") / 2)) "$1"
}

lengthen() {
	echo >>"$1"
}

pipe_instead() {
	rm "$1"
	mkfifo "$1"
}

# spoil BYTE FILE
spoil() {
	flip_bit "$2" "$1"
}

for file in "$good"/amdgpu-*.img; do
	name=${file##*/}
	size=$(stat -c %s "$file")
	refused "is missing" "$name" rm
	refused "is a named pipe" "$name" pipe_instead
	refused "is cut" "$name" halve
	[[ $name != amdgpu-pages-* ]] || refused "is too long" "$name" lengthen
	refused "has a wrong bit at its start" "$name" spoil 9
	refused "has a wrong bit in its middle" "$name" spoil $((size / 2))
	[ ! -e "$other/$name" ] || refused "is another process'" "$name" cp "$other/$name"
done
expect_no_objects

# Two processes, each with two files of its render node: whole images, each of another file.
images=$good
restore
job_end
job_start "${small[@]}" --children 1 --reopen render-first
dump
good=$images
images=$work/images-damaged
for kind in kfd renderD; do
	files=("$good"/amdgpu-"$kind"-*.img)
	for ((i = 0; i < ${#files[@]}; i++)); do
		refused "is another file's" "${files[i]##*/}" cp "${files[i - 1]}"
	done
done
grep -c 'belongs to file' "$work/damage.log" | grep -qx 6 || fail "not all images of other files were refused as such"
while read -r line; do
	# That a file is not there is criu's to say: to the plugin it might be another plugin's.
	[[ $line =~ "is missing" || $line =~ Error\ \(amdgpu_plugin\) ]] || fail "no error line: $line"
	[[ ! $line =~ \;.*Error\ \(amdgpu_plugin\) ]] || fail "several error lines: $line"
done <"$work/damage.log"

# A copy that is not damaged is restored: the copies are not what is wrong.
rm -rf "$images"
cp -r "$good" "$images"
restore
expect_verified
job_end
