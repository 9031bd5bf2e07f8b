# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2317
# containerd with runc, by ctr: checkpoints in a row, under another name, a GPU that two share, failures
# gpus: 2xmi100
# userland: engines
# host: changed, by the engine and its daemons
# memory: 6000
# seconds: 900

# shellcheck source=tests/e2e/engines.sh
. "$top/tests/e2e/engines.sh"

image_make
cdi_make 128 129
containerd_setup

ok run ctr run -d --device amd.com/gpu=0 "$image" one gpujob --state "$inside_state" --vram 1M
job_wait "$(ctr_pid one)" 1
for ((i = 0; i < 3; i++)); do
	ok checkpoint ctr task checkpoint one
	expect_progress
done
ok checkpoint ctr container checkpoint --rw --image --task one localhost:5000/job:copy
expect_progress
ctr_end one
expect_no_objects
ok restore ctr container restore --rw --live two localhost:5000/job:copy
job_wait "$(ctr_pid two)" 1
expect_right
ok exec ctr task exec --exec-id more two gpujob --state /run/another --background --vram 64K
expect_another "$(ctr_pid two)"
ctr_end two
expect_no_objects

# By paths. The log that containerd names has the reason.
engine_start() {
	ok run ctr run -d --device /dev/kfd --device /dev/dri/renderD128 "$image" "$@"
}
engine_pid() { ctr_pid "$1"; }
engine_save() {
	ok checkpoint ctr container checkpoint --rw --image --task "$1" "localhost:5000/job:$1"
	ctr_end "$1"
}
engine_try() { call checkpoint ctr task checkpoint "$1"; }
engine_reason() { log_reason; }
engine_back() { ok restore ctr container restore --rw --live "$1" "localhost:5000/job:$1"; }
engine_end() { ctr_end "$1"; }
engine_refuses
engine_shares
