# SPDX-License-Identifier: GPL-2.0-only
# An SVG of bars over time from the lines "BEGIN END WORDS" of phases.awk, with colours for light and dark pages.
#     -v title=TITLE

/^#/ { versions = substr($0, 3); next }

{
	begin[++n] = $1
	finish[n] = $2
	sub(/^[^ ]+ [^ ]+ /, "")
	words[n] = $0
	class[n] = /^plugin/ ? "a" : "b"
	if (finish[n] > end)
		end = finish[n]
}

function text(x, y, anchor, content) {
	printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, content
}

function x(seconds) { return left + width * seconds / end }

END {
	if (!n) {
		print "spans: no phases" >"/dev/stderr"
		exit 2
	}
	left = 330; top = 40; width = 420; bottom = top + 26 * n
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 %d\" width=\"800\" font-family=\"sans-serif\" font-size=\"12\">\n" \
		"<style>text{fill:#24292f}.a{fill:#0969da}.b{fill:#9a6700}@media(prefers-color-scheme:dark){text{fill:#e6edf3}" \
		".a{fill:#58a6ff}.b{fill:#d29922}}</style>\n", bottom + 30
	text(10, 20, "start", "Simulated hardware: " title " (" versions "), seconds")
	step = end > 12 ? 5 : end > 4 ? 1 : 0.5
	for (at = 0; at <= end; at += step) {
		printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#888\" stroke-opacity=\"0.4\"/>\n", x(at), x(at), top, bottom
		text(x(at), bottom + 16, "middle", at)
	}
	for (i = 1; i <= n; i++) {
		text(left - 8, top + 26 * i - 9, "end", words[i])
		wide = x(finish[i]) - x(begin[i])
		printf "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\"/>\n", class[i], x(begin[i]), top + 26 * i - 21,
			(wide < 1 ? 1 : wide)
	}
	print "</svg>"
}
