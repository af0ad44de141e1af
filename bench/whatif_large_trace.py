#!/usr/bin/env python3
"""A large made-up trace for bench/whatif_large.sh: 16 stages, 1F1B, 48 microbatches, no overlap.

Usage: whatif_large_trace.py <lockstep step of one dp_rank .csv> <out.parquet> <dp_ranks> <steps>

Each step and dp_rank repeats the operations of the given step; a step is longer by some 64ths, and a
forward or backward pass of a rank shorter by some 128ths.
"""
import csv
import random
import sys
from array import array

import pyarrow as pa
import pyarrow.parquet as pq

source, target, dp, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rows = list(csv.DictReader(open(source)))
stages = 1 + max(int(r["stage"]) for r in rows)
rows.sort(key=lambda r: (int(r["rank"]), r["optype"], int(r["seq_id"])))
by_stage = [[r for r in rows if int(r["stage"]) == s] for s in range(stages)]
names = sorted({r["optype"] for r in rows})


def column(code, values):
    types = {"b": pa.int8(), "h": pa.int16(), "i": pa.int32(), "q": pa.int64(), "f": pa.float32()}
    data = array(code, values)
    return pa.Array.from_buffers(types[code], len(data), [None, pa.py_buffer(data)])


def per_worker(values_of_stage):
    """Rows come by rank = stage * dp + dp_rank."""
    out = []
    for stage, own in enumerate(by_stage):
        out += values_of_stage(own, stage) * dp
    return out


def whole(key):
    return per_worker(lambda own, _: [int(r[key]) for r in own])


fixed = {
    "dp_rank": column("h", [d for own in by_stage for d in range(dp) for _ in own]),
    "stage": column("b", whole("stage")),
    "rank": column("i", [s * dp + d for s, own in enumerate(by_stage) for d in range(dp) for _ in own]),
    "seq_id": column("i", whole("seq_id")),
    "mc": column("b", whole("mc")),
    "mb_id": column("b", whole("mb_id")),
    "gmc": column("h", whole("gmc")),
}
codes = column("b", per_worker(lambda own, _: [names.index(r["optype"]) for r in own]))
optype = pa.DictionaryArray.from_arrays(codes, pa.array(names))
start = per_worker(lambda own, _: [float(r["start_ts"]) for r in own])
duration = per_worker(lambda own, _: [float(r["duration"]) for r in own])
draws = per_worker(lambda own, _: ["compute" in r["optype"] for r in own])
order = ["dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mc", "mb_id", "gmc"]
rng = random.Random(1)
writer = None
for step in range(steps):
    factor = 1 + step % 7 / 64
    noise = rng.choices([1 - k / 128 for k in range(16)], k=1 << 16)
    table = dict(fixed)
    table["step"] = column("q", [step] * len(start))
    table["optype"] = optype
    table["start_ts"] = column("f", [s * factor for s in start])
    table["duration"] = column(
        "f", [d * factor * (noise[(i * 7 + step) & 0xFFFF] if draw else 1)
              for i, (d, draw) in enumerate(zip(duration, draws))])
    batch = pa.table({name: table[name] for name in order})
    writer = writer or pq.ParquetWriter(target, batch.schema, compression="snappy")
    writer.write_table(batch)
    print(f"\rstep {step + 1} of {steps}", end="", file=sys.stderr)
writer.close()
print(f"\n{len(start) * steps / 1e6:.1f} million operations", file=sys.stderr)
