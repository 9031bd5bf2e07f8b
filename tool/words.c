// SPDX-License-Identifier: GPL-2.0-only
/*
 * What agents ask for in the words of NVIDIA's cuda-checkpoint: toggle, get-state; and state, which waits.
 * The states have the same meanings, as far as there is one (amdgpu-checkpoint(8)). Nothing here touches a process.
 */
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "stopped/stopped.h"
#include "tool/commands.h"

#define LOOK_USEC 100000

/* ---- waiting ---- */

/* TOOL_GOOD: all have it; TOOL_BAD: not yet; TOOL_FAIL: never, which has been said. */
static int look_at_all(const struct arguments *arguments, enum suspend_state wanted)
{
	struct suspend_info info;
	int status = TOOL_GOOD;

	for (size_t i = 0; i < arguments->nr_pids; i++) {
		if (suspend_ask(arguments->pids[i], &info))
			return complain_failure();
		if (info.state == STATE_GONE)
			return complain("pid %d: has ended while it was suspended", arguments->pids[i]);
		if (info.state != wanted)
			status = TOOL_BAD;
	}
	return status;
}

/* Waits first with --until; TOOL_BAD: in vain. */
int command_state(const struct arguments *arguments)
{
	static const struct {
		const char *text;
		enum suspend_state state;
	} states[] = { { "running", STATE_RUNNING }, { "locked", STATE_LOCKED }, { "suspended", STATE_SUSPENDED } };
	size_t wanted = 0;
	double began = monotonic_seconds();
	unsigned int seconds;
	int waited, status;

	if (!arguments->until)
		return print_states(arguments);
	while (wanted < ARRAY_SIZE(states) && strcmp(arguments->until, states[wanted].text))
		wanted++;
	if (wanted == ARRAY_SIZE(states))
		return complain("--until wants running, locked or suspended");
	if (!arguments->nr_pids)
		return complain("--until wants pids");
	if (seconds_of("--wait", arguments->wait, &seconds))
		return TOOL_FAIL;
	while ((waited = look_at_all(arguments, states[wanted].state)) == TOOL_BAD &&
	       (!arguments->wait || monotonic_seconds() < began + seconds))
		usleep(LOOK_USEC);
	status = waited == TOOL_FAIL ? TOOL_FAIL : print_states(arguments);
	return status == TOOL_GOOD ? waited : status;
}

/* ---- cuda-checkpoint's words ---- */

/* Half way without a command at work: only resume helps. */
static const char *word_of(const struct suspend_info *info, pid_t pid)
{
	if (info->state == STATE_SUSPENDED)
		return "checkpointed";
	if (info->state == STATE_LOCKED)
		return "locked";
	if (info->state == STATE_HALF)
		return hold_is_traced(pid) ? "locked" : "failed";
	return info->state == STATE_GONE ? "failed" : "running";
}

int command_get_state(const struct arguments *arguments)
{
	struct suspend_info info;
	int status = TOOL_GOOD;

	if (!arguments->nr_pids)
		return complain("get-state wants pids");
	print_array("processes");
	for (size_t i = 0; i < arguments->nr_pids; i++) {
		if (suspend_ask(arguments->pids[i], &info)) {
			status = complain_failure();
			continue;
		}
		print_object(NULL);
		print_number("pid", NULL, (uint64_t)arguments->pids[i]);
		print_string("state", "", word_of(&info, arguments->pids[i]));
		print_text("\n");
		print_end();
	}
	print_end();
	return status;
}

/* All the same way: those that differ are for suspend and resume. */
int command_toggle(const struct arguments *arguments)
{
	struct arguments wanted = *arguments;
	struct suspend_info info;
	size_t nr_suspended = 0;

	if (!arguments->nr_pids)
		return complain("toggle wants pids");
	for (size_t i = 0; i < arguments->nr_pids; i++) {
		if (suspend_ask(arguments->pids[i], &info))
			return complain_failure();
		nr_suspended += info.state != STATE_RUNNING;
	}
	if (nr_suspended && nr_suspended < arguments->nr_pids)
		return complain("some of them are suspended, others are not: use suspend or resume");
	wanted.verb = nr_suspended ? RESUME : SUSPEND;
	return command_verb(&wanted);
}
