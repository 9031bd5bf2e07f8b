# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Queues of threads and in the middle of an indirect buffer, AQL, SVM, shared userptr memory, odd mappings, inherited files
# gpus: 1xmi100

job_start --vram 64K --gtt 64K --userptr 64K --chain 5000 --busy 8 --ib --extra threads --extra aql --extra svm \
	--extra memfd --extra maps --extra fork
expect_verified
job_picture
dump --leave-running
expect_unharmed
job_comes_back
job_end
