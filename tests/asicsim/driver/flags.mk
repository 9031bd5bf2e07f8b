# SPDX-License-Identifier: GPL-2.0-only
# Compiler flags of the driver's files and of ours, which include the same headers. DRIVER: the image's directory.

AMD := $(DRIVER)/drivers/gpu/drm/amd

# The trace headers name themselves relative to the kernel's include directory: any directory two levels down does.
ccflags-y := -include $(DRIVER)/config.h -I$(DRIVER)/include/drm \
	-I$(AMD)/include/asic_reg -I$(AMD)/include -I$(AMD)/amdgpu -I$(AMD)/pm/inc -I$(AMD)/acp/include \
	-I$(AMD)/display -I$(AMD)/display/include -I$(AMD)/display/modules/inc -I$(AMD)/display/dc \
	-I$(AMD)/display/amdgpu_dm -I$(AMD)/amdkfd -I$(AMD)/ras/ras_mgr -I$(AMD)/ras/rascore -I$(AMD)/ras/core \
	-I$(AMD)/pm/swsmu -I$(AMD)/pm/swsmu/inc \
	-I$(AMD)/pm/swsmu/inc/pmfw_if -I$(AMD)/pm/powerplay/inc -I$(AMD)/pm/powerplay/hwmgr -I$(AMD)/pm/legacy-dpm \
	-Wno-override-init -Wno-missing-prototypes -Wno-missing-declarations
