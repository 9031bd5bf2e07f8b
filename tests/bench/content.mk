# SPDX-License-Identifier: GPL-2.0-only
# The content engine by itself. bench-native: on GPUs that are simulated in the process;
# content_device: on device files, in the machine (tests/vm/run) or on real GPUs.

CONTENT_BENCH := $(BUILD)/bench/content_native
CONTENT_BENCH_SRCS := tests/bench/content_native.c tests/bench/content_reference.c tests/unit/content_fixture.c \
	$(content_SRCS) $(fake_drm_SRCS)

$(CONTENT_BENCH): $(CONTENT_BENCH_SRCS)
	mkdir -p $(@D)
	$(CC) -std=gnu11 -g -O2 -Wall -Wextra -Werror -Wshadow -pthread -I. -Itests/unit -Itests/bench \
		$(shell $(PKG_CONFIG) --cflags libdrm_amdgpu) -MMD -MP -o $@ $(filter %.c,$^) \
		-Wl,--wrap=pread -Wl,--wrap=pwrite

CONTENT_DEVICE := $(BUILD)/bench/content_device
CONTENT_DEVICE_SRCS := tests/bench/content_device.c tests/bench/content_reference.c $(content_SRCS)

$(CONTENT_DEVICE): $(CONTENT_DEVICE_SRCS)
	mkdir -p $(@D)
	$(CC) -std=gnu11 -g -O2 -Wall -Wextra -Werror -Wshadow -pthread -I. -Itests/bench \
		$(shell $(PKG_CONFIG) --cflags libdrm_amdgpu) -MMD -MP -o $@ $(filter %.c,$^) \
		$(shell $(PKG_CONFIG) --libs libdrm_amdgpu libdrm)

-include $(CONTENT_BENCH).d $(CONTENT_DEVICE).d

bench-native: $(CONTENT_BENCH)
	$(CONTENT_BENCH) --json $(BUILD)/bench/content_native.json
.PHONY: bench-native
