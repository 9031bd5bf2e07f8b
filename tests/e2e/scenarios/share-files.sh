# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Render files besides that of KFD, of one process and of two, and processes without /dev/kfd
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

comes_back render-empty
comes_back_if_listed files
# A child that has a file from its parent and no /dev/kfd, and processes that compute without it.
stays 'no /dev/kfd open' files-forked
stays 'buffers of the render node itself' render
stays 'buffers of the render node itself' render-pair
