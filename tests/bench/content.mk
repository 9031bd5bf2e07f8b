# SPDX-License-Identifier: GPL-2.0-only
# bench-native: the content engine on GPUs that are simulated in the process.

CONTENT_BENCH := $(BUILD)/bench/content_native
CONTENT_BENCH_SRCS := tests/bench/content_native.c tests/bench/content_reference.c tests/unit/content_fixture.c \
	$(content_SRCS) $(fake_drm_SRCS)

$(CONTENT_BENCH): $(CONTENT_BENCH_SRCS)
	mkdir -p $(@D)
	$(CC) -std=gnu11 -g -O2 -Wall -Wextra -Werror -Wshadow -pthread -I. -Itests/unit -Itests/bench \
		$(shell $(PKG_CONFIG) --cflags libdrm_amdgpu) -MMD -MP -o $@ $(filter %.c,$^) \
		-Wl,--wrap=pread -Wl,--wrap=pwrite

-include $(CONTENT_BENCH).d

bench-native: $(CONTENT_BENCH)
	$(CONTENT_BENCH) --json $(BUILD)/bench/content_native.json
.PHONY: bench-native
