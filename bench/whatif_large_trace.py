#!/usr/bin/env python3
"""A large made-up trace for bench/whatif_large.sh: the dp_ranks of a small one again and again.

Usage: whatif_large_trace.py <small trace of one step .csv> <out.parquet> <dp_ranks> <steps>

dp_rank d is the small one's d modulo its number; a step is longer by some 64ths. So the large trace is
as free of contradictions as the small one.
"""
import csv
import sys
from array import array

import pyarrow as pa
import pyarrow.parquet as pq

source, target, dp, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rows = list(csv.DictReader(open(source)))
stages = 1 + max(int(r["stage"]) for r in rows)
rows.sort(key=lambda r: (int(r["rank"]), r["optype"], int(r["seq_id"])))
small_dp = 1 + max(int(r["dp_rank"]) for r in rows)
workers = {}
for row in rows:
    workers.setdefault((int(row["stage"]), int(row["dp_rank"])), []).append(row)
names = sorted({r["optype"] for r in rows})


def column(code, values):
    types = {"b": pa.int8(), "h": pa.int16(), "i": pa.int32(), "q": pa.int64(), "f": pa.float32()}
    data = array(code, values)
    return pa.Array.from_buffers(types[code], len(data), [None, pa.py_buffer(data)])


def per_row(value):
    """Rows come by rank = stage * dp + dp_rank."""
    return [value(r, s, d) for s in range(stages) for d in range(dp) for r in workers[s, d % small_dp]]


def whole(key):
    return per_row(lambda r, s, d: int(r[key]))


fixed = {
    "dp_rank": column("h", per_row(lambda r, s, d: d)),
    "stage": column("b", per_row(lambda r, s, d: s)),
    "rank": column("i", per_row(lambda r, s, d: s * dp + d)),
    "seq_id": column("i", whole("seq_id")),
    "mc": column("b", whole("mc")),
    "mb_id": column("b", whole("mb_id")),
    "gmc": column("h", whole("gmc")),
}
optype = pa.DictionaryArray.from_arrays(
    column("b", per_row(lambda r, s, d: names.index(r["optype"]))), pa.array(names))
start = per_row(lambda r, s, d: float(r["start_ts"]))
duration = per_row(lambda r, s, d: float(r["duration"]))
order = ["dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mc", "mb_id", "gmc"]
writer = None
for step in range(steps):
    factor = 1 + step % 7 / 64
    table = dict(fixed)
    table["step"] = column("q", [step] * len(start))
    table["optype"] = optype
    table["start_ts"] = column("f", [s * factor for s in start])
    table["duration"] = column("f", [d * factor for d in duration])
    batch = pa.table({name: table[name] for name in order})
    writer = writer or pq.ParquetWriter(target, batch.schema, compression="snappy")
    writer.write_table(batch)
    print(f"\rstep {step + 1} of {steps}", end="", file=sys.stderr)
writer.close()
print(f"\n{len(start) * steps / 1e6:.1f} million operations", file=sys.stderr)
