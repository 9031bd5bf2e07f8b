# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Through an image streamer: pipes, each file once, and the plugin's one after the other
# gpus: 2xmi100
# tier: all

streamer=$top/build/workloads/streamer

# streamer_start capture|serve
streamer_start() {
	"$streamer" "$1" "$images" "$work/store" >"$work/$1.txt" 2>"$work/$1.err" &
	streamer_pid=$!
	wait_until 10 test -S "$images/streamer-$1.sock" || fail "the streamer does not start: $(head -n 1 "$work/$1.err")"
}

streamer_end() {
	wait "$streamer_pid" || fail "streamer: $(head -n 1 "$work/$1.err")"
	[ ! -s "$work/$1.err" ] || fail "streamer: $(head -n 1 "$work/$1.err")"
}

job_start --vram 2M
process_shape >"$work/shape"
images_new
mkdir "$work/store"
streamer_start capture
criu_call dump --stream -t "${job_pids[0]}" || fail "criu dump ended with status $?: $(criu_errors)"
streamer_end capture
expect_gone
[ -z "$(find "$images" -name 'amdgpu-*')" ] || fail "the plugin wrote files beside the stream"
order=$(sed -n 's/^amdgpu-\(pages\|kfd\)-.*/\1/p' "$work/capture.txt" | tr '\n' ' ')
[ "$order" = 'pages pages kfd ' ] || fail "order of the dump: $order"
streamer_start serve
restore --stream
streamer_end serve
job_goes
job_end
