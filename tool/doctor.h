/* SPDX-License-Identifier: GPL-2.0-only */
/* What doctor says: points, each one line and what to do about it. */
#ifndef TOOL_DOCTOR_H
#define TOOL_DOCTOR_H

#include <stdbool.h>

#include "tool/json.h"

enum point_state { POINT_OK, POINT_WARNING, POINT_PROBLEM };

struct doctor {
	bool is_json;
	struct json json;
	bool has_problem;
};

/* One point. @advice: what to do; NULL: nothing. */
void doctor_point(struct doctor *doctor, enum point_state state, const char *name, const char *advice, const char *fmt,
		  ...) __attribute__((format(printf, 5, 6)));

/* criu, its plugin directory and what is in it. */
void doctor_criu(struct doctor *doctor);

/* Settings that are in force. */
void doctor_settings(struct doctor *doctor);

#endif
