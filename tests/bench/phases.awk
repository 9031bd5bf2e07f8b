# SPDX-License-Identifier: GPL-2.0-only
# What a dump or a restore did when, from criu's log at -v4: lines "BEGIN END WORDS", in seconds.
#     -v what=dump|restore -v versions=WORDS for the first line

match($0, /^\([0-9]+\.[0-9]+\)/) { now = substr($0, 2, RLENGTH - 2) + 0 }

# The first and the last line that match
function mark(name) {
	if (!(name in first))
		first[name] = now
	last[name] = now
}

/GPU queues stopped/ { mark("queues") }
/ becomes gpu 0x/ { mark("chosen") }
/GPU state of pid [0-9]+ restored/ { mark("state") }
/Dumping pages \(type/ { mark("pages") }
/Writing image inventory/ { mark("inventory") }
/: Opening 0x.* vma/ { mark("mappings") }
/ Restored$/ { mark("memory") }
/amdgpu_plugin: (saved|restored) [0-9]+ process/ { mark("done") }

/amdgpu_plugin: gpu 0x[0-9a-f]+: (saved|restored) / {
	match($0, /bytes in [0-9.]+ s/)
	seconds = substr($0, RSTART + 9, RLENGTH - 11)
	if (!copied++ || now - seconds < copy_begin)
		copy_begin = now - seconds
	copy_end = now
}

function phase(begin, end, words) { printf "%.3f %.3f %s\n", begin, end, words }

END {
	if (!copied || !("done" in last)) {
		print "phases: the log has no lines of the plugin's copies" >"/dev/stderr"
		exit 2
	}
	print "# " versions
	if (what == "dump") {
		phase(0, last["queues"], "criu stops the process, the plugin its GPU queues")
		phase(last["queues"], copy_begin, "criu: files and mappings; plugin: GPU state")
		phase(copy_begin, copy_end, "plugin: contents of the GPUs")
		phase(first["pages"], last["inventory"], "criu: memory of the process")
		phase(last["inventory"], last["done"], "plugin: all is closed, queues run again")
	} else {
		phase(0, first["chosen"], "criu: processes are made; plugin: GPUs are chosen")
		phase(first["chosen"], last["state"], "plugin: buffers, queues and events are made")
		phase(last["state"], last["memory"], "criu: memory of the process")
		phase(copy_begin, copy_end, "plugin: contents of the GPUs")
		phase(copy_end, last["done"], "plugin: queues run")
	}
}
