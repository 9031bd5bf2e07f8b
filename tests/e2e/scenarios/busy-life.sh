# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Threads with queues, AQL, SVM, shared userptr memory, a BO mapped in several ways, a child with inherited files
# gpus: 1xmi100

job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 8 --extra threads --extra aql --extra svm \
	--extra memfd --extra maps --extra fork
expect_verified
job_picture
dump --leave-running
expect_unharmed
job_comes_back
job_end
