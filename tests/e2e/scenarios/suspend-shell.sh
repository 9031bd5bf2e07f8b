# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A foreground job of an interactive shell is suspended and resumed, before and after Ctrl-Z, fg and bg; it reads VRAM by the CPU all the time
# gpus: 1xmi100
# tier: all

screen=$work/screen

# types TEXT: at the terminal
types() {
	# shellcheck disable=SC2059
	printf "$1" >&5
}

# expect_prompt: the shell is back; it numbers its prompts by what it has run
expect_prompt() {
	prompts=$((prompts + 1))
	types "echo at''prompt $prompts\\n" # what is typed is shown, too
	wait_until 20 grep -qs "atprompt $prompts" "$screen" || fail "$1: the shell has no prompt: $(tail -n 3 "$screen" | tr -d '\r' | tr '\n' ';')"
}

is_in_state() {
	grep -q "^State:.[$1]" "/proc/${job_pids[0]}/status"
}

# is_foreground: the terminal's process group is the job's
is_foreground() {
	[ "$(ps -o tpgid= -p "${job_pids[0]}" | tr -d ' ')" = "${job_pids[0]}" ]
}

mkfifo "$work/keys"
script -q -f -c "bash --norc --noprofile -i" "$screen" <"$work/keys" >/dev/null 2>&1 &
terminal=$!
exec 5>"$work/keys"
prompts=0
expect_prompt "at the begin"

# shell_job ARG...: in the foreground
shell_job() {
	rm -f "$job"
	types "'$gpujob' --state '$job' $*\\n"
	wait_until 60 grep -qs '^phase running' "$job" || fail "the job does not start: $(tail -n 3 "$screen")"
	job_pids=("$(state_get "$job" pid)")
	is_foreground || fail "the job is not in the foreground"
}

shell_job_end() {
	kill -TERM "${job_pids[0]}"
	wait_until "$job_limit" no_process "${job_pids[0]}" || fail "the job does not end: $(state_get "$job" phase)"
	[ "$(state_get "$job" phase)" = "done" ] || fail "the job's end: $(job_message)"
}

shell_job --vram 1M --extra reads

# Nothing is typed meanwhile: the shell notices nothing.
job_suspend
job_resume
is_foreground || fail "the job is in the background after a resume"
expect_right

# Ctrl-Z before, fg while it is suspended.
types '\032'
wait_until 10 is_in_state T || fail "Ctrl-Z does not stop the job"
expect_prompt "Ctrl-Z"
job_suspend
is_held "Ctrl-Z, suspend"
types 'fg\n'
is_held "Ctrl-Z, suspend, fg"
job_resume
expect_right
is_foreground || fail "fg of a suspended job: it is in the background after the resume"

# Ctrl-Z before and fg after: it stays stopped for the time between.
types '\032'
wait_until 10 is_in_state T || fail "Ctrl-Z does not stop the job"
job_suspend
job_resume
is_in_state T || fail "a job that Ctrl-Z has stopped runs after a resume"
expect_prompt "Ctrl-Z, suspend, resume"
types 'fg\n'
expect_right

# Ctrl-Z while it is suspended has its effect afterwards, and bg lets it run.
job_suspend
types '\032'
is_held "suspend, Ctrl-Z"
job_resume
wait_until 10 is_in_state T || fail "Ctrl-Z of a suspended job is lost"
expect_prompt "suspend, Ctrl-Z, resume"
job_suspend
types 'bg\n'
is_held "Ctrl-Z, suspend, bg"
job_resume
expect_right
! is_foreground || fail "bg of a suspended job: it is in the foreground"
types 'fg\n'
wait_until 10 is_foreground || fail "fg has no effect"
expect_right
shell_job_end

# The shell sees that a job with one thread stops. Then it is in the background.
shell_job --vram 1M
job_suspend
kill -CONT "${job_pids[0]}"
is_held "one thread, SIGCONT"
job_resume
expect_right
types 'fg\n'
wait_until 10 is_foreground || fail "one thread: fg has no effect"
expect_right
shell_job_end
types 'exit\n'
exec 5>&-
wait "$terminal"
