#include "trace/read_trace.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

template <class Column>
void append(Column& to, Column& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append(Trace& to, Trace&& from) {
  if (to.size() == 0) {
    to = std::move(from);
    return;
  }
  append(to.dp_rank, from.dp_rank);
  append(to.stage, from.stage);
  append(to.rank, from.rank);
  append(to.step, from.step);
  append(to.optype, from.optype);
  append(to.start_s, from.start_s);
  append(to.duration_s, from.duration_s);
  append(to.seq_id, from.seq_id);
  append(to.mc, from.mc);
  append(to.mb_id, from.mb_id);
  append(to.gmc, from.gmc);
}

}  // namespace

void read_trace(const std::string& path, const TraceChunk& chunk, Warnings* warnings) {
  if (path.ends_with(".parquet")) {
    const FileText file(path, std::int64_t{1} << 40);
    read_trace_parquet(file.view(), path, chunk, warnings);
  } else if (path.ends_with(".csv")) {
    const FileText file(path, std::int64_t{1} << 40);
    read_trace_csv(file.view(), path, chunk, warnings);
  } else {
    throw Error("cannot tell the format of a trace by this name")
        .at(path)
        .expected("a name that ends in .parquet or .csv");
  }
}

Trace read_trace(const std::string& path, Warnings* warnings) {
  Trace trace;
  read_trace(
      path, [&trace](Trace&& rows) { append(trace, std::move(rows)); }, warnings);
  return trace;
}

}  // namespace lockstep
