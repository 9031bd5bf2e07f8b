# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2086,SC2154
# Two GPUs are open: without memory, queues and events; only the second is used; the parent uses the first, its child the second
# gpus: 2xmi100

for arguments in '--gpus none' '--gpus 1 --vram 1M' '--children 1 --split'; do
	job_start $arguments
	job_returns
	job_end
done
