#!/bin/sh
# Collects a host file from each node of a partition, one per line:
#
#   sh slurm.sh PARTITION NODES > fleet.jsonl
#   cargo-cudaguard verify my-model --fleet fleet.jsonl
#
# The command must be in PATH on the nodes, or on a shared file system. If the site confines devices, a job without --gres sees no
# GPU; set SRUN_OPTIONS="--gres=gpu:1" to claim one.
set -eu
partition=${1:?the partition} nodes=${2:?how many nodes it has}
# shellcheck disable=SC2086 # options are words
exec srun --partition="$partition" --nodes="$nodes" --ntasks-per-node=1 --immediate=60 ${SRUN_OPTIONS:-} \
    sh -c 'exec cargo-cudaguard probe --line --name "$SLURMD_NODENAME"'
