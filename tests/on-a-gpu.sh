#!/usr/bin/env bash
# Compares the guard's verdicts with the real driver on a machine with a GPU.
#
#   tests/on-a-gpu.sh             build the programs and run all scenarios on this machine
#   tests/on-a-gpu.sh pack DIR    build the programs into DIR, with this script, for a machine without a toolkit or a network
#   DIR/on-a-gpu.sh DIR           run all scenarios on that machine
#
# Each scenario runs a program twice. With CUDAGUARD=off the program loads its kernels on every visible GPU and prints the driver's
# result codes: these are the expected result. With its guard the program must exit with 78 if no GPU loads the kernels. It must
# run and print nothing if at least one GPU loads them, or if there is no GPU. The guard may let a program run if its verdict is
# "unknown". Status 0: all verdicts are correct; 1: a verdict is wrong; 2: the scenarios could not run. Attach the output to a report.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case "${1-}" in
pack | "")
    folder=${2-}
    if [ -z "$folder" ]; then
        folder=$(mktemp -d)
        trap 'rm -rf "$folder"' EXIT
    fi
    (cd "$here/.." && cargo run --quiet -p cudaguard-tests --bin gpu-scenes -- "$folder") || exit 2
    cp "$here/on-a-gpu.sh" "$folder/"
    if [ "${1-}" = pack ]; then exit 0; fi
    ;;
*) folder=$(cd "$1" && pwd) ;;
esac

echo "== machine"
uname -srm
head -n 1 /proc/driver/nvidia/version 2>/dev/null || echo "no /proc/driver/nvidia/version"
for file in /proc/driver/nvidia/gpus/*/information; do
    if [ -r "$file" ]; then grep -hE '^(Model|GPU UUID|Bus Location|Device Minor)' "$file" | tr -s ' \t' ' ' | paste -sd ';'; fi
done
echo "nodes: $(cd /dev && echo nvidia* dxg nvmap nvhost-ctrl | tr ' ' '\n' | while read -r node; do [ -e "/dev/$node" ] && printf '%s ' "$node"; done || true)"
echo "libcuda: $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -n 1) ${LD_LIBRARY_PATH:+(LD_LIBRARY_PATH=$LD_LIBRARY_PATH)}"
nvidia-smi --query-gpu=index,name,compute_cap,driver_version,uuid,mig.mode.current --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
env | grep -E '^(CUDA|NVIDIA)_' | sort || true

failures=0 count=0
temporary=$(mktemp -d)
chmod 1777 "$temporary"
report=$temporary/report
trap 'rm -rf "$temporary"; [ -z "${2-}" ] && [ -z "${1-}" ] && rm -rf "$folder"; true' EXIT

# Runs a command as another user without this device: without PATH NAME=VALUE... COMMAND. Only root can do this.
cat >"$temporary/without" <<'END'
#!/bin/sh
exec unshare -m sh -c 'device=$1; shift; mkdir "$0.$$" && mount -t tmpfs none "$0.$$" && cp -a /dev/. "$0.$$" && rm "$0.$$/${device#/dev/}" &&
    mount --bind "$0.$$" /dev && exec setpriv --reuid 65534 --regid 65534 --clear-groups env "$@"' "$0" "$@"
END
chmod +x "$temporary/without"

# scenario TITLE PROGRAM [VARIABLE=VALUE...]
scenario() {
    local title=$1 program=$folder/$2 driver_output expected stderr status=0 codes summary
    shift 2
    [ -x "$program" ] || return 0
    driver_output=$(env "$@" CUDAGUARD=off "$program" use 2>&1) || true
    if grep -q 'kernels loaded, 0$' <<<"$driver_output"; then
        expected=0
    elif grep -q 'kernels loaded, ' <<<"$driver_output"; then
        expected=78
    elif grep -qE '^(cuInit|cudaGetDeviceCount) (803|804)\b' <<<"$driver_output" ||
        { [ "$gpus" = yes ] && grep -qE '^(cuInit|cudaGetDeviceCount) 34\b' <<<"$driver_output"; }; then
        expected=78
    elif [ "$(basename "$program")" = needy ]; then
        expected=78
    else
        expected=0
    fi
    rm -f "$report"
    stderr=$(env "$@" CUDAGUARD_REPORT="$report" "$program" 2>&1 >/dev/null) || status=$?
    [ -e "$report" ] || : >"$report"
    codes=$(grep -o 'CG[0-9]*' "$report" | sort -u | paste -sd ' ' || true)
    summary="status $status, level $(sed -n 's/.*"level":\([0-9]\).*/\1/p' "$report" | head -n 1)${codes:+, $codes}"
    count=$((count + 1))
    if [ "$status$expected" = 078 ] && [ -z "$stderr" ] && grep -q '"verdict":"unknown"' "$report"; then
        printf 'unknown %s: %s\n' "$title" "$summary"
    elif [ "$status" != "$expected" ] || { [ "$status" = 0 ] && [ -n "$stderr" ]; }; then
        failures=$((failures + 1))
        printf 'WRONG  %s: %s, but the driver answers:\n' "$title" "$summary"
        sed 's/^/       | /' <<<"$driver_output"
        sed 's/^/       > /' <<<"$stderr"
    else
        printf 'ok     %s: %s\n' "$title" "$summary"
        if [ "$status" = 78 ]; then sed 's/^/       > /' <<<"$stderr"; fi
    fi
}

