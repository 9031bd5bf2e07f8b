# SPDX-License-Identifier: GPL-2.0-only
# An SVG of bars from the table under a heading of tests/bench/README.md, with colours for light and dark pages.
#     -v section=HEADING -v what=dump|restore|ranks -v title=TITLE -v note=SECOND_LINE
# dump, restore: cells "ours / existing = quotient" of the second or third column; ranks: cells of the second and third.

BEGIN { FS = " *\\| *" }

/^##/ { inside = index($0, "# " section) > 0 }

inside && /^\| / && $3 ~ /^[0-9]/ {
	label[++n] = $2
	if (what == "ranks") {
		first[n] = $3
		second[n] = $4
	} else {
		split(what == "dump" ? $3 : $4, part, / \/ | = /)
		first[n] = part[1]
		second[n] = part[2]
	}
	if (first[n] > max)
		max = first[n]
	if (second[n] > max)
		max = second[n]
}

function text(x, y, anchor, words) {
	printf "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words
}

function bar(y, class, value) {
	printf "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\"/>\n", class, left, y, 440 * value / max
	text(left + 446 * value / max + 6, y + 12, "start", value)
}

END {
	if (!n) {
		print "bars: no table with figures below \"" section "\"" >"/dev/stderr"
		exit 2
	}
	left = 200
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 %d\" width=\"720\" font-family=\"sans-serif\" font-size=\"13\">\n" \
		"<style>text{fill:#24292f}.a{fill:#0969da}.b{fill:#9a6700}" \
		"@media(prefers-color-scheme:dark){text{fill:#e6edf3}.a{fill:#58a6ff}.b{fill:#d29922}}</style>\n", 62 + 46 * n
	text(10, 20, "start", "Simulated hardware: " title)
	if (note)
		text(10, 52 + 46 * n, "start", note)
	printf "<rect class=\"a\" x=\"%d\" y=\"30\" width=\"12\" height=\"12\"/><rect class=\"b\" x=\"%d\" y=\"30\" width=\"12\" " \
		"height=\"12\"/>\n", left, left + 150
	text(left + 18, 41, "start", what == "ranks" ? "dump" : "this plugin")
	text(left + 168, 41, "start", what == "ranks" ? "restore" : "CRIU 4.2.1's plugin")
	for (i = 1; i <= n; i++) {
		text(left - 8, 46 * i + 27, "end", label[i])
		bar(46 * i + 8, "a", first[i])
		bar(46 * i + 24, "b", second[i])
	}
	print "</svg>"
}
