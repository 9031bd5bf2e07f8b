# SPDX-License-Identifier: GPL-2.0-only
# What each unit test links with, besides its own file.

topology_SRCS := amdgpu_plugin_topology.c amdgpu_plugin_topology_read.c amdgpu_plugin_settings.c
assign_SRCS := amdgpu_plugin_assign.c amdgpu_plugin_assign_bound.c amdgpu_plugin_assign_filter.c \
	amdgpu_plugin_assign_symmetry.c
match_SRCS := amdgpu_plugin_match.c amdgpu_plugin_match_rules.c amdgpu_plugin_match_report.c $(assign_SRCS) \
	$(topology_SRCS)

test_settings_SRCS := amdgpu_plugin_settings.c
test_topology_SRCS := $(topology_SRCS)
test_assign_SRCS := $(assign_SRCS)
test_match_SRCS := $(match_SRCS)
test_match_random_SRCS := $(match_SRCS)
test_match_choice_SRCS := $(match_SRCS)
test_match_memory_SRCS := $(match_SRCS)
test_match_memory_LDFLAGS := $(foreach call,malloc calloc realloc reallocarray strdup,-Wl,--wrap=$(call))
test_image_SRCS := amdgpu_plugin_image.c $(topology_SRCS) $(BUILD)/proto/criu-amdgpu.pb-c.c
test_vma_SRCS := amdgpu_plugin_vma.c

content_SRCS := amdgpu_plugin_content.c amdgpu_plugin_pipeline.c amdgpu_plugin_layout.c amdgpu_plugin_copier.c \
	amdgpu_plugin_cpucopy.c amdgpu_plugin_sdma.c amdgpu_plugin_pagesio.c amdgpu_plugin_crc32c.c
fake_drm_SRCS := tests/unit/fake_drm.c tests/unit/fake_drm_ring.c
test_content_SRCS := $(content_SRCS) $(fake_drm_SRCS) tests/unit/content_fixture.c
test_content_parts_SRCS := amdgpu_plugin_layout.c amdgpu_plugin_crc32c.c tests/unit/content_fixture.c \
	$(fake_drm_SRCS)
test_sdma_SRCS := amdgpu_plugin_sdma.c tests/unit/content_fixture.c $(fake_drm_SRCS)
test_content_errors_SRCS := $(test_content_SRCS)
test_content_stream_SRCS := $(test_content_SRCS)

test_content_faults_SRCS := $(test_content_SRCS)
test_content_faults_LDFLAGS := $(foreach call,calloc read write pread pwrite lseek fstat fstatfs ftruncate fallocate \
	sync_file_range posix_fadvise poll memfd_create madvise pthread_create fcntl ioctl mmap munmap,-Wl,--wrap=$(call))
test_content_large_SRCS := $(test_content_SRCS)
test_progress_SRCS := amdgpu_plugin_progress.c
