# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Helpers of the scenarios llama-*: Debian's llama.cpp with its backend for HIP, unchanged, says a text of a small model on the
# GPU. What it says makes no sense, and is the same to the letter whenever it is not disturbed.
#
# It makes a HIP graph after some words, and forgets one that was not used for 10 s (ggml_backend_cuda_context::cuda_graph()).
# Where it is stopped for so long while it makes one, by whatever, it loses it in the middle and ends itself. So it is caught when
# it has said six words since it began or went on, or it has no graphs: GGML_CUDA_DISABLE_GRAPHS=1.

models=/usr/share/tiny-llama
prompt="the state of the world"

# says NAME MODEL WORDS: it begins, in a session of its own; the text goes to $work/NAME.text. Sets job_pids.
says() {
	text=$work/$1.text
	: >"$text"
	setsid llama-simple -m "$models/$2.gguf" -n "$3" -ngl 99 "$prompt" </dev/null >"$text" 2>"$work/$1.err" &
	job_pids=("$!")
	disown # nobody says that it was killed
}

# words: how many it has said; the prompt has no spaces
words() {
	tr -dc ' ' <"$text" | wc -c
}

has_said() {
	[ "$(words)" -ge "$1" ] || ! alive "${job_pids[0]}"
}

# said WORDS: it has said so many and goes on
said() {
	wait_until 400 has_said "$1" || fail "it says no more than \"$(tail -n 1 "$text")\""
	alive "${job_pids[0]}" || fail "it has ended: $(tail -n 1 "$text"); $(tail -n 1 "${text%.text}.err")"
}

# said_all: it has ended by itself
said_all() {
	wait_until 400 no_process "${job_pids[0]}" || fail "it does not end: $(tail -n 1 "$text")"
	expect_no_objects
}

# undisturbed MODEL WORDS: what it says then is in $work/undisturbed-MODEL.text. What another scenario of this boot has heard is
# not said again.
undisturbed() {
	local heard=/tmp/llama-$1.text
	text=$heard
	if [ ! -e "$heard" ] || [ "$(words)" -lt "$2" ]; then
		says "undisturbed-$1" "$1" "$2"
		said_all
		[ "$(words)" -eq "$2" ] || fail "undisturbed, it says \"$(tail -n 1 "$text")\": $(tail -n 1 "${text%.text}.err")"
		cp "$text" "$heard"
	fi
	cut -d ' ' -f "1-$(($2 + 1))" "$heard" >"$work/undisturbed-$1.text"
}

# expect_same_text NAME MODEL: NAME has said what the model says undisturbed, to the letter
expect_same_text() {
	cmp -s "$work/$1.text" "$work/undisturbed-$2.text" ||
		fail "it says \"$(tail -n 1 "$work/$1.text")\" and not \"$(tail -n 1 "$work/undisturbed-$2.text")\""
}

# falls_silent: it is dumped and gone, and has not said all
falls_silent() {
	dump
	said_until=$(words)
	expect_no_objects
}

# goes_on_speaking
goes_on_speaking() {
	criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
	said $((said_until + 1))
}
