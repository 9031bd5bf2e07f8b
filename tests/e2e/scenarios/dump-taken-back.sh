# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Another plugin has taken the job's /dev/kfd: criu 4.3 takes its dump back, with what it has done to connections and links of files
# gpus: 1xmi100
# userland: experimental
# tier: all

# The other side of the connection: for each line it sends a byte, and says how many are not received after 10 s at most.
coproc other { exec python3 -c '
import fcntl, socket, struct, sys, termios, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
def waiting():
	return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"1234"))[0]
for line in sys.stdin:
	connection.send(b"x")
	end = time.monotonic() + 10
	while waiting() and time.monotonic() < end:
		time.sleep(0.05)
	print(waiting(), flush=True)
'; }
other_pid=$other_PID

expect_connected() {
	local waiting
	echo >&"${other[1]}"
	read -r waiting <&"${other[0]}"
	[ "$waiting" = 0 ] || fail "the job's connection is cut off: $waiting bytes are not received"
}

# The other plugin is asked first: that which criu finds first.
mkdir "$work/plugins"
cp "$top/build/workloads/other_plugin.so" "$top/amdgpu_plugin.so" "$work/plugins/"
if [ "$(find "$work/plugins" -name '*.so' -printf '%f\n' -quit)" != other_plugin.so ]; then
	rm "$work/plugins"/*
	cp "$top/amdgpu_plugin.so" "$work/plugins/"
	cp "$top/build/workloads/other_plugin.so" "$work/plugins/"
fi

read -r port <&"${other[0]}"
ip link set lo up
# A file whose name is gone, and which has another one: criu makes a link for it.
setsid bash -c 'exec 9<>"/dev/tcp/127.0.0.1/$1" 8>"$2/name" && ln "$2/name" "$2/other-name" && rm "$2/name" && exec "${@:3}"' \
	- "$port" "$work" "$gpujob" --state "$job" "${small[@]}" </dev/null >"$job.log" 2>&1 &
job_pids=("$!")
disown
wait_until 60 states_written 2>/dev/null || fail "the job does not compute"
expect_progress
job_picture
expect_connected

export OTHER_PLUGIN_DEVICE=/dev/kfd
dump_refused -L "$work/plugins" --tcp-established --link-remap
expect_one_error 'has not asked for the device files of 1 of 1 processes'
grep -q 'Running iptables\|Running nft' "$work/$criu_runs-dump.log" || fail "criu has not locked the connection"
grep -qa 'link_remap' "$images"/*.img || fail "criu has made no link"
links=$(find "$work" -name 'link_remap*')
[ -z "$links" ] || fail "criu leaves links: $links"
expect_connected
expect_unharmed
job_end
kill "$other_pid"
{ wait "$other_pid" || true; } 2>/dev/null
expect_no_objects
