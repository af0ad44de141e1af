// What stands in for the Parquet reader and writer in a build without Arrow.
#include "trace/read_trace.h"
#include "trace/writers/parquet_writer.h"

namespace lockstep {
namespace {

Error missing() {
  return Error("this build has no Apache Arrow, which reads and writes Parquet",
               ExitCode::kMissingPart)
      .hint("./setup installs it; then configure and build again. Or use a .csv trace");
}

}  // namespace

bool has_parquet() { return false; }

void read_trace_parquet(std::string_view, const std::string& file, const TraceChunk&, Warnings*) {
  throw missing().at(file);
}

std::string to_parquet_bytes(const Trace&) { throw missing(); }

}  // namespace lockstep
