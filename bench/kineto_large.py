#!/usr/bin/env python3
"""Writes a large trace as PyTorch's profiler (Kineto) would: for each operation of one rank of a timeline of
ours the operator, the launch, the arrow between them and the kernel, again and again until the file is
as large as asked for, steps marked.

Usage: lockstep simulate --model llama3-8b --gpus 8 --topology Spectrum-X:g=8 --trace step.json
       bench/kineto_large.py step.json rank_0.json [--mb 300]
"""
import argparse
import json

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("timeline")
parser.add_argument("output")
parser.add_argument("--mb", type=int, default=300, help="size of the file, millions of bytes")
arguments = parser.parse_args()

with open(arguments.timeline) as file:
    events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X" and event["pid"] == 0]
events.sort(key=lambda event: event["ts"])
length = max(event["ts"] + event["dur"] for event in events) - events[0]["ts"] + 1000

HEAD = {"schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028896768, "computeMajor": 9,
                              "computeMinor": 0, "maxThreadsPerBlock": 1024, "warpSize": 32, "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_count": 2, "nccl_version": "2.26.2",
                            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [0, 1, 2, 3, 4, 5, 6, 7]}]}}
NCCL = ("allreduce", "allgather", "reducescatter", "alltoall", "sendrecv", "broadcast")


def operation(event, number, begin):
    """The four or five events of one operation."""
    name, start, duration = event["name"], begin + event["ts"], event["dur"]
    args = event.get("args", {})
    kind = next((kind for kind in NCCL if kind in (name + event.get("cat", "")).lower().replace("_", "")), None)
    kernel = {"External id": number, "queued": 0, "device": 0, "context": 1, "stream": 7 + event["tid"], "correlation": number,
              "registers per thread": 128, "shared memory": 98304, "blocks per SM": 1.0, "warps per SM": 8.0, "grid": [132, 1, 1],
              "block": [256, 1, 1], "est. achieved occupancy %": 12}
    if kind:
        kernel.update({"Collective name": kind, "In msg nelems": int(args.get("bytes", 1 << 20)) // 2, "Out msg nelems":
                       int(args.get("bytes", 1 << 20)) // 2, "Group size": 8, "dtype": "BFloat16", "Process Group Name": "0",
                       "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"})
        gpu = f"ncclDevKernel_{kind}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    else:
        gpu = f"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_64x3_tn_align8>({name})"
    yield {"ph": "X", "cat": "cpu_op", "name": "c10d::" + kind if kind else "aten::mm", "pid": 4711, "tid": 4711, "ts": start - 20,
           "dur": 15.25, "args": {"External id": number, "Record function id": 0, "Sequence number": number, "Fwd thread id": 0,
                                  "Ev Idx": number, "Input Dims": [[8192, 4096], [4096, 14336]]}}
    yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 4711, "tid": 4711, "ts": start - 12, "dur": 5.5,
           "args": {"External id": number, "cbid": 430, "correlation": number}}
    yield {"ph": "s", "id": number, "pid": 4711, "tid": 4711, "ts": start - 12, "cat": "ac2g", "name": "ac2g"}
    yield {"ph": "X", "cat": "kernel", "name": gpu, "pid": 0, "tid": 7 + event["tid"], "ts": start, "dur": duration, "args": kernel}
    yield {"ph": "f", "id": number, "pid": 0, "tid": 7 + event["tid"], "ts": start, "cat": "ac2g", "name": "ac2g", "bp": "e"}


with open(arguments.output, "w") as file:
    head = json.dumps(HEAD, indent=2)
    file.write(head[:-2] + ',\n  "traceEvents": [\n')
    number, step, first = 0, 0, True
    while file.tell() < arguments.mb * 1_000_000:
        begin = 1.7e15 + step * length
        marks = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 4711, "tid": 4711, "ts": begin, "dur": length - 1}]
        for event in events:
            marks.extend(operation(event, number, begin))
            number += 1
        file.write(("" if first else ",\n") + ",\n".join("  " + json.dumps(mark) for mark in marks))
        step, first = step + 1, False
    file.write('\n  ],\n  "traceName": "rank_0.json"\n}\n')
print(f"{arguments.output}: {step} steps, {number} operations")
