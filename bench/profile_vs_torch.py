#!/usr/bin/env python3
"""Operators of a file of measurements beside PyTorch's on the same GPU.

    bench/profile_vs_torch.py MEASUREMENTS.json [--least 0.95]

Reads a file that `lockstep profile` wrote and runs the same shapes in PyTorch: matmul in bf16, fp16 and
TF32, weights' gradients added to fp32; scaled_dot_product_attention forward and backward, the fastest of
its fused kernels; bmm and softmax; norms, GELU, sums. Each is timed as `lockstep profile --no-load` does, at the GPU's
highest clock: before every run a pause and a fill that overwrites the L2 cache, CUDA events around it.
(Near the power limit the clock wanders by a fifth: two programs would be compared by luck.) Prints times
side by side. Exits with 1 if a product or an attention of more than 100 us is below --least of PyTorch's rate.
"""
import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

SCRATCH = None
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def median_time(run, samples=20, warmups=3):
    for _ in range(warmups):
        run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(samples)]
    time.sleep(0.1)
    for begin, end in events:
        torch.cuda._sleep(800_000)  # cycles: the host has time to enqueue what follows
        SCRATCH.fill_(1)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        time.sleep(4e-3 * begin.elapsed_time(end))
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
    if entry["variant"] == "weight-gradient" and kind != torch.float32:
        sums = torch.zeros(m, n, device="cuda")
        return median_time(lambda: torch.addmm(sums, a.t(), b, out_dtype=torch.float32, out=sums)), 2.0 * m * n * k
    return median_time(lambda: form(a, b)), 2.0 * m * n * k


def batched_product(entry):
    groups, m, n, k = entry["groups"], entry["m"], entry["n"], entry["k"]

    def tensor(rows, columns):
        return torch.rand(groups, rows, columns, device="cuda", dtype=TYPES[entry["precision"]]) * 2 - 1

    a = tensor(m, k)
    b = tensor(n, k).transpose(1, 2) if entry["variant"] == "forward" else tensor(k, n)
    return median_time(lambda: torch.bmm(a, b)), 2.0 * groups * m * n * k


def softmax(entry):
    """PyTorch's knows no mask: it reads and writes as much, of what ours reads half where it is causal."""
    x = torch.randn(entry["batch"], entry["queries"], entry["keys"], device="cuda", dtype=TYPES[entry["precision"]])
    return both_ways(entry, lambda x: torch.softmax(x, -1), [x], 2 * x.numel())


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

    def timed():
        if not backward:
            return median_time(run)
        out = run()
        gradient = torch.randn_like(out)
        return median_time(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))

    best = float("inf")  # of its own choice and both fused kernels
    for backends in (None, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        try:
            if backends is None:
                best = min(best, timed())
            else:
                with sdpa_kernel(backends):
                    best = min(best, timed())
        except RuntimeError:
            continue  # it has no such kernel for the shape
    return best, (2.5 if backward else 1.0) * flops


def both_ways(entry, run, inputs, moved):
    """Time of run(*inputs) or of its gradient, and the bytes that it moves at least."""
    bytes_each = inputs[0].element_size()
    if not entry.get("backward"):
        return median_time(lambda: run(*inputs)), float(moved * bytes_each)
    leaves = [x.requires_grad_() for x in inputs]
    out = run(*leaves)
    gradient = torch.randn_like(out)
    return (median_time(lambda: torch.autograd.grad(out, leaves, gradient, retain_graph=True)),
            moved * bytes_each * 1.5)


def elements(entry):
    kind = TYPES[entry["precision"]]
    rows, width = entry["rows"], entry["width"]
    x = torch.randn(rows, width, device="cuda", dtype=kind)
    if entry["kind"] == "norm":
        gamma = torch.randn(width, device="cuda", dtype=kind)
        if entry["variant"] == "layer":
            beta = torch.randn(width, device="cuda", dtype=kind)
            return both_ways(entry, lambda x, g, b: functional.layer_norm(x, (width,), g, b), [x, gamma, beta], 2 * x.numel())
        return both_ways(entry, lambda x, g: functional.rms_norm(x, (width,), g), [x, gamma], 2 * x.numel())
    if entry["kind"] == "activation":
        return both_ways(entry, functional.gelu, [x], 2 * x.numel())
    if entry["kind"] == "bias-gradient":
        return median_time(lambda: x.sum(0)), float(x.numel() * x.element_size())
    y = torch.randn_like(x)
    return median_time(lambda: x + y), 3.0 * x.numel() * x.element_size()


def run_entry(entry):
    if entry["kind"] == "gemm":
        return product(entry)
    if entry["kind"] == "batched-gemm":
        return batched_product(entry)
    if entry["kind"] == "softmax":
        return softmax(entry)
    if entry["kind"] == "attention":
        return attention(entry)
    return elements(entry)


def is_known(entry):
    return entry["precision"] in TYPES and (
        entry["kind"] in ("gemm", "batched-gemm", "softmax", "attention", "norm", "residual", "bias-gradient")
        or (entry["kind"] == "activation" and entry["variant"] == "gelu"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements")
    parser.add_argument("--least", type=float, default=0.95)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = True
    global SCRATCH
    SCRATCH = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    with open(args.measurements, encoding="utf-8") as file:
        document = json.load(file)
    print(f"{document['device']['gpu']}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    print(f"{'ours us':>10} {'torch us':>10} {'ours T/s':>10} {'torch T/s':>10} {'ratio':>6} {'spread':>7}  operator")
    slow = 0
    for entry in document["kernels"]:
        if not is_known(entry):
            continue
        try:
            seconds, flops = run_entry(entry)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as problem:
            print(f"PyTorch cannot run it: {str(problem).splitlines()[0]}")
            continue
        ours = entry["median_s"]
        ratio = seconds / ours
        slow += entry["kind"] in ("gemm", "attention") and ours > 100e-6 and ratio < args.least
        shape = " ".join(f"{key}={entry[key]}" for key in ("groups", "m", "n", "k", "batch", "heads", "kv_heads", "queries",
                                                           "keys", "head_dim", "value_dim", "rows", "width")
                         if key in entry)
        kind = entry.get("variant", "backward" if entry.get("backward") else "forward")
        print(f"{ours * 1e6:10.1f} {seconds * 1e6:10.1f} {flops / ours * 1e-12:10.1f} {flops / seconds * 1e-12:10.1f} "
              f"{ratio:6.3f} {entry['spread'] * 100:6.2f}%  {entry['kind']} {entry['precision']} {shape} {kind}")
    print(f"{slow} of more than 100 us are below {args.least:.0%} of PyTorch's rate")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
