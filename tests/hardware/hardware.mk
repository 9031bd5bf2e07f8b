# SPDX-License-Identifier: GPL-2.0-only
# amdgpu-checkpoint-test: does it work on this machine's GPUs? docs/hardware.md

include tests/workloads/workloads.mk

TESTDIR ?= /usr/libexec/amdgpu-checkpoint-test
# With ROCm's HSA runtime there is a job on it as well. AMD's packages have it in /opt/rocm, from 7.14 on in /opt/rocm/core.
HARDWARE_HSA ?= $(firstword $(wildcard /usr/include/hsa/hsa.h /opt/rocm/core/include/hsa/hsa.h /opt/rocm/include/hsa/hsa.h))
HARDWARE_HSA_DIR := $(patsubst %/include/hsa/hsa.h,%,$(filter-out /usr/%,$(HARDWARE_HSA)))
ifneq ($(HARDWARE_HSA_DIR),)
WORKLOADS_CPPFLAGS += -idirafter $(HARDWARE_HSA_DIR)/include
hsajob_LIBS += -L$(HARDWARE_HSA_DIR)/lib -Wl,-rpath,$(HARDWARE_HSA_DIR)/lib
endif
HARDWARE_PROGRAMS := $(addprefix $(WORKLOADS_DIR)/,gpujob sharejob hipjob $(if $(HARDWARE_HSA),hsajob))
HARDWARE_FILES := tests/hardware/facts.sh tests/hardware/cases.sh tests/hardware/programs.sh tests/e2e/lib.sh docs/pytorch-steps.py \
	$(addprefix tests/asicsim/gcn/programs/,busy.cl device.h)

HARDWARE_PAGE := $(BUILD)/man/amdgpu-checkpoint-test.8
$(HARDWARE_PAGE): tests/hardware/amdgpu-checkpoint-test.txt | $(BUILD)/man
	$(MAN)

hardware-build: all $(HARDWARE_PROGRAMS) $(if $(ASCIIDOCTOR)$(A2X),$(HARDWARE_PAGE))
hardware:
	@$(MAKE) --no-print-directory -s hardware-build
	@tests/hardware/run $(HARDWARE_OPTIONS)
install-hardware: hardware-build
	install -D -m 755 -t $(DESTDIR)$(TESTDIR) tests/hardware/run $(HARDWARE_PROGRAMS)
	install -m 644 -t $(DESTDIR)$(TESTDIR) $(HARDWARE_FILES)
	mkdir -p $(DESTDIR)$(BINDIR)
	ln -srf $(DESTDIR)$(TESTDIR)/run $(DESTDIR)$(BINDIR)/amdgpu-checkpoint-test
	if [ -e $(HARDWARE_PAGE) ]; then install -D -m 644 -t $(DESTDIR)$(MANDIR)/man8 $(HARDWARE_PAGE); fi
uninstall-hardware:
	rm -rf $(DESTDIR)$(TESTDIR) $(DESTDIR)$(BINDIR)/amdgpu-checkpoint-test \
		$(DESTDIR)$(MANDIR)/man8/amdgpu-checkpoint-test.8
.PHONY: hardware hardware-build install-hardware uninstall-hardware
