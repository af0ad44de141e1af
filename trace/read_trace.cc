#include "trace/read_trace.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/gunzip.h"
#include "trace/parquet/module.h"

namespace lockstep {
void read_trace(const std::string& path, const TraceChunk& chunk, Warnings* warnings) {
  if (path.ends_with(".parquet")) {
    const FileText file(path);
    read_trace_parquet(file.view(), path, chunk, warnings);
  } else if (path.ends_with(".csv") || path.ends_with(".csv.gz")) {
    const UnpackedText file(path);
    read_trace_csv(file.view(), path, chunk, warnings);
  } else {
    throw Error("cannot tell the format of a trace by this name")
        .at(path)
        .expected("a name that ends in .parquet, .csv or .csv.gz");
  }
}

std::optional<std::int64_t> told_rows(const std::string& path) {
  if (!path.ends_with(".parquet")) {
    return std::nullopt;
  }
  const FileText file(path);
  return parquet_module().rows(file.view(), path);
}

Trace read_trace(const std::string& path, Warnings* warnings) {
  Trace trace;
  read_trace(
      path, [&trace](Trace&& rows) { append_rows(trace, std::move(rows)); }, warnings);
  return trace;
}

}  // namespace lockstep