echo "== scenarios"
uuid=$(cat /proc/driver/nvidia/gpus/*/information 2>/dev/null | sed -n 's/^GPU UUID:[ \t]*//p' | head -n 1 || true)
gpus=$(compgen -G '/dev/nvidia[0-9]*' >/dev/null || [ -e /dev/dxg ] || [ -e /dev/nvmap ] && echo yes || echo no)
stubs=$folder/stubs
for program in model robot runtime needy vision; do
    scenario "$program" "$program"
    scenario "$program, no GPU visible" "$program" CUDA_VISIBLE_DEVICES=
    scenario "$program, no GPU by -1" "$program" CUDA_VISIBLE_DEVICES=-1
    scenario "$program, the first" "$program" CUDA_VISIBLE_DEVICES=0
    scenario "$program, the first of the bus" "$program" CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=PCI_BUS_ID
    scenario "$program, an invalid tail" "$program" CUDA_VISIBLE_DEVICES=0,nonsense
    scenario "$program, an invalid head" "$program" CUDA_VISIBLE_DEVICES=nonsense,0
    if [ -n "$uuid" ]; then
        scenario "$program, by UUID" "$program" "CUDA_VISIBLE_DEVICES=$uuid"
        scenario "$program, by the beginning of a UUID" "$program" "CUDA_VISIBLE_DEVICES=${uuid:0:12}"
    fi
    scenario "$program, PTX forced" "$program" CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1
    scenario "$program, PTX switched off" "$program" CUDA_DISABLE_PTX_JIT=1 CUDA_CACHE_DISABLE=1
    if [ -d "$stubs" ]; then scenario "$program, a stub" "$program" "LD_LIBRARY_PATH=$stubs"; fi
    for device in /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm; do
        if [ -e "$device" ] && "$temporary/without" "$device" true 2>/dev/null; then
            scenario "$program, without $device" "$program" "$temporary/without" "$device"
        fi
    done
    for compat in /usr/local/cuda*/compat; do
        if [ -e "$compat/libcuda.so.1" ]; then scenario "$program, $compat" "$program" "LD_LIBRARY_PATH=$compat"; fi
    done
done

echo "== a forked child uses CUDA after the guard has probed the driver"
# The guard starts its driver probe if CUDA_VISIBLE_DEVICES has a prefix of a UUID.
settings=("${uuid:+CUDA_VISIBLE_DEVICES=${uuid:0:12}}" CUDA_VISIBLE_DEVICES=0)
for setting in "${settings[@]}"; do
    if [ -n "$setting" ]; then env "$setting" CUDAGUARD=warn "$folder/model" fork 2>/dev/null || true; fi
done

echo "== milliseconds per start, mean of 100 starts"
for mode in off enforce off enforce; do
    began=$(date +%s%N)
    for ((k = 0; k < 100; k++)); do CUDAGUARD=$mode "$folder/model" >/dev/null 2>&1 || true; done
    printf 'CUDAGUARD=%-8s %s\n' "$mode" "$(awk "BEGIN { printf \"%.3f\", ($(date +%s%N) - $began) / 1e8 }")"
done

echo "== $count scenarios, $failures wrong verdicts"
[ "$count" -gt 0 ] || exit 2
[ "$failures" = 0 ]
