# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two workers of vLLM's interface, each with a llama-server, take turns on one GPU by the sleep backend of docs/examples, 20 times
# gpus: 1xmi100
# userland: programs
# tier: all
# seconds: 1500
# memory: 6144

# shellcheck source=tests/e2e/llama.sh
. "$top/tests/e2e/llama.sh"

# The backend suspends the process that it is in. Here that has the engine as its child.
cat >"$work/command" <<-EOF
	#!/bin/sh
	exec "$top/build/amdgpu-checkpoint" "\$1" "\$2" \$(pgrep -P "\$2" -x llama-server)
EOF
chmod 755 "$work/command"
export AMDGPU_CHECKPOINT=$work/command AMDGPU_SUSPEND_DELAY=0.2
workers=()
engines=()
inputs=()

# server N: where it answers
server() {
	echo "http://127.0.0.1:$((8080 + $1))"
}

is_ready() {
	curl -sf "$(server "$1")/health" >/dev/null || ! alive "${workers[$1]}"
}

# worker_start N: and its engine
worker_start() {
	local input
	mkfifo "$work/in-$1"
	exec {input}<>"$work/in-$1"
	inputs[$1]=$input
	(cd "$top" && exec setsid python3 tests/tool/vllm_turns.py worker llama-server -m "$models/Q8_0.gguf" -ngl 99 -np 1 -c 256 \
		--no-warmup --no-ui --offline --port $((8080 + $1))) <"$work/in-$1" >"$work/out-$1" 2>"$work/err-$1" &
	workers[$1]=$!
	disown
	wait_until 200 is_ready "$1" || fail "engine $1 does not become ready: $(tail -n 1 "$work/err-$1")"
	engines[$1]=$(pgrep -P "${workers[$1]}" -x llama-server) || fail "worker $1 has no engine: $(tail -n 1 "$work/err-$1")"
}

# asks N: what the engine answers is in $answer
asks() {
	curl -sf --max-time 200 -d '{ "prompt": "'"$prompt"'", "n_predict": 2, "temperature": 0, "cache_prompt": true }' \
		"$(server "$1")/completion" >"$work/answer.json" || fail "$turn: engine $1: curl ended with status $?"
	answer=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["content"])' <"$work/answer.json")
}

has_answered() {
	[ "$(wc -l <"$work/out-$1")" -ge "$2" ]
}

# tells N WORD: the worker answers
tells() {
	local lines
	lines=$(wc -l <"$work/out-$1")
	echo "$2" >&"${inputs[$1]}"
	wait_until 60 has_answered "$1" $((lines + 1)) || fail "$turn: worker $1 does not answer to $2: $(tail -n 1 "$work/err-$1")"
}

# sleeps N: until its memory is free
sleeps() {
	tells "$1" sleep
	tool_run state --until suspended --wait 60 "${workers[$1]}" "${engines[$1]}" ||
		fail "$turn: worker $1 is not suspended: $(<"$work/tool.out") $(tail -n 2 "$work/err-$1")"
	expect_vram_below $((idle + vram / 5))
}

# wakes N: as the backend's text says
wakes() {
	tool_run resume "${workers[$1]}" "${engines[$1]}" || fail "$turn: resume: $(<"$work/tool.out")"
	tells "$1" wake
	[[ $(tail -n 1 "$work/out-$1") == wake*RUNNING ]] || fail "$turn: worker $1 says: $(tail -n 1 "$work/out-$1")"
}

turn="at the beginning"
idle=$(vram_used)
worker_start 0
asks 0
asks 0
undisturbed=$answer
[ "$(wc -w <<<"$undisturbed")" -eq 2 ] || fail "it answers \"$undisturbed\""
vram=$(($(vram_used) - idle))
sleeps 0
worker_start 1
asks 1
for ((n = 0; n < 20; n++)); do
	turn="turn $n"
	here=$(((n + 1) % 2))
	asks "$here"
	[ "$answer" = "$undisturbed" ] || fail "$turn: engine $here answers \"$answer\" and not \"$undisturbed\""
	sleeps "$here"
	wakes $((1 - here))
done
wakes "$here"
kill "${engines[@]}" "${workers[@]}"
for pid in "${engines[@]}" "${workers[@]}"; do
	wait_until 60 no_process "$pid" || fail "process $pid does not end"
done
