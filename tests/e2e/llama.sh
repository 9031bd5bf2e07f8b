# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Helpers of the scenarios llama-*: Debian's llama.cpp with its backend for HIP, unchanged, says a text of a small model on the
# GPU. What it says makes no sense, and is the same to the letter whenever it is not disturbed.

models=/usr/share/tiny-llama
prompt="the state of the world"

# says NAME MODEL TOKENS: it begins, in a session of its own; the text goes to $work/NAME.text. Sets job_pids.
says() {
	setsid llama-simple -m "$models/$2.gguf" -n "$3" -ngl 99 "$prompt" </dev/null >"$work/$1.text" 2>"$work/$1.err" &
	job_pids=("$!")
	text=$work/$1.text
}

has_said() {
	[ "$(stat -c %s "$text")" -ge "$1" ] || ! alive "${job_pids[0]}"
}

# said BYTES: it has said so much and goes on
said() {
	wait_until 400 has_said "$1" || fail "it says no more than \"$(tail -n 1 "$text")\""
	alive "${job_pids[0]}" || fail "it has ended: $(tail -n 1 "$text"); $(tail -n 1 "${text%.text}.err")"
}

# said_all: it has ended by itself
said_all() {
	wait_until 400 no_process "${job_pids[0]}" || fail "it does not end: $(tail -n 1 "$text")"
	expect_no_objects
}

# undisturbed MODEL TOKENS: what it says then is in $work/undisturbed.text, and $bytes are its length
undisturbed() {
	says undisturbed "$1" "$2"
	said_all
	cp "$text" "$work/undisturbed"
	bytes=$(stat -c %s "$text")
	[ "$bytes" -gt $((2 * ${#prompt})) ] || fail "undisturbed, it says \"$(tail -n 1 "$text")\": $(tail -n 1 "$work/undisturbed.err")"
}

# expect_same_text: to the letter
expect_same_text() {
	cmp -s "$text" "$work/undisturbed" || fail "it says \"$(tail -n 1 "$text")\" and not \"$(tail -n 1 "$work/undisturbed")\""
}

# falls_silent: it is dumped and gone, and has not said all
falls_silent() {
	dump
	said_until=$(stat -c %s "$text")
	[ "$said_until" -lt "$bytes" ] || fail "it had said all before the dump"
	expect_no_objects
}

# goes_on_speaking
goes_on_speaking() {
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	said $((said_until + 1))
}
