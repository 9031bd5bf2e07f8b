# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# amdgpu-checkpoint-test tries a Radeon as any GPU, and its report tells what firmware keeps of a queue
# tier: all
# gpus: 1xnavi31
# seconds: 600

# report_says DERIVES PATTERN: of the case "packets"
report_says() {
	echo "$1" >/sys/module/amdgpu/parameters/asicsim_mes_derives
	"$top/tests/hardware/run" --dir "$work" --yes --out "$work/$1.tar.gz" packets </dev/null >"$work/kit.out" 2>&1 ||
		fail "the test ended with status $?: $(tail -n 3 "$work/kit.out")"
	grep -q '^VERDICT: works: 1 ok, 0 failed, 0 refused, 0 not tried' "$work/kit.out" || fail "$(tail -n 1 "$work/kit.out")"
	tar -xOzf "$work/$1.tar.gz" amdgpu-checkpoint-test/report.txt >"$work/report"
	grep -q "$2" "$work/report" || fail "the report does not say \"$2\": $(<"$work/report")"
}

report_says Y 'MES: its firmware keeps no count in the MQD'
report_says N "MES: its firmware keeps the count of a queue's packets in the MQD"
