#!/usr/bin/env bash
# All documents of `lockstep whatif` are written, the small ones as in the golden files, and the same
# for the same input.
# Usage: whatif_documents_test.sh <lockstep>
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() {
  "$1" whatif --trace tests/data/whatif/two-stages.csv --meta tests/data/whatif/two-stages.yaml \
    --decompose-threshold 0.9 -o "$2" >/dev/null
}
run "$1" "$out/a"
run "$1" "$out/b"
failed=0
for name in result-two-stages.json ms-two-stages.json mw-two-stages.json causes-two-stages.json \
  heatmap-two-stages.png heatmap-two-stages.svg heatmap-exact-two-stages.png heatmap-exact-two-stages.svg \
  timeline-two-stages.json.gz ideal-timeline-two-stages.json.gz; do
  [[ -s $out/a/$name ]] || { echo "FAILED: no $name"; failed=1; }
  cmp "$out/a/$name" "$out/b/$name" || failed=1
done
for kind in result ms mw; do
  if [[ ${LOCKSTEP_UPDATE_GOLDEN:-} == 1 ]]; then
    cp "$out/a/$kind-two-stages.json" tests/golden/whatif/
  fi
  diff "$out/a/$kind-two-stages.json" "tests/golden/whatif/$kind-two-stages.json" || failed=1
done
for kind in timeline ideal-timeline; do
  gzip -t "$out/a/$kind-two-stages.json.gz" || failed=1
done
[[ $(head -c 4 "$out/a/heatmap-two-stages.png" | tail -c 3) == PNG ]] || { echo "FAILED: no PNG"; failed=1; }
"$1" whatif --trace tests/data/whatif/two-stages.csv --meta tests/data/whatif/two-stages.yaml \
  -o "$out/c" --timelines perfetto >/dev/null
[[ $(cd "$out/c" && echo *timeline*) == "ideal-timeline-two-stages.pftrace.gz timeline-two-stages.pftrace.gz" ]] ||
  { echo "FAILED: --timelines perfetto"; failed=1; }
# Perfetto's own form of a simulated job, as it is written, is at least ten times smaller than the JSON.
"$1" simulate --model llama3-8b --gpus 32 --pp 4 --global-batch 64 --topology Spectrum-X:g=32 \
  --straggler jitter:0-31:normal:0.02 --trace "$out/job.csv" --quiet >/dev/null 2>&1
"$1" whatif --trace "$out/job.csv" --meta "$out/job.yaml" -o "$out/d" --timelines json --timelines perfetto --quiet >/dev/null
for kind in timeline ideal-timeline; do
  plain=$(gzip -dc "$out/d/$kind-simulated.json.gz" | wc -c)
  packed=$(gzip -dc "$out/d/$kind-simulated.pftrace.gz" | wc -c)
  written=$(wc -c <"$out/d/$kind-simulated.pftrace.gz")
  ((10 * written <= plain && 3 * packed <= plain)) ||
    { echo "FAILED: $kind: JSON $plain, protobuf $packed, written $written bytes"; failed=1; }
done
exit "$failed"
