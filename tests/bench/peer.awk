# SPDX-License-Identifier: GPL-2.0-only
# The table of "make bench-peer" from the results of peer-in-machine; see README.md here. Variables: rate, divide.
# Ends with status 2 when results are missing.

BEGIN {
	title["nothing"] = "64 KiB"
	title["one-buffer"] = "one buffer of " 256 / divide " MiB"
	title["two-gpus"] = "two GPUs, " 128 / divide " MiB each"
	title["small-buffers"] = 1024 / divide " buffers of 64 KiB"
	title["zeros"] = 128 / divide " MiB, 90 % zeros"
}

$1 == "machine" { criu = $2; kernel = $3; next }

{
	key = $1 " " $3
	if (!(key in seen)) {
		seen[key] = 1
		keys[++nr] = key
		name[key] = $1
		what[key] = $3
	}
	results++
	# A dump is done when its data is on the disk.
	add(key SUBSEP $2, $4 + ($3 == "dump" ? $5 : 0))
	peak[key, $2] = $6 / 1024
	bytes[key, $2] = $7 / 1e6
}

# add KEY SECONDS: seconds[KEY] is the median of those that were added
function add(key, value,    i) {
	for (i = ++times[key]; i > 1 && sorted[key, i - 1] > value; i--)
		sorted[key, i] = sorted[key, i - 1]
	sorted[key, i] = value
	seconds[key] = sorted[key, int((times[key] + 1) / 2)]
}

# column VALUES KEY FORMAT: "ours / existing  ratio"
function column(values, key, format) {
	return sprintf(format " / " format "  %4.2f", values[key, "ours"], values[key, "existing"],
		values[key, "existing"] ? values[key, "ours"] / values[key, "existing"] : 0)
}

END {
	if (results != 36) {
		print "bench: " results + 0 " results of 36" >"/dev/stderr"
		exit 2
	}
	printf "Ours / the plugin of CRIU 4.2.1, and the quotient. Engines of a GPU and disk: %d MB/s each; criu %s, Linux %s.\n",
		rate, criu, kernel
	print (divide > 1 ? "All contents are " divide " times smaller than they are called.\n" : "")
	printf "%-24s %-8s %-22s %-22s %-22s\n", "contents", "", "seconds, synced", "peak MiB of criu", "MB on disk"
	for (i = 1; i <= nr; i++) {
		key = keys[i]
		printf "%-24s %-8s %-22s %-22s %-22s\n", title[name[key]], what[key], column(seconds, key, "%.2f"),
			column(peak, key, "%.0f"), column(bytes, key, "%.1f")
	}
}
