#!/bin/sh
#SBATCH --job-name=kvseam
#SBATCH --cpus-per-task=1
#SBATCH --ntasks=1
# One shard of a sweep for each task of the array, which is numbered from 0. README.md says how to submit it.
#   KVSEAM_SHARDS  how many shards there are, also where only some of them are submitted
#   KVSEAM_PLAN    the plan
#   KVSEAM_OUT     the folder of the ledgers
#   KVSEAM         the program, where it is not on the path
set -eu
mkdir -p "$KVSEAM_OUT"
# `exec`, so that the signals of scancel and of a time limit reach the sweep, which keeps what is finished.
exec "${KVSEAM:-kvseam}" sweep "$KVSEAM_PLAN" --threads "${SLURM_CPUS_PER_TASK:-1}" \
    --out "$KVSEAM_OUT/shard-$SLURM_ARRAY_TASK_ID-of-$KVSEAM_SHARDS.sqlite"
