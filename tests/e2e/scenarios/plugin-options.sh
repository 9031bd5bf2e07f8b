# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Settings as options of criu 4.3: on its command line, in a configuration file and by RPC; direct I/O of its images
# gpus: 2xmi100
# userland: experimental
# tier: all

# request OPTION: a dump by criu's Python library, with this option; the job goes on
request() {
	local status=0
	images_new
	criu_runs=$((criu_runs + 1))
	python3 - "$images" "${job_pids[0]}" "$1" >"$work/request.out" 2>&1 <<-'EOF' || status=$?
		import os, sys, pycriu
		criu = pycriu.criu()
		criu.use_binary("criu")
		criu.opts.pid = int(sys.argv[2])
		criu.opts.images_dir_fd = os.open(sys.argv[1], os.O_DIRECTORY)
		criu.opts.log_file = "dump.log"
		criu.opts.log_level = 4
		criu.opts.leave_running = True
		criu.opts.plugin_options.append(sys.argv[3])
		criu.dump()
	EOF
	cp "$images/dump.log" "$work/$criu_runs-dump.log"
	return "$status"
}

job_start "${small[@]}" --gpus 1
job_picture

dump_refused --plugin-option amdgpu_plugin.device-mop=1
expect_one_error 'device-mop=1 is not a setting of this plugin'
expect_unharmed
echo 'plugin-option amdgpu_plugin.max-buffer-size=none' >"$work/criu.conf"
dump_refused --config "$work/criu.conf"
expect_one_error "KFD_MAX_BUFFER_SIZE: value 'none' is not valid"
expect_unharmed
! request amdgpu_plugin.restorable-check=perhaps || fail "a request with a value that is not valid is served"
expect_one_error "KFD_RESTORABLE_CHECK: value 'perhaps' is not valid"
expect_unharmed
request amdgpu_plugin.max-buffer-size=1M || fail "the request failed: $(tail -n 1 "$work/request.out") $(criu_errors)"
expect_unharmed
job_comes_back 1

echo 'plugin-option amdgpu_plugin.device-map=renderD128=renderD129' >"$work/criu.conf"
dump
restore --config "$work/criu.conf"
grep -q 'renderD128 at dump) becomes .*(renderD129)' "$work/$criu_runs-restore.log" || fail "the map of the configuration file is not used"
expect_unharmed
dump
restore --plugin-option amdgpu_plugin.device-map=renderD129=renderD128
grep -q 'renderD129 at dump) becomes .*(renderD128)' "$work/$criu_runs-restore.log" || fail "the map of the command line is not used"
expect_unharmed
# criu's own images by direct I/O, beside the plugin's.
dump --image-io-mode direct
restore --image-io-mode direct
expect_unharmed
job_end
expect_no_objects
