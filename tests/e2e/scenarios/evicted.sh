# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A graphics program takes the VRAM away again and again while the job is dumped and restored
# gpus: 1xmi100-256m
# kernels: each

# evictions: bytes that the driver has moved since it was loaded
evictions() {
	cat /sys/class/kfd/kfd/proc/*/stats_*/evicted_ms 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

was_evicted() {
	[ "$(evictions)" -gt 0 ]
}

pressure_round() {
	[ "$(grep -c round "$work/pressure.log")" -gt "$1" ]
}

# evicted: how often the driver has stopped the job's queues and not let them run again
evicted() {
	awk '/^kfd/ { print $NF }' "$clients_file"
}

# A dump does that, too: two times are one for memory as well.
watch_evicted() {
	while kill -0 $$; do
		evicted
	done
}

job_start --vram 128M
"$top/build/workloads/pressure" 160 128 >"$work/pressure.log" 2>&1 &
pressure=$!
wait_until 60 pressure_round 1 || fail "the graphics program does not run: $(tail -n 1 "$work/pressure.log")"
wait_until 60 was_evicted || fail "the job was not evicted, VRAM is not under pressure"
process_shape >"$work/shape"
watch_evicted >"$work/evicted" 2>/dev/null &
watch=$!
dump_at_once
kill "$watch"
grep -q '[^01]' "$work/evicted" || fail "while it was dumped, the job was not evicted"
expect_gone
# The driver makes room where the graphics program has it.
KFD_VRAM_SIZE_CHECK=0 restore
job_goes
alive "$pressure" || fail "the graphics program ended: $(tail -n 1 "$work/pressure.log")"
kill "$pressure"
wait "$pressure" || true
job_end
