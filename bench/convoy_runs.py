#!/usr/bin/env python3
"""How near the flow engine's messages come to packets (docs/models.md, convoys on the flow engine): all-reduces (or others) over
servers in SimAI's flavour, by the packet engine in several orders of simultaneous packets and by the flow engine
over seeds.

    bench/convoy_runs.py build/lockstep [--conf SimAI.conf] [--op ALLREDUCE] [--orders 5] [--seeds 8] [MEBIBYTES:GPUS ...]

Prints a row of the table a case: the mean end of the first and the last rank in us, their deviation, and by how much the
flow engine's means are off. Large ones take half a minute a run of packets."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

WORKLOAD = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {0} ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: {0} checkpoints: 0 checkpoint_initiates: 0
1
layer -1 556000 {2} {1} 1 NONE 0 1 NONE 0 1
"""
CASES = ["128:16", "256:16", "1024:16", "128:32", "256:32", "1024:32", "64:64", "128:64", "256:64", "512:64", "1024:64",
         "128:128", "256:128", "512:128", "1024:128"]


def ends(program, workload, topology, flags):
    command = [program, "simulate", "--flavour", "simai", "--send-latency", "6us", "--workload", workload, "--topology",
               topology, "--json", "-q"] + flags
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return 1e6 * result["first_rank_end_s"], 1e6 * result["last_rank_end_s"]


def means(runs):
    return [statistics.mean(run[i] for run in runs) for i in (0, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--conf", help="SimAI.conf for the packets; default: the flavour's")
    parser.add_argument("--op", default="ALLREDUCE", help="ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL")
    parser.add_argument("--orders", type=int, default=5, help="random orders of packets, besides the one scheduled")
    parser.add_argument("--seeds", type=int, default=8, help="of the flow engine")
    parser.add_argument("cases", nargs="*", default=CASES, metavar="MEBIBYTES:GPUS")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder:
        workload = os.path.join(folder, "workload.txt")
        for case in options.cases:
            mebibytes, gpus = map(int, case.split(":"))
            with open(workload, "w") as file:
                file.write(WORKLOAD.format(gpus, mebibytes << 20, options.op))
            packets = ["--engine", "packet"] + (["--conf", options.conf] if options.conf else [])
            orders = [packets] + [packets + ["--fabric", "TieOrder=Random", "--seed", str(seed)]
                                  for seed in range(1, options.orders + 1)]
            topology = f"Spectrum-X:g={gpus}"
            truth = [ends(options.program, workload, topology, flags) for flags in orders]
            flow = [ends(options.program, workload, topology, ["--engine", "flow", "--seed", str(seed)])
                    for seed in range(1, options.seeds + 1)]
            told, found = means(truth), means(flow)
            off = [100 * (ours / theirs - 1) for ours, theirs in zip(found, told)]
            deviations = [statistics.stdev(run[0] for run in runs) if len(runs) > 1 else 0 for runs in (truth, flow)]
            print(f"| {mebibytes} MiB, {gpus} GPUs | {told[0]:.0f}, {told[1]:.0f} ({len(truth)}) | {deviations[0]:.0f} | "
                  f"{found[0]:.0f}, {found[1]:.0f} | {off[0]:+.1f}, {off[1]:+.1f} % | {deviations[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
