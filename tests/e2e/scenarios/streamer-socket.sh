# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A job that has sockets named like those of criu-image-streamer, which criu holds, too, while it asks for the job's files
# tier: all
# gpus: 1xmi100

for name in streamer-capture.sock streamer-serve.sock; do
	cat >"$work/with-$name" <<-EOF
		#!/bin/sh
		exec perl -MSocket -e '
			BEGIN { \$^F = 255 }
			\$name = sockaddr_un(shift);
			socket(S, AF_UNIX, SOCK_STREAM, 0) and bind(S, \$name) and listen(S, 1) or die;
			socket(C, AF_UNIX, SOCK_STREAM, 0) and connect(C, \$name) and accept(A, S) or die;
			exec @ARGV' "$work/$name" "$gpujob" "\$@"
	EOF
	chmod 755 "$work/with-$name"
	gpujob=$work/with-$name job_start --vram 64K --gtt 64K --userptr 64K
	process_shape >"$work/shape"
	dump --leave-running
	job_goes
	dump
	restore
	job_goes
	job_end
	expect_no_objects
done
