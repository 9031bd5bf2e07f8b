# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Render files besides that of KFD, of one process and of two, and processes without /dev/kfd
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

comes_back render-empty
for case in files files-forked render render-pair; do
	comes_back_if_listed "$case"
done
