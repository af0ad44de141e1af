#include <iterator>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "trace/parquet/module.h"
#include "trace/read_trace.h"
#include "trace/trace_columns.h"

namespace lockstep {
namespace {

void write_csv(const Trace& t, const std::string& path) {
  AtomicFile file(path);
  const TraceExtra& extra = t.extra;
  std::string text = join(kTraceColumns, ",");
  for (const std::string_view column : trace_extra_columns(extra)) {
    text += fmt::format(",{}", column);
  }
  text += "\n";
  for (std::size_t i = 0; i < t.size(); ++i) {
    // The shortest decimals that give the floats back.
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{}", t.dp_rank[i],
                   t.stage[i], t.rank[i], t.step[i], to_text(t.optype[i]), t.start_s[i],
                   t.duration_s[i], t.seq_id[i], t.mc[i], t.mb_id[i], t.gmc[i]);
    if (!extra.bytes.empty()) {
      fmt::format_to(std::back_inserter(text), ",{},{},{},{},{}", extra.bytes[i], extra.group[i],
                     extra.tp_rank[i], extra.cp_rank[i], extra.ep_rank[i]);
      if (!extra.alone_s.empty()) {
        fmt::format_to(std::back_inserter(text), ",{}", extra.alone_s[i]);
        if (!extra.undisturbed_s.empty()) {
          fmt::format_to(std::back_inserter(text), ",{}", extra.undisturbed_s[i]);
        }
      }
    }
    text += '\n';
    if (text.size() > (1U << 20)) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text);
  file.commit();
}

}  // namespace

void write_trace(const Trace& trace, const std::string& path) {
  if (path.ends_with(".parquet")) {
    write_file(path, parquet_module().write(trace));
  } else if (path.ends_with(".csv")) {
    write_csv(trace, path);
  } else {
    throw Error("cannot tell the format of a trace by this name")
        .at(path)
        .expected("a name that ends in .parquet or .csv");
  }
}

}  // namespace lockstep
