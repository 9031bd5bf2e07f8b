# SPDX-License-Identifier: GPL-2.0-only
# What each unit test links with, besides its own file.

topology_SRCS := amdgpu_plugin_topology.c kernel/sysfs.c

match_SRCS := $(wildcard match/*.c) $(topology_SRCS)

# criu's function is looked up among what the program exports.
test_options_LDFLAGS := -rdynamic
test_options_LDLIBS := -ldl
test_options_SRCS := host/options.c host/settings.c amdgpu_plugin_topology.c
test_settings_SRCS := host/settings.c amdgpu_plugin_topology.c
test_topology_SRCS := $(topology_SRCS)
test_match_SRCS := $(match_SRCS) host/settings.c
test_match_ordinary_SRCS := $(filter-out match/match.c,$(match_SRCS))
test_match_oracle_SRCS := $(match_SRCS)
test_match_memory_SRCS := $(match_SRCS) host/settings.c
test_match_memory_LDFLAGS := $(foreach call,malloc calloc realloc reallocarray strdup,-Wl,--wrap=$(call))
test_image_SRCS := $(addprefix image/,image.c nodes.c file.c objects.c) content/crc32c.c kernel/state.c $(topology_SRCS) \
	$(BUILD)/proto/criu-amdgpu.pb-c.c
test_image_share_SRCS := $(test_image_SRCS)
test_share_table_SRCS := share/table.c host/bundle.c amdgpu_plugin_topology.c
test_share_table_LDFLAGS := -Wl,--wrap=monotonic_seconds -Wl,--wrap=usleep
test_share_decide_SRCS := share/decide.c kernel/state.c $(topology_SRCS)
test_share_attach_SRCS := share/attach.c kernel/state.c amdgpu_plugin_topology.c
test_share_collect_LDFLAGS := -Wl,--wrap=mmap
test_share_collect_SRCS := share/collect.c share/files.c share/survey.c amdgpu_plugin_topology.c kernel/state.c
test_share_dump_SRCS := share/alone.c share/dump.c share/survey.c amdgpu_plugin_topology.c
test_references_SRCS := share/references.c share/externals.c amdgpu_plugin_topology.c
test_references_LDFLAGS := $(foreach call,fdinfo_value list_numbers open openat access readlink syscall,-Wl,--wrap=$(call))
test_interop_SRCS := $(test_image_SRCS)
test_interop_CFLAGS := -DSAMPLE_IMAGES='"$(BUILD)/images"'
$(BUILD)/unit-plain/test_interop $(BUILD)/unit-asan/test_interop: | $(BUILD)/images
$(BUILD)/images: $(wildcard tests/images/*) $(wildcard tests/images/*/*)
	tests/images/generate $@
test_vma_SRCS := checkpoint/vma.c kernel/vma.c share/files.c amdgpu_plugin_topology.c host/settings.c
test_stacks_SRCS := kernel/queues.c kernel/state.c $(topology_SRCS)
test_fold_SRCS := kernel/queues.c kernel/state.c $(topology_SRCS)
test_limits_SRCS := kernel/limits.c kernel/mes.c kernel/driver.c kernel/queues.c kernel/state.c $(topology_SRCS)
test_mes_SRCS := kernel/mes.c kernel/driver.c stopped/recreate.c stopped/memory.c stopped/sdma_slots.c kernel/state.c $(topology_SRCS)
test_mes_LDFLAGS := -Wl,--wrap=monotonic_seconds,--wrap=call_ioctl
test_placeholders_SRCS := kernel/placeholders.c kernel/state.c $(topology_SRCS)
test_placeholders_LDFLAGS := -Wl,--wrap=ioctl
test_records_SRCS := kernel/state.c amdgpu_plugin_topology.c
test_unshare_SRCS := stopped/unshare.c
test_unshare_LDFLAGS := -Wl,--wrap=pread,--wrap=process_vm_readv,--wrap=process_vm_writev
test_exceptions_SRCS := checkpoint/exceptions.c kernel/state.c $(topology_SRCS)
test_exceptions_LDFLAGS := -Wl,--wrap=ioctl
test_driver_SRCS := kernel/driver.c
test_gem_SRCS := amdgpu_plugin_drm.c kernel/device.c kernel/mount.c
test_gem_LDFLAGS := -Wl,--wrap=ioctl
test_ending_SRCS := host/ending.c
test_ending_LDFLAGS := -Wl,--wrap=dlopen
test_gpus_SRCS := checkpoint/gpus.c checkpoint/precheck.c checkpoint/shared.c host/settings.c kernel/state.c $(match_SRCS)
test_gpus_LDFLAGS := -Wl,--wrap=usleep
test_guard_SRCS := checkpoint/guard.c kernel/tasks.c
test_guard_LDFLAGS := -Wl,--wrap=syscall
test_shared_SRCS := checkpoint/shared.c kernel/state.c amdgpu_plugin_topology.c
test_usage_SRCS := kernel/usage.c $(topology_SRCS)
test_usage_LDFLAGS := -Wl,--wrap=usleep

