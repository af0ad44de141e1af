#!/usr/bin/env python3
"""How Metis's search grows: made-up profiles of equal blocks on servers of A100s and T4s by turns, tp 1 to 8, up to 4
samples a rank; CPU seconds and peak memory of `lockstep plan`, strict, on two threads.

Usage: planner_metis_large.py <lockstep> [--gpus N]"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

SLOWER = {"A100": 1, "T4": 4.8}


def write_profiles(folder, layers):
    for gpu, slower in SLOWER.items():
        for tp in (1, 2, 4, 8):
            for samples in (1, 2, 4):
                block = 7.375 * slower * samples / tp**0.85
                times = [0.0725 * slower * samples] + [block] * (layers - 2) + [0.1025 * slower * samples]
                share = samples / tp / 4
                profile = {
                    "model": {"model_name": "made-up", "num_layers": layers,
                              "parameters": {"total_parameters_bytes": 0, "parameters_per_layer_bytes":
                                             [393216000] + [202383360] * (layers - 2) + [393220096]}},
                    "execution_time": {"total_time_ms": 1.23 * sum(times) + 40, "forward_backward_time_ms":
                                       1.23 * sum(times), "batch_generator_time_ms": 0.91,
                                       "layernorm_grads_all_reduce_time_ms": 0.02,
                                       "embedding_grads_all_reduce_time_ms": 0.02, "optimizer_time_ms": 39.3 / tp,
                                       "layer_compute_total_ms": times},
                    "execution_memory": {"total_memory": 0, "layer_memory_total_mb":
                                         [7820 * share] + [4146 * share] * (layers - 2) + [12132 * share]}}
                name = f"DeviceType.{gpu}_tp{tp}_bs{samples}.json"
                (folder / name).write_text(json.dumps(profile))


def write_cluster(folder, servers):
    addresses = [f"10.0.{i // 250}.{i % 250 + 1}" for i in range(servers)]
    gpus = ["A100" if i % 2 == 0 else "T4" for i in range(servers)]
    (folder / "hostfile").write_text("".join(f"{a} slots=8\n" for a in addresses))
    (folder / "cluster.json").write_text(json.dumps({
        a: {"instance_type": g, "inter_bandwidth": 10, "intra_bandwidth": 46 if g == "A100" else 50,
            "memory": 80 if g == "A100" else 15} for a, g in zip(addresses, gpus)}))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("lockstep")
    options.add_argument("--gpus", type=int, help="the rows of so many alone")
    given = options.parse_args()
    print("| GPUs | layers | samples | best s | proven | CPU s | MB |\n|---|---|---|---|---|---|---|")
    for gpus, layers, samples in ((32, 24, 256), (64, 24, 256), (128, 24, 256), (512, 48, 512)):
        if given.gpus not in (None, gpus):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            write_profiles(folder, layers)
            write_cluster(folder, gpus // 8)
            run = subprocess.run(
                ["/usr/bin/time", "-f", "%U %S %M", given.lockstep, "plan", "--metis-hostfile", folder / "hostfile",
                 "--metis-clusterfile", folder / "cluster.json", "--profiles", folder, "--layers", str(layers), "--gbs",
                 str(samples), "--max-batch", "4", "--max-tp", "8", "--threads", "2", "--json"],
                capture_output=True, text=True, check=True)
            plan = json.loads(run.stdout)
            user, system, kilobytes = re.findall(r"[\d.]+", run.stderr.strip().splitlines()[-1])
            print(f"| {gpus} | {layers} | {samples} | {plan['time_s']:.4f} | {'yes' if plan['exact'] else 'no'} | "
                  f"{float(user) + float(system):.2f} | {int(kilobytes) // 1024} |")


main()
