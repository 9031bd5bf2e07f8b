# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debian's llama-server answers as before when it was suspended, and when it was dumped and restored with the socket at which it listens
# gpus: 1xmi100
# userland: programs
# tier: all
# seconds: 1200
# memory: 6144

# shellcheck source=tests/e2e/llama.sh
. "$top/tests/e2e/llama.sh"

server=http://127.0.0.1:8080

is_ready() {
	curl -sf "$server/health" >/dev/null || ! alive "${job_pids[0]}"
}

# asks NAME: what it answers is in $work/NAME
asks() {
	curl -sf --max-time 400 -d '{ "prompt": "'"$prompt"'", "n_predict": 3, "temperature": 0, "cache_prompt": false }' \
		"$server/completion" >"$work/$1.json" || fail "$1: curl ended with status $?: $(tail -n 1 "$work/server.err")"
	python3 -c 'import json, sys; print(json.load(sys.stdin)["content"])' <"$work/$1.json" >"$work/$1"
}

expect_same_answer() {
	asks "$1"
	cmp -s "$work/$1" "$work/undisturbed" || fail "$1, it answers \"$(<"$work/$1")\" and not \"$(<"$work/undisturbed")\""
}

setsid llama-server -m "$models/Q8_0.gguf" -ngl 99 -np 1 -c 256 --no-warmup --no-ui --offline --port 8080 </dev/null \
	>"$work/server.err" 2>&1 &
job_pids=("$!")
disown
wait_until 200 is_ready || fail "it does not become ready: $(tail -n 1 "$work/server.err")"
asks undisturbed
[ "$(wc -w <"$work/undisturbed")" -eq 3 ] || fail "it answers \"$(<"$work/undisturbed")\""
vram=$(vram_used)
job_suspend
expect_vram_below $((vram / 10))
job_resume
expect_same_answer resumed
dump
expect_no_objects
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
expect_same_answer restored
kill "${job_pids[0]}"
wait_until 60 no_process "${job_pids[0]}" || fail "it does not end"
expect_no_objects
