# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# amdgpu-checkpoint-test as a user runs it: a verdict, a refusal where others use the GPUs, an archive without secrets
# gpus: 2xmi100
# kernels: each
# tier: all
# seconds: 900

kit=$top/tests/hardware/run
id=0x5e71a1b2c3d4e5f6
machine_load 2xmi100 "s/^count.*/&\nunique_id = $id + 1/"
mkdir "$work/parent"

# kit_says STATUS PATTERN ARG...
kit_says() {
	local want=$1 pattern=$2 status=0
	shift 2
	"$kit" --dir "$work/parent" "$@" </dev/null >"$work/kit.out" 2>&1 || status=$?
	[ "$status" -eq "$want" ] || fail "the test $* ended with status $status, not $want: $(tail -n 3 "$work/kit.out")"
	grep -q -- "$pattern" "$work/kit.out" || fail "the test does not say \"$pattern\": $(tail -n 3 "$work/kit.out")"
	[ -z "$(ls -A "$work/parent")" ] || fail "the test leaves $(ls -A "$work/parent")"
	! pgrep -f "amdgpu-checkpoint-test[.]" >/dev/null || fail "the test leaves processes"
}

# Somebody else's job.
job_start --vram 64K
kit_says 2 "other processes use the GPUs: ${job_pids[0]}" --yes
expect_right
job_end

kit_says 2 'there is no case nowhere' nowhere
kit_says 0 '^VERDICT: works: 5 ok, 0 failed, 0 refused, 1 not tried' --yes --out "$work/report.tar.gz" --vram 32 \
	small large other_gpu killed_dump killed_restore ipc
grep -q '^ok  *small .*saved 1[6-9].* MiB at .*restored 1[6-9].* MiB at ' "$work/kit.out" || fail "no rates: $(grep small "$work/kit.out")"
grep -q '^skipped  *large .*at most 32 are to be used' "$work/kit.out" || fail "more VRAM was used than allowed"

# Without an answer nothing is written.
kit_says 2 'No archive was written' --out "$work/none.tar.gz" large
[ ! -e "$work/none.tar.gz" ] || fail "an archive was written without an answer"

# A job that goes wrong: its result says so.
mkdir "$work/broken"
CRIU_LIBS_DIR=$work/broken kit_says 1 '^VERDICT: does not work: 0 ok, 1 failed' --yes --out "$work/broken.tar.gz" tiny

# Programs of others: one that prints the same, one that knows that it was restored, and one that never prints the same.
cat >"$work/own" <<EOF
rm -f "$work/own.state"
"$gpujob" --state "$work/own.state" --gpus 0 --vram 16M &
sleep 12
kill -TERM \$!
wait \$!
echo "the job ended with \$?"
EOF
own="bash $work/own"
kit_says 0 '^ok  *own .*restored .* MiB at ' --yes --out "$work/own.tar.gz" --job "$own" own
kit_says 1 '^failed  *own .*prints something else than undisturbed: > restored' --yes --out "$work/own2.tar.gz" \
	--job "$own; [ \$(ps -o ppid= -p \$(ps -o sid= -p \$\$)) -ne 1 ] || echo restored" own
kit_says 2 '^skipped  *own .*prints something else each time' --yes --out "$work/own3.tar.gz" --job "$own; date +%N" own
kit_says 2 '^skipped  *own .*ends undisturbed with status 3' --yes --out "$work/own4.tar.gz" --job 'exit 3' own

mkdir "$work/unpacked"
tar -xzf "$work/report.tar.gz" -C "$work/unpacked"
cd "$work/unpacked/amdgpu-checkpoint-test" || fail "the archive has another directory"
for file in report.txt facts.txt doctor.txt kernel.log logs/small.log topology/nodes/1/properties; do
	[ -e "$file" ] || fail "the archive has no $file: $(find . -type f | tr '\n' ' ')"
done
[ -z "$(find . -name '*.img')" ] || fail "the archive has images"
grep -q 'VRAM: [0-9]* bytes' facts.txt || fail "the facts lack the VRAM: $(<facts.txt)"
for secret in "$((id))" "$((id + 1))" "${id#0x}" unique_id; do
	! grep -rqi -- "$secret" . || fail "the archive has $secret: $(grep -rli -- "$secret" .)"
done
grep -q "^unique_id $((id))$" /sys/class/kfd/kfd/topology/nodes/*/properties || fail "the GPU has no id that could be kept out"
cd /
