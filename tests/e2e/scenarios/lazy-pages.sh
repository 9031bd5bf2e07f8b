# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Memory that comes when it is touched is refused, at dump and at restore: the driver does not wait for it
# gpus: 1xmi100
# tier: all
# kernels: each

job_start --vram 256K --userptr 1M
job_picture
dump_refused --lazy-pages --address 127.0.0.1 --port 27027
expect_one_error 'cannot be dumped with --lazy-pages'
expect_unharmed
dump
criu lazy-pages -D "$images" -o "$work/lazy.log" -v4 </dev/null >/dev/null 2>&1 &
server=$!
wait_until 20 test -S "$images/lazy-pages.socket" || fail "criu lazy-pages does not listen"
restore_refused --lazy-pages
expect_one_error 'cannot be restored with --lazy-pages'
kill "$server" 2>/dev/null || true
wait "$server" || true
restore
expect_unharmed
job_end
