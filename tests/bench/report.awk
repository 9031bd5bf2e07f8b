# SPDX-License-Identifier: GPL-2.0-only
# The table, the goals and the JSON file (-v json=FILE) of "make bench", from the results of in-machine,
# whose contents are -v divide=N times smaller than they are called.
# Ends with status 1 when a goal is missed, 2 when results are missing.

BEGIN {
	title["tiny"] = "64 KiB"
	title["one-gpu"] = "1 GPU x 1 GiB"
	title["two-gpus"] = "2 GPUs x 512 MiB"
	title["one-buffer"] = "256 MiB in 1 buffer"
	title["small-buffers"] = "256 MiB in 4096"
	title["zero-runs"] = "512 MiB, 90 % zeros, by 64 KiB"
	title["zero-pages"] = "128 MiB, 90 % zeros, by 4 KiB"
	gpus["two-gpus"] = 2
	ring_mib = 128
}

$1 == "machine" { criu = $2; kernel = $3; rate = $4; next }
$1 == "overlap" { overlap = $2; overlap_ideal = $3 / rate; next }
$1 == "warm" { warm[$2] = $3; warm_read[$2] = $4; next }
$1 == "still" {
	still[$2] = $3 / 1000 / (($5 > $6 ? $5 : $6) / rate)
	still_rest[$2] = $4 / 1000
	next
}
$1 == "submit" { submit[$2] = $3; next }
$1 == "disk" { disk_alone[$2] = $3; next }

{
	key = $1 " " $2
	keys[++nr] = key
	name[key] = $1; direction[key] = $2
	bytes[key] = $3; most[key] = $4; disk[key] = $5
	content[key] = $6; total[key] = $7; peak[key] = $8
	ideal[key] = (most[key] > disk[key] ? most[key] : disk[key]) / rate
	ratio[key] = content[key] / ideal[key]
}

# One line and one element of the JSON file; a goal without a limit is only told.
function goal(what, value, limit, digits,	met) {
	met = value <= limit
	missed += !met
	printf "  %-58s %8.*f  (at most %.*f)  %s\n", what, digits, value, digits, limit, met ? "met" : "MISSED"
	goals = goals sprintf("%s\n  {\"goal\": \"%s\", \"value\": %.3f, \"limit\": %.3f, \"met\": %s}",
		(goals ? "," : ""), what, value, limit, met ? "true" : "false")
}

function goals_of(what,	key) {
	goal(what ": 1 GPU, time / max(copy, disk)", ratio["one-gpu " what], 1.1, 2)
	goal(what ": 2 GPUs, time / max(copy, disk)", ratio["two-gpus " what], 1.1, 2)
	goal(what ": 4096 small buffers, time / that of one as large",
		content["small-buffers " what] / content["one-buffer " what], 1.3, 2)
	for (key in gpus)
		goal(what ": " gpus[key] " GPUs, growth of criu's memory, MiB",
			(peak[key " " what] - peak["tiny " what]) / 1024, gpus[key] * ring_mib + 16, 0)
	goal(what ": 1 GPU, growth of criu's memory, MiB", (peak["one-gpu " what] - peak["tiny " what]) / 1024,
		ring_mib + 16, 0)
}

function write_json(	i, key) {
	printf "{\"hardware\": \"simulated\", \"criu\": \"%s\", \"kernel\": \"%s\", \"bytes_per_second\": %d,\n", criu, kernel,
		rate >json
	printf " \"disk_alone_bytes_per_second\": {\"write\": %d, \"read\": %d},\n \"results\": [", disk_alone["write"],
		disk_alone["read"] >json
	for (i = 1; i <= nr; i++) {
		key = keys[i]
		printf "%s\n  {\"contents\": \"%s\", \"direction\": \"%s\", \"bytes\": %d, \"disk_bytes\": %d, " \
			"\"content_s\": %.3f, \"criu_s\": %.3f, \"ideal_s\": %.3f, \"ratio\": %.3f, \"peak_kib\": %d}",
			(i > 1 ? "," : ""), title[name[key]], direction[key], bytes[key], disk[key], content[key],
			total[key], ideal[key], ratio[key], peak[key] >json
	}
	printf "],\n \"goals\": [%s]}\n", goals >json
	close(json)
}

END {
	if (nr != 14 || !overlap || length(warm) != 3 || length(still) != 2 || length(submit) != 2) {
		print "bench: " nr + !!overlap + length(warm) + length(still) + length(submit) " results of 22" >"/dev/stderr"
		exit 2
	}
	printf "Simulated GPUs and a disk of %.0f MB/s each, criu %s, Linux %s. The disk alone: %.1f written, %.1f read.\n",
		rate / 1e6, criu, kernel, disk_alone["write"] / 1e6, disk_alone["read"] / 1e6
	print (divide > 1 ? "All contents are " divide " times smaller than they are called.\n" : "")
	printf "%-32s %-8s %8s %8s %9s %9s %7s %8s %9s\n", "contents", "", "MB", "on disk", "contents", "ideal", "ratio",
		"criu", "criu's"
	printf "%-32s %-8s %8s %8s %9s %9s %7s %8s %9s\n", "", "", "", "MB", "s", "s", "", "s", "peak MiB"
	for (i = 1; i <= nr; i++) {
		key = keys[i]
		printf "%-32s %-8s %8.1f %8.1f %9.2f %9.2f %7s %8.2f %9.1f\n", title[name[key]], direction[key],
			bytes[key] / 1e6, disk[key] / 1e6, content[key], ideal[key],
			ideal[key] < 1 ? "" : sprintf("%.2f", ratio[key]), total[key], peak[key] / 1024
	}
	print "\nGoals:"
	goals_of("dump")
	goals_of("restore")
	key = "zero-runs dump"
	goal("dump: 90 % zeros in runs, bytes on disk / bytes", disk[key] / bytes[key], 0.11, 3)
	key = "zero-pages dump"
	printf "  %-58s %8.3f  (no goal: see README)\n", "dump: 90 % zeros in single pages, bytes on disk / bytes",
		disk[key] / bytes[key]
	goal("restore: contents beside as much of criu's, time / one of both", overlap / overlap_ideal, 1.2, 2)
	goal("restore: image in the page cache, time / that from the disk", warm["first"] / warm["cold"], 0.62, 2)
	goal("restore: two from the page cache, bytes read / from the disk",
		(warm_read["first"] + warm_read["second"]) / warm_read["cold"], 0.02, 3)
	for (what in still) {
		goal(what ": 2 GPUs in place, time of copies / max(copy, disk)", still[what], 1.05, 2)
		printf "  %-58s %8.2f\n", what ": seconds beside copies, in which threads stand still", still_rest[what]
	}
	printf "  %-58s %8.1f  (what one slot in the list of a submission saves)\n",
		"submission with a list of 128 MiB, time / with 8 MiB", submit[128] / submit[8]
	write_json()
	exit missed > 0
}
