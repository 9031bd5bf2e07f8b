# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Sharing that cannot be saved is refused by name, and the job goes on
# gpus: 1xmi100

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

stays 'not dumped' outside-import
stays 'not dumped' outside-export
stays 'not dumped' outside-handle
stays 'not dumped' outside-dmabuf
stays 'in flight' under-way
stays 'udmabuf' udmabuf
if kernel_lists; then
	stays 'always valid' always-valid
	stays 'userptr' userptr
else
	stays '6\.18' always-valid
	stays '6\.18' userptr
fi
stays 'context' context
# Only the driver of newer kernels has such objects.
if kernel_lists; then
	stays 'doorbell' doorbell
fi

# A stream brings the images in the order of files: a dma-buf comes back from a directory only, if its number is that low.
pair='early, into a stream'
job_start early
process_shape >"$work/shape"
images_new
mkdir "$work/store"
"$top/build/workloads/streamer" capture "$images" "$work/store" >/dev/null 2>&1 &
streamer_pid=$!
wait_until 10 test -S "$images/streamer-capture.sock" || fail "the streamer does not start"
! criu_call dump --stream -t "${job_pids[0]}" || fail "criu dump succeeded, but it should have refused"
kill "$streamer_pid" 2>/dev/null || true
expect_one_error 'which cannot be streamed: dump into a directory'
job_goes
job_end
shown 'early, into a stream, refused'
