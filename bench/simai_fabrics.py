#!/usr/bin/env python3
"""The flow engine against packets in SimAI's flavour on other fabrics than Spectrum-X's (docs/models.md): four
operations by 1, 16 and 64 MiB by groups of all, 8 and 2 ranks by 16 and 32 GPUs. Packets in three orders of ties, the
flow engine by three seeds.

    bench/simai_fabrics.py build/lockstep [--conf SimAI.conf] [--congestion dcqcn] [FABRIC ...]

Prints for each fabric how far the last rank's mean end is off: median, 90th percentile, and the worst case. A minute a fabric.
At last how far off messages of which length are, over all fabrics, in windows (the bandwidth-delay product of the
longest way)."""
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
WINDOW_KB = {"Spectrum-X": 200, "HPN": 100, "HPN-two-planes": 100, "DCN+": 200, "DCN+-two-ToRs": 100, "plain": 87}
WORKLOAD = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: {gpus} checkpoints: 0 checkpoint_initiates: 0
1
layer -1 1000 {forward} 1 NONE 0 1 {gradients} 0
"""
COMPUTE_US = 1.005  # of that layer, which is no transfer


def windows(fabric, gpus, op, tp, mebibytes):
    """A message's length: a ring has a channel for each rank of the group on a server of eight."""
    ranks = tp if tp == gpus else gpus // tp
    channels = 8 if tp == gpus else max(1, 8 // tp)
    return 1024 * mebibytes / ranks / (1 if op == "ALLTOALL" else channels) / WINDOW_KB[fabric]


def print_by_length(cases):
    """cases: (operation, windows, percent off)."""
    print("\n| windows | rings | all-to-alls |\n|---|---|---|")
    for least, most in itertools.pairwise((0, 1 / 3, 1, 2, 4, 8, 16, float("inf"))):
        cells = []
        for pairwise in (False, True):
            found = [abs(percent) for op, length, percent in cases if (op == "ALLTOALL") == pairwise and least <= length < most]
            cells.append(f"{statistics.mean(found):.1f} % of {len(found)}" if found else "none")
        print(f"| {least:.2g} to {most:.2g} | {cells[0]} | {cells[1]} |")


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
    by_length = []
    with tempfile.TemporaryDirectory() as folder:
        for fabric in options.fabrics:
            cases = {}
            for gpus, op, tp, mebibytes in itertools.product(
                    (16, 32), ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"), (0, 8, 2), (1, 16, 64)):
                case = f"{op} {mebibytes} MiB, {gpus} GPUs, tp {tp or gpus}"
                cases[case] = off(options, folder, fabric, gpus, op, tp or gpus, mebibytes)
                by_length.append((op, windows(fabric, gpus, op, tp or gpus, mebibytes), cases[case]))
            sizes = sorted(map(abs, cases.values()))
            worst = max(cases, key=lambda case: abs(cases[case]))
            print(f"| {fabric} | {statistics.median(sizes):.1f} % | {sizes[int(0.9 * len(sizes))]:.1f} % | "
                  f"{cases[worst]:+.0f} %: {worst} |", flush=True)
    print_by_length(by_length)


if __name__ == "__main__":
    main()
