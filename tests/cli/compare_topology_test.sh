#!/usr/bin/env bash
# compare --topology says of each row what the flow engine says of the same collective there, so that
# links of another rate tell. Usage: compare_topology_test.sh <lockstep>
set -euo pipefail
lockstep=$1
log=tests/data/logs/two-tables.txt # four GPUs in two servers, by ring; a send between two
failed=0
complain() {
  printf 'FAILED: %s\n' "$@"
  failed=1
}
# predicted <flags>…: us by row.
predicted() { "$lockstep" compare "$log" --json "$@" | grep -o '"predicted_s": [^,]*' | awk '{ printf "%.9g\n", $2 }'; }
# simulated <flags>…: the same of sizes out of place and in place.
simulated() { "$lockstep" collective --json --nccl-version 2.29.2 "$@" | grep -o '"time_s": [^,]*' | awk '{ printf "%.9g\n%.9g\n", $2, $2 }'; }

for rate in 400Gbps 100Gbps; do
  topology=Spectrum-X:g=16,nic=$rate
  there=$(predicted --topology "$topology")
  here=$(
    simulated --op allreduce --size 1MiB:4MiB --topology "$topology" --placement 0,1,8,9 --algorithm ring
    simulated --op sendrecv --size 1MiB --topology "$topology" --placement 0,8
  )
  [[ $there == "$here" ]] || complain "on $topology: $there" "collective: $here"
  sum[${rate%Gbps}]=$(awk '{ s += $1 } END { print s }' <<<"$there")
done
awk -v fast="${sum[400]}" -v slow="${sum[100]}" 'BEGIN { exit !(slow > 1.5 * fast) }' ||
  complain "NICs of a quarter of the rate: ${sum[100]} s, not much above ${sum[400]} s"
# A preset beside it leaves the prediction to its rates; so does --engine formula.
[[ $(predicted --topology Spectrum-X:g=16 --preset dgx-h100) == "$(predicted --topology Spectrum-X:g=16 --preset dgx-h100 --engine formula)" ]] ||
  complain "with a preset the formula predicts"
[[ $(predicted --topology Spectrum-X:g=16) != "$(predicted --topology Spectrum-X:g=16 --engine formula)" ]] ||
  complain "--engine formula changes nothing"
# Too few servers for the rows: said, and counted.
said=$("$lockstep" compare "$log" --topology Spectrum-X:g=8 2>&1) && complain "one server is enough for two"
[[ $said == *'the topology has no 2 servers of 2 GPUs'* ]] || complain "$said"
exit $failed
