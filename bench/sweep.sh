#!/usr/bin/env bash
# What a sweep costs beside its points, and how 1,000 points scale from 1 to 2 ranks.
#
# Usage: bench/sweep.sh [<build folder>] [<points>]
#   overhead  what a point costs beside its own process: (time of the sweep - the sum of the points') / points
#   scaling   time on one process over time on 2 ranks; each runs twice, in turns, and the faster one counts
#   busy      the share of the ranks' time in which points ran: what scheduling leaves, whatever else
#             the machine does
#   messages  points a second when a point does nothing, on 2 ranks: the coordinator's rate
set -euo pipefail
build=${1:-build} points=${2:-1000}
lockstep=$build/lockstep
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none

# Points of some ten to some hundred milliseconds on one thread, of different lengths.
cat >"$scratch/work.yaml" <<YAML
command: collective
flags: {op: alltoall, algorithm: direct, engine: flow, threads: 1, no-symmetry: true}
axes:
  - topology: ["Spectrum-X:g=256", "Spectrum-X:g=320", "Spectrum-X:g=384", "Spectrum-X:g=448"]
  - size: [16MiB, 32MiB, 64MiB, 128MiB, 256MiB]
  - seed: {seeds: $((points / 20))}
outputs: [schema]
YAML
# Points that do next to nothing.
cat >"$scratch/nothing.yaml" <<YAML
command: collective
flags: {op: allreduce, topology: "Spectrum-X:g=8", engine: analytic, size: 1MiB, threads: 1}
axes: [{seed: {seeds: $points}}]
outputs: [schema]
YAML

seconds() { # <command>…: wall seconds
  local begin end
  begin=$(date +%s.%N)
  "$@" >"$scratch/says"
  end=$(date +%s.%N)
  awk "BEGIN { print $end - $begin }"
}
sum() { awk 'match($0, /"wall_s":[0-9.e+-]*/) { sum += substr($0, RSTART + 9, RLENGTH - 9); ++n } END { print sum, sum / n }' "$1"; }
one() { seconds "$lockstep" sweep "$scratch/$1.yaml" -o "$scratch/one-$1" --restart; }
two() { seconds mpirun -n 2 "$lockstep" sweep "$scratch/$1.yaml" -o "$scratch/two-$1" --restart; }
least() { printf '%s\n' "$@" | sort -g | sed -n 1p; }

echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc), points: $points"
a=$(one nothing)
read -r busy each < <(sum "$scratch/one-nothing/journal.jsonl")
awk "BEGIN { printf \"overhead: %.3f ms a point (sweep %.2f s, points' own processes %.2f s, %.2f ms each)\n\", 1e3 * ($a - $busy) / $points, $a, $busy, 1e3 * $each }"
b=$(two nothing)
awk "BEGIN { printf \"messages: %.0f points a second on 2 ranks, mpirun's start included\n\", $points / $b }"

a1=$(one work) b1=$(two work) b2=$b1
if [[ ${3:-} != once ]]; then a1=$(least "$a1" "$(one work)") b2=$(two work); b1=$(least "$b1" "$b2"); fi
read -r busy each < <(sum "$scratch/one-work/journal.jsonl")
awk "BEGIN { printf \"scaling: 1 process %.2f s, 2 ranks %.2f s: %.2f times as fast (%.1f ms a point)\n\", $a1, $b1, $a1 / $b1, 1e3 * $each }"
read -r busy each < <(sum "$scratch/two-work/journal.jsonl")
awk "BEGIN { printf \"busy: points ran for %.1f %% of the last run's time on 2 ranks, mpirun's start and end included (%.1f ms a point)\\n\", 100 * $busy / 2 / $b2, 1e3 * $each }"
cmp "$scratch/one-work/table.csv" "$scratch/two-work/table.csv" && echo "the tables are the same bytes"
