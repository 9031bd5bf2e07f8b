# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Refused at dump: a second KFD context (Linux 7.2), also when only its own file is open
# gpus: 1xmi100
# kernels: 7.2

for extra in '' '--extra closed'; do
	# shellcheck disable=SC2086
	job_start "${small[@]}" --extra context $extra
	job_picture
	dump_refused
	expect_one_error 'has a second KFD context'
	expect_progress
	[ "$extra" ] || expect_unharmed
	job_kill
	expect_gone
done
