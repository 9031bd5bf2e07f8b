# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# A suspended job is a unit of systemd: neither systemctl thaw nor stop lets it run without its memory, which it reads by the CPU all the time
# gpus: 1xmi100
# userland: systemd
# host: changed, by systemd
# tier: all
# seconds: 300

# shellcheck source=tests/e2e/pauses.sh
. "$top/tests/e2e/pauses.sh"

units=/sys/fs/cgroup/e2e-units
job=$work/job

# unit NAME: its file, from the input
unit() {
	{ printf '[Unit]\nDefaultDependencies=no\n'; cat; } >"$work/units/$1"
}

units_write() {
	mkdir -p "$work/units"
	unit e2e.target </dev/null
	unit job.service <<-END
	[Service]
	ExecStart=$gpujob --state $job --vram 1M --extra reads
	TimeoutStopSec=4
	StandardOutput=file:$work/job.log
	StandardError=file:$work/job.log
	END
	# systemctl freeze speaks to systemd by the bus alone.
	unit dbus.socket <<-END
	[Socket]
	ListenStream=/run/dbus/system_bus_socket
	END
	unit dbus.service <<-END
	Requires=dbus.socket
	After=dbus.socket
	[Service]
	Type=notify
	ExecStart=/usr/bin/dbus-daemon --config-file=$work/bus.conf --address=systemd: --nofork --nopidfile --systemd-activation
	END
	cat >"$work/bus.conf" <<-END
	<busconfig>
	<type>system</type>
	<listen>unix:path=/run/dbus/system_bus_socket</listen>
	<policy context="default">
	<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
	</policy>
	</busconfig>
	END
}

# systemd_start: the first process of a pid namespace, with a /run of its own, and nothing but these units
systemd_start() {
	mkdir "$units"
	units_write
	bash -c 'echo $$ >"$1/cgroup.procs"; exec unshare --mount --pid --cgroup --fork --mount-proc bash -c "
		mount -t tmpfs tmpfs /run
		mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
		mkdir -p /run/systemd
		cp -r $2/units /run/systemd/system
		exec env container=e2e /usr/lib/systemd/systemd --system --unit=e2e.target --log-target=console --show-status=no
	"' - "$units" "$work" >"$work/systemd.log" 2>&1 &
	outside=$!
	wait_until 60 systemd_answers || fail "systemd does not start: $(tail -n 3 "$work/systemd.log" | tr '\n' ';')"
	systemctl_do start dbus.service
}

systemd_answers() {
	systemd=$(pgrep -P "$outside" -x systemd) || return 1
	systemctl=(nsenter --target "$systemd" --mount --pid --cgroup systemctl)
	"${systemctl[@]}" is-active e2e.target >"$work/systemctl.out" 2>&1
}

systemctl_do() {
	"${systemctl[@]}" "$@" >"$work/systemctl.out" 2>&1 || fail "systemctl $*: $(<"$work/systemctl.out"); $(tail -n 3 "$work/systemd.log")"
}

unit_is() {
	[ "$("${systemctl[@]}" show -P "$1" job.service)" = "$2" ]
}

systemd_start
engine_start() {
	rm -f "$job"
	systemctl_do start job.service
	wait_until 60 grep -qs '^phase running' "$job" || fail "the unit does not start: $(tail -n 3 "$work/systemd.log")"
	job_pids_find 1
}
engine_pause() { systemctl_do freeze job.service; }
engine_unpause() { systemctl_do thaw job.service; }
engine_is_paused() { unit_is FreezerState frozen; }
engine_stop() { systemctl_do stop job.service; }
engine_end() {
	unit_is Result timeout || fail "the stopped unit ended with $("${systemctl[@]}" show -P Result job.service)"
	systemctl_do reset-failed job.service
}
shows_hold systemd

# A stop that finds it suspended has its effect after the resume: the job ends by itself, with every byte right.
engine_start
group_do suspend
systemctl_do stop --no-block job.service
is_held "stop"
group_do resume
wait_until "$job_limit" no_process "${job_pids[0]}" || fail "the job does not end"
[ "$(state_get "$job" phase)" = "done" ] || fail "the job was killed: $(state_get "$job" phase): $(job_message)"
wait_until 20 unit_is ActiveState inactive || fail "the unit is $("${systemctl[@]}" show -P ActiveState job.service)"
expect_no_objects
kill -KILL "$systemd"
{ wait "$outside" || true; } 2>/dev/null
find "$units" -depth -type d -exec rmdir {} +
