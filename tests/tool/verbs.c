// SPDX-License-Identifier: GPL-2.0-only
/*
 * With the command's own objects, linked with --wrap: the command where each suspend, resume and phase of two processes is done, without
 * a GPU. The second one has ended. For what the command says then.
 */
#include <stdlib.h>

#include "suspend/suspend.h"

static int is_done(struct suspend_result *ret)
{
	static const struct suspend_report reports[] = {
		{ .pid = 7, .has_kfd = true, .is_held_by_signal = true, .freed_bytes = 5 << 20, .kept_bytes = { 4096, 8192, 0, 1 << 20 } },
		{ .pid = 8, .has_kfd = true, .had_ended = true, .is_held_by_signal = true, .freed_bytes = 1 << 20, .kept_bytes = { 4096 } },
	};

	*ret = (struct suspend_result){ .reports = malloc(sizeof(reports)), .nr = 2, .times = { 0.25, 1.5, 2 } };
	if (!ret->reports)
		return -ENOMEM;
	memcpy(ret->reports, reports, sizeof(reports));
	return 0;
}

#define DONE(name, ...)                        \
	int __wrap_##name(__VA_ARGS__);        \
	int __wrap_##name(__VA_ARGS__)         \
	{                                      \
		return is_done(ret);           \
	}

DONE(suspend_processes, const struct suspend_target *target, const char *dir, const struct settings *settings,
     struct suspend_result *ret)
DONE(suspend_lock, const struct suspend_target *target, const struct settings *settings, struct suspend_result *ret)
DONE(suspend_resume, const struct suspend_target *target, enum resume_to to, unsigned int wait_seconds,
     const struct settings *settings, struct suspend_result *ret)
