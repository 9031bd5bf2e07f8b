# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# ROCm's runtime on a Radeon
# tier: all
# gpus: 1xnavi31
# kernels: each
# seconds: 300

gpujob=$hsajob
job_start
job_returns
job_returns
job_end
