#!/usr/bin/env python3
"""The flow engine against packets in SimAI's flavour on other fabrics than Spectrum-X's (docs/models.md): four
operations by 1, 16 and 64 MiB by groups of all, 8 and 2 ranks by 16 and 32 GPUs. Packets in three orders of ties, the
flow engine by three seeds.

    bench/simai_fabrics.py build/lockstep [--conf SimAI.conf] [--congestion dcqcn] [FABRIC ...]

Prints for each fabric how far the last rank's mean end is off: median, 90th percentile, and the worst case. A minute a fabric."""
import argparse
import itertools
import os
import statistics
import tempfile

from convoy_runs import ends, means

FABRICS = {
    "Spectrum-X": "Spectrum-X:g={}",
    "HPN": "AlibabaHPN:g={},psn=16",
    "HPN-two-planes": "AlibabaHPN:g={},psn=16,dp=true",
    "DCN+": "DCN+:g={},npa=8,psn=8,app=64",
    "DCN+-two-ToRs": "DCN+:g={},npa=16,psn=8,dt=true",
    "plain": "plain:g={},npa=8,psn=4,bw=100Gbps,apbw=100Gbps,gt=A100,nvbw=2400Gbps",
}
WORKLOAD = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: {gpus} checkpoints: 0 checkpoint_initiates: 0
1
layer -1 1000 {forward} 1 NONE 0 1 {gradients} 0
"""
COMPUTE_US = 1.005  # of that layer, which is no transfer


def off(options, folder, fabric, gpus, op, tp, mebibytes):
    """By how much the flow engine's last rank is off, in percent."""
    workload = os.path.join(folder, "workload.txt")
    call = f"{op} {mebibytes << 20}"
    whole = tp == gpus
    with open(workload, "w") as file:
        file.write(WORKLOAD.format(tp=tp, gpus=gpus, forward=call if whole else "NONE 0", gradients="NONE 0" if whole else call))
    topology = FABRICS[fabric].format(gpus)
    packet = ["--engine", "packet"] + (["--conf", options.conf] if options.conf else [])
    orders = [packet] + [packet + ["--fabric", "TieOrder=Random", "--seed", str(seed)] for seed in (1, 2)]
    truth = means([ends(options.program, workload, topology, flags) for flags in orders])[1]
    flow = ["--engine", "flow"] + (["--congestion", options.congestion] if options.congestion else [])
    found = means([ends(options.program, workload, topology, flow + ["--seed", str(seed)]) for seed in (1, 2, 3)])[1]
    return 100 * ((found - COMPUTE_US) / (truth - COMPUTE_US) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--conf", help="SimAI.conf for the packets; default: the flavour's")
    parser.add_argument("--congestion", help="of the flow engine, which then has windows, marks and pauses")
    parser.add_argument("fabrics", nargs="*", default=list(FABRICS), metavar="FABRIC", help=", ".join(FABRICS))
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        for fabric in options.fabrics:
            cases = {}
            for gpus, op, tp, mebibytes in itertools.product(
                    (16, 32), ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"), (0, 8, 2), (1, 16, 64)):
                case = f"{op} {mebibytes} MiB, {gpus} GPUs, tp {tp or gpus}"
                cases[case] = off(options, folder, fabric, gpus, op, tp or gpus, mebibytes)
            sizes = sorted(map(abs, cases.values()))
            worst = max(cases, key=lambda case: abs(cases[case]))
            print(f"| {fabric} | {statistics.median(sizes):.1f} % | {sizes[int(0.9 * len(sizes))]:.1f} % | "
                  f"{cases[worst]:+.0f} %: {worst} |", flush=True)


if __name__ == "__main__":
    main()
