# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The Debian package: dpkg puts the plugin where this criu looks, and a job is dumped and restored with it
# gpus: 1xmi100
# needs: build/deb/criu-plugin-amdgpu.deb, deb

where=$(criu --help 2>&1 | sed -n 's,.*path to a plugin directory (by default \(.*\)/),\1,p')
[ -n "$where" ] || fail "criu does not say where it looks for plugins"
plugin=$where/amdgpu_plugin.so
# The other scenarios use the machine's own; the directory goes with the package.
trap 'install -D -m 755 /run/vm/amdgpu_plugin.so "$plugin"' EXIT
rm "$plugin"
dpkg -i "$top/build/deb/criu-plugin-amdgpu.deb" >"$work/dpkg.log" 2>&1 || fail "dpkg: $(tail -n 1 "$work/dpkg.log")"
[ "$(dpkg -S "$plugin" 2>&1)" = "criu-plugin-amdgpu: $plugin" ] || fail "the package has no $plugin"

job_start --vram 1M
job_returns
expect_images 1 1
job_suspend
! dpkg -r criu-plugin-amdgpu >"$work/refused.log" 2>&1 || fail "the package is removed while a process is suspended"
grep -q "^pid ${job_pids[0]}: suspended" "$work/refused.log" || fail "a removal does not say which process is suspended"
job_resume
job_end

dpkg -r criu-plugin-amdgpu >>"$work/dpkg.log" 2>&1 || fail "dpkg: $(tail -n 1 "$work/dpkg.log")"
[ ! -e "$plugin" ] || fail "the package is removed, and $plugin is still there"