content_SRCS := $(wildcard content/*.c)
fake_drm_SRCS := tests/unit/fake_drm.c tests/unit/fake_drm_ring.c
test_content_SRCS := $(content_SRCS) $(fake_drm_SRCS) tests/unit/content_fixture.c
test_content_parts_SRCS := content/layout.c content/crc32c.c tests/unit/content_fixture.c \
	$(fake_drm_SRCS)
test_sdma_SRCS := content/sdma.c tests/unit/content_fixture.c $(fake_drm_SRCS)
# The whole plugin.
test_faults_SRCS := $(PLUGIN_SOURCES) $(BUILD)/proto/criu-amdgpu.pb-c.c tests/unit/fake_kfd.c tests/unit/fake_gem.c tests/unit/fake_calls.c \
	$(fake_drm_SRCS) tests/unit/content_fixture.c
test_faults_LDFLAGS := -rdynamic $(foreach call,read write pread pwrite ftruncate dup malloc calloc strdup reallocarray \
	free close _exit __cxa_atexit kill access open openat fopen opendir readlink stat fstat statx ioctl mmap syscall getpid usage_read uname memory_unshare \
	guard_start guard_end criu_task_has_ended,-Wl,--wrap=$(call))
test_faults_LDLIBS = -ldl
test_faults_forked_SRCS := $(test_faults_SRCS)
test_faults_forked_LDFLAGS := $(test_faults_LDFLAGS)
test_faults_forked_LDLIBS = -ldl

test_content_errors_SRCS := $(test_content_SRCS)
test_content_stream_SRCS := $(test_content_SRCS)

test_content_faults_SRCS := $(test_content_SRCS)
test_content_faults_LDFLAGS := $(foreach call,calloc read write pread pwrite lseek fstat fstatfs fstatvfs ftruncate \
	sync_file_range posix_fadvise poll memfd_create madvise pthread_create fcntl mmap munmap syscall \
	close fopen pthread_setaffinity_np,-Wl,--wrap=$(call))
test_content_large_SRCS := $(test_content_SRCS)
test_progress_SRCS := pages/progress.c
test_pages_SRCS := pages/pages.c pages/discard.c content/layout.c content/crc32c.c kernel/state.c $(topology_SRCS)
test_pages_LDFLAGS := -Wl,--wrap=discard_read
test_discard_SRCS := pages/discard.c content/layout.c

test_device_SRCS := kernel/device.c kernel/mount.c
test_device_LDFLAGS := -Wl,--wrap=fopen
test_tasks_SRCS := kernel/tasks.c
test_tasks_LDFLAGS := -Wl,--wrap=statx
test_hold_SRCS := stopped/hold.c
test_inject_SRCS := stopped/inject.c stopped/memory.c stopped/hold.c stopped/rlimits.c
test_inject_LDFLAGS := -Wl,--wrap=ptrace
test_suspend_SRCS := $(filter-out suspend/move.c,$(wildcard suspend/*.c)) kernel/state.c kernel/vma.c content/crc32c.c amdgpu_plugin_topology.c
test_suspend_LDFLAGS := $(foreach call,kill open mkdir rmdir rename unlink fopen list_numbers readlink stat_quietly,-Wl,--wrap=$(call))
test_room_SRCS := stopped/room.c
test_room_LDFLAGS := -Wl,--wrap=open -Wl,--wrap=fopen
test_record_SRCS := suspend/record.c suspend/datadir.c suspend/resets.c kernel/state.c content/crc32c.c amdgpu_plugin_topology.c
test_record_LDFLAGS := $(foreach call,open mkdir rmdir unlink access rename fstatfs fstatvfs proc_status,-Wl,--wrap=$(call))
test_move_SRCS := $(addprefix suspend/,move.c record.c datadir.c freezer.c resets.c) kernel/state.c content/crc32c.c amdgpu_plugin_topology.c
test_move_LDFLAGS := $(foreach call,list_numbers open mkdir rmdir unlink access rename kill proc_status,-Wl,--wrap=$(call))
test_verbs_SRCS := tool/suspend.c tool/print.c
test_follow_SRCS := tool/follow.c
test_follow_LDFLAGS := -Wl,--wrap=usleep -Wl,--wrap=open -Wl,--wrap=monotonic_seconds
test_devfilter_SRCS := kernel/devfilter.c
test_nodes_SRCS := kernel/nodes.c
test_nodes_LDFLAGS := $(foreach call,fopen syscall fstatfs fstatat mknodat fchownat,-Wl,--wrap=$(call))
test_hide_SRCS := kernel/hide.c
test_hide_LDFLAGS := $(foreach call,unshare setns mkdirat unlinkat,-Wl,--wrap=$(call))
test_kfd_open_SRCS := kernel/kfd.c kernel/driver.c kernel/state.c amdgpu_plugin_topology.c
test_kfd_open_LDFLAGS := -Wl,--wrap=ioctl,--wrap=usleep,--wrap=open,--wrap=list_numbers,--wrap=read_number_at
test_kfd_rules_SRCS := $(test_kfd_open_SRCS)
test_kfd_rules_LDFLAGS := -Wl,--wrap=ioctl,--wrap=uname

test_handed_SRCS := pages/handed.c pages/progress.c host/bundle.c $(test_content_SRCS)
test_handed_LDFLAGS := $(foreach call,calloc sendmsg recvmsg socketpair unshare pthread_create,-Wl,--wrap=$(call))

# No part of the plugin: the code that the simulated chip runs, and what runs it.
test_gcn_SRCS := $(wildcard tests/asicsim/gcn/*.c)
test_gcn_CFLAGS := -DGCN_PROGRAMS='"$(BUILD)/gcn/"'
test_gcn_LDLIBS = -lm
$(BUILD)/unit-plain/test_gcn $(BUILD)/unit-asan/test_gcn: | $(GCN_PROGRAMS)

# Those that also run with the thread sanitizer.
TSAN_TESTS := test_content test_content_errors test_content_stream test_handed
