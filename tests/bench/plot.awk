# SPDX-License-Identifier: GPL-2.0-only
# An SVG of what engines and disk did over time, from the samples of watch.c, with colours for light and dark pages.
#     -v name=TITLE -v limit=MB/s; a line "# WORDS" in the samples adds words to the title

/^#/ { name = name " (" substr($0, 3) ")"; next }

{ t[++n] = $1; engine[n] = $2; disk[n] = $3 }

# The points of a line, MB/s between two samples that are at least half a second apart: their number
function points(bytes, at, speeds,	i, from, nr) {
	from = 1
	nr = 0
	for (i = 2; i <= n; i++) {
		if (t[i] - t[from] < 0.5 && i < n)
			continue
		at[++nr] = (t[i] + t[from]) / 2
		speeds[nr] = (bytes[i] - bytes[from]) / 1e6 / (t[i] - t[from])
		if (speeds[nr] > scale)
			scale = limit / 2 * (int(speeds[nr] / (limit / 2)) + 1)
		from = i
	}
	return nr
}

function x(seconds) { return left + width * seconds / end }
function y(speed) { return top + height * (1 - speed / scale) }

function text(at_x, at_y, anchor, color, words) {
	printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", at_x, at_y, anchor, color, words
}

function line(color, nr, at, speeds,	i) {
	printf "<polyline class=\"line %s\" points=\"", color
	for (i = 1; i <= nr; i++)
		printf "%.1f,%.1f ", x(at[i]), y(speeds[i])
	print "\"/>"
}

END {
	left = 60; top = 56; width = 700; height = 240
	end = t[n] > 0 ? t[n] : 1
	scale = limit * 1.5
	nr_engine = points(engine, engine_at, engine_speeds)
	nr_disk = points(disk, disk_at, disk_speeds)
	step = end > 40 ? 10 : end > 16 ? 5 : 1
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 330\" width=\"800\" font-family=\"sans-serif\" " \
		"font-size=\"12\">\n<style>.black{fill:#24292f}.gpu{fill:#c03000;stroke:#c03000}.disk{fill:#0050b0;stroke:#0050b0}" \
		"polyline.line{fill:none;stroke-width:2}text.gpu,text.disk{stroke:none}@media(prefers-color-scheme:dark){.black{fill:#e6edf3}" \
		".gpu{fill:#ff8050;stroke:#ff8050}.disk{fill:#58a6ff;stroke:#58a6ff}polyline.line{fill:none}text.gpu,text.disk{stroke:none}}</style>\n"
	text(left, 22, "start", "black", "Simulated hardware: " name ", MB/s over seconds")
	text(left + width - 130, 38, "end", "gpu", "copied by the GPUs")
	text(left + width, 38, "end", "disk", "disk transfers")
	for (speed = 0; speed <= scale; speed += limit / 2) {
		printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#888\" stroke-opacity=\"0.4\"/>\n", left, left + width, y(speed),
			y(speed)
		text(left - 6, y(speed) + 4, "end", "black", speed)
	}
	for (at = 0; at <= end; at += step)
		text(x(at), top + height + 18, "middle", "black", at)
	line("gpu", nr_engine, engine_at, engine_speeds)
	line("disk", nr_disk, disk_at, disk_speeds)
	print "</svg>"
}
