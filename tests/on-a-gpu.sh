#!/usr/bin/env bash
# The scenes of driver and GPU on a machine that has both, against the only judge that counts: the driver itself.
#
#   tests/on-a-gpu.sh                 builds the programs and plays the scenes here
#   tests/on-a-gpu.sh pack FOLDER     builds them into FOLDER, with this script, for a machine without toolkit or network
#   FOLDER/on-a-gpu.sh FOLDER         plays the scenes there
#
# Each scene starts a program twice. With CUDAGUARD=off it loads its kernels on every GPU that it sees, and says what the
# driver answered: that is the truth. With its guard it must then run in silence where at least one GPU took them, be refused
# (78) where every GPU did not, and run in silence where there is none; what it says it cannot tell it may let pass. Status 0:
# the guard was right each time; 1: it was not; 2: the scenes could not be played. What it prints is what a report of it should hold.
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

wrong=0 played=0
report=$(mktemp)
trap 'rm -f "$report"; [ -z "${2-}" ] && [ -z "${1-}" ] && rm -rf "$folder"; true' EXIT

# scene WORDS PROGRAM [VARIABLE=VALUE...]
scene() {
    local words=$1 program=$folder/$2 truth expected said status=0 codes shown
    shift 2
    [ -x "$program" ] || return 0
    truth=$(env "$@" CUDAGUARD=off "$program" use 2>&1) || true
    if grep -q 'kernels loaded, 0$' <<<"$truth"; then
        expected=0
    elif grep -q 'kernels loaded, ' <<<"$truth"; then
        expected=78
    elif grep -qE '^cuInit (803|804)$' <<<"$truth" || { [ "$gpus" = yes ] && grep -q '^cuInit 34$' <<<"$truth"; }; then
        expected=78
    elif [ "$(basename "$program")" = needy ]; then
        expected=78
    else
        expected=0
    fi
    said=$(env "$@" CUDAGUARD_REPORT="$report" "$program" 2>&1 >/dev/null) || status=$?
    codes=$(grep -o 'CG[0-9]*' "$report" | sort -u | paste -sd ' ' || true)
    shown="status $status, level $(sed -n 's/.*"level":\([0-9]\).*/\1/p' "$report" | head -n 1)${codes:+, $codes}"
    played=$((played + 1))
    if [ "$status$expected" = 078 ] && [ -z "$said" ] && grep -q '"verdict":"unknown"' "$report"; then
        printf 'open   %s: %s\n' "$words" "$shown"
    elif [ "$status" != "$expected" ] || { [ "$status" = 0 ] && [ -n "$said" ]; }; then
        wrong=$((wrong + 1))
        printf 'WRONG  %s: %s, but the driver says:\n' "$words" "$shown"
        sed 's/^/       | /' <<<"$truth"
        sed 's/^/       > /' <<<"$said"
    else
        printf 'right  %s: %s\n' "$words" "$shown"
        if [ "$status" = 78 ]; then sed 's/^/       > /' <<<"$said"; fi
    fi
}

echo "== scenes"
uuid=$(cat /proc/driver/nvidia/gpus/*/information 2>/dev/null | sed -n 's/^GPU UUID:[ \t]*//p' | head -n 1 || true)
gpus=$(compgen -G '/dev/nvidia[0-9]*' >/dev/null || [ -e /dev/dxg ] || [ -e /dev/nvmap ] && echo yes || echo no)
stubs=$folder/stubs
for program in model robot runtime needy vision; do
    scene "$program" "$program"
    scene "$program, no GPU visible" "$program" CUDA_VISIBLE_DEVICES=
    scene "$program, no GPU by -1" "$program" CUDA_VISIBLE_DEVICES=-1
    scene "$program, the first" "$program" CUDA_VISIBLE_DEVICES=0
    scene "$program, the first of the bus" "$program" CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=PCI_BUS_ID
    scene "$program, an invalid tail" "$program" CUDA_VISIBLE_DEVICES=0,nonsense
    scene "$program, an invalid head" "$program" CUDA_VISIBLE_DEVICES=nonsense,0
    if [ -n "$uuid" ]; then
        scene "$program, by UUID" "$program" "CUDA_VISIBLE_DEVICES=$uuid"
        scene "$program, by the beginning of a UUID" "$program" "CUDA_VISIBLE_DEVICES=${uuid:0:12}"
    fi
    scene "$program, PTX forced" "$program" CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1
    scene "$program, PTX switched off" "$program" CUDA_DISABLE_PTX_JIT=1 CUDA_CACHE_DISABLE=1
    if [ -d "$stubs" ]; then scene "$program, a stub" "$program" "LD_LIBRARY_PATH=$stubs"; fi
    for compat in /usr/local/cuda*/compat; do
        if [ -e "$compat/libcuda.so.1" ]; then scene "$program, $compat" "$program" "LD_LIBRARY_PATH=$compat"; fi
    done
done

echo "== a child that uses CUDA, of a program whose guard has asked the driver"
# A list that names a UUID's beginning is a doubt: the guard asks.
ways=("${uuid:+CUDA_VISIBLE_DEVICES=${uuid:0:12}}" CUDA_VISIBLE_DEVICES=0)
for way in "${ways[@]}"; do
    if [ -n "$way" ]; then env "$way" CUDAGUARD=warn "$folder/model" fork 2>/dev/null || true; fi
done

echo "== a hundred starts, milliseconds each"
for mode in off enforce off enforce; do
    began=$(date +%s%N)
    for ((k = 0; k < 100; k++)); do CUDAGUARD=$mode "$folder/model" >/dev/null 2>&1 || true; done
    printf 'CUDAGUARD=%-8s %s\n' "$mode" "$(awk "BEGIN { printf \"%.3f\", ($(date +%s%N) - $began) / 1e8 }")"
done

echo "== $played scenes, $wrong of them judged wrongly"
[ "$played" -gt 0 ] || exit 2
[ "$wrong" = 0 ]
