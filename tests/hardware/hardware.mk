# SPDX-License-Identifier: GPL-2.0-only
# amdgpu-checkpoint-test: does it work on this machine's GPUs? docs/hardware.md

include tests/workloads/workloads.mk

TESTDIR ?= /usr/libexec/amdgpu-checkpoint-test
# With ROCm's HSA runtime there is a job on it as well.
HARDWARE_HSA ?= $(wildcard /usr/include/hsa/hsa.h)
HARDWARE_PROGRAMS := $(addprefix $(WORKLOADS_DIR)/,gpujob sharejob hipjob $(if $(HARDWARE_HSA),hsajob))
HARDWARE_FILES := tests/hardware/facts.sh tests/hardware/cases.sh tests/hardware/programs.sh tests/e2e/lib.sh docs/pytorch-steps.py \
	$(addprefix tests/asicsim/gcn/programs/,busy.cl device.h)

hardware-build: all $(HARDWARE_PROGRAMS)
hardware:
	@$(MAKE) --no-print-directory -s hardware-build
	@tests/hardware/run $(HARDWARE_OPTIONS)
install-hardware: hardware-build
	install -D -m 755 -t $(DESTDIR)$(TESTDIR) tests/hardware/run $(HARDWARE_PROGRAMS)
	install -m 644 -t $(DESTDIR)$(TESTDIR) $(HARDWARE_FILES)
	mkdir -p $(DESTDIR)$(BINDIR)
	ln -sf $(TESTDIR)/run $(DESTDIR)$(BINDIR)/amdgpu-checkpoint-test
.PHONY: hardware hardware-build install-hardware
