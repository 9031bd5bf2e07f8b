/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of the content engine begin and end with: GPUs that execute packets, and the log. */
#ifndef UNIT_CONTENT_TEST_H
#define UNIT_CONTENT_TEST_H

#include "unit.h"
#include "content_fixture.h"
#include "fake_drm.h"
#include "log_stub.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const struct fake_drm_config one_ring = { .rings = 1 };

static inline void begin_gpus(const struct fake_drm_config *config)
{
	fake_drm_begin(config);
	log_clear();
}

/* Nothing was done that hardware or kernel would not take, and nothing is left. */
static inline void assert_clean(void)
{
	if (fake_drm_violation())
		fail_msg("%s", fake_drm_violation());
	assert_int_equal(fake_drm_live_objects(), 0);
}

static inline void assert_said_once(const char *text)
{
	if (!strstr(log_text, text) || log_errors != 1)
		fail_msg("%u error lines; expected one with \"%s\":\n%s", log_errors, text, log_text);
}

#endif
