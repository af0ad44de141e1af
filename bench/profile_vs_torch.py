#!/usr/bin/env python3
"""Matrix products and attention of a file of measurements beside PyTorch's on the same GPU.

    bench/profile_vs_torch.py MEASUREMENTS.json [--least 0.95]

Reads a file that `lockstep profile` wrote, runs the same shapes in PyTorch (matmul in bf16, fp16 and
TF32; scaled_dot_product_attention forward and backward), each after warm-ups, with the L2 cache
overwritten before every run and CUDA events around it, and prints the rates side by side. Exits with
1 if a product or an attention of more than 100 us is below --least of PyTorch's rate.
"""
import argparse
import json
import statistics
import sys

import torch
import torch.nn.functional as functional

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def median_time(run, samples=20, warmups=3):
    scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(warmups):
        run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(samples)]
    for begin, end in events:
        scratch.fill_(1)
        begin.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) * 1e-3 for begin, end in events)


def product(entry):
    kind = TYPES[entry["precision"]]
    m, n, k = entry["m"], entry["n"], entry["k"]
    forms = {"forward": ((m, k), (n, k), lambda a, b: a @ b.t()),
             "input-gradient": ((m, k), (k, n), lambda a, b: a @ b),
             "weight-gradient": ((k, m), (k, n), lambda a, b: a.t() @ b)}
    left, right, form = forms[entry["variant"]]
    a = torch.rand(left, device="cuda", dtype=kind) * 2 - 1
    b = torch.rand(right, device="cuda", dtype=kind) * 2 - 1
    return median_time(lambda: form(a, b)), 2.0 * m * n * k


def attention(entry):
    kind = TYPES[entry["precision"]]
    batch, heads, kv_heads = entry["batch"], entry["heads"], entry["kv_heads"]
    queries, keys = entry["queries"], entry["keys"]
    backward, causal = entry["backward"], entry["causal"]

    def tensor(number, length, width):
        return torch.randn(batch, number, length, width, device="cuda", dtype=kind, requires_grad=backward)

    q = tensor(heads, queries, entry["head_dim"])
    k = tensor(kv_heads, keys, entry["head_dim"])
    v = tensor(kv_heads, keys, entry["value_dim"])
    flops = 2.0 * batch * heads * queries * keys * (entry["head_dim"] + entry["value_dim"]) * (0.5 if causal else 1.0)

    def run():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)

    if not backward:
        return median_time(run), flops
    out = run()
    gradient = torch.randn_like(out)
    return (median_time(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)), 2.5 * flops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements")
    parser.add_argument("--least", type=float, default=0.95)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = True
    with open(args.measurements, encoding="utf-8") as file:
        document = json.load(file)
    print(f"{document['device']['gpu']}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    print(f"{'ours us':>10} {'torch us':>10} {'ours TF/s':>10} {'torch TF/s':>10} {'ratio':>6} {'spread':>7}  operator")
    slow = 0
    for entry in document["kernels"]:
        if entry["kind"] not in ("gemm", "attention") or entry["precision"] not in TYPES:
            continue
        try:
            seconds, flops = product(entry) if entry["kind"] == "gemm" else attention(entry)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as problem:
            print(f"PyTorch cannot run it: {str(problem).splitlines()[0]}")
            continue
        ours = entry["median_s"]
        ratio = seconds / ours
        slow += ours > 100e-6 and ratio < args.least
        shape = " ".join(f"{key}={entry[key]}" for key in ("m", "n", "k", "batch", "heads", "kv_heads", "queries",
                                                           "keys", "head_dim", "value_dim") if key in entry)
        kind = entry.get("variant", "backward" if entry.get("backward") else "forward")
        print(f"{ours * 1e6:10.1f} {seconds * 1e6:10.1f} {flops / ours * 1e-12:10.1f} {flops / seconds * 1e-12:10.1f} "
              f"{ratio:6.3f} {entry['spread'] * 100:6.2f}%  {entry['kind']} {entry['precision']} {shape} {kind}")
    print(f"{slow} of more than 100 us are below {args.least:.0%} of PyTorch's rate")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
