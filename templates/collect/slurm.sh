#!/bin/sh
# What each node of a partition has, one line for a node:
#
#   sh slurm.sh PARTITION NODES > fleet.jsonl
#   cargo-cudaguard verify my-model --fleet fleet.jsonl
#
# The command must be in PATH on the nodes, or on a file system that they share. A job without --gres sees no GPU where the site
# confines devices: SRUN_OPTIONS="--gres=gpu:1" claims one.
set -eu
partition=${1:?the partition} nodes=${2:?how many nodes it has}
# shellcheck disable=SC2086 # options are words
exec srun --partition="$partition" --nodes="$nodes" --ntasks-per-node=1 --immediate=60 ${SRUN_OPTIONS:-} \
    sh -c 'exec cargo-cudaguard probe --line --name "$SLURMD_NODENAME"'
