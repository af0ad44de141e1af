// ByteDance's NDTimeline exports: Parquet, or the same columns as CSV (trace/read_trace.h).
#include <string>

#include "base/error.h"
#include "trace/csv_fields.h"
#include "trace/log_reader.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view) {
  if (head.starts_with("PAR1")) {
    return true;
  }
  std::string_view line;
  return next_line(head, line) && line.find("dp_rank") != std::string_view::npos &&
         line.find("optype") != std::string_view::npos &&
         line.find("start_ts") != std::string_view::npos;
}

CommType comm_of(TraceOp op) {
  switch (op) {
    case TraceOp::kParamsAllGather:
      return CommType::kAllGather;
    case TraceOp::kGradsReduceScatter:
      return CommType::kReduceScatter;
    case TraceOp::kEmbeddingGradsAllReduce:
    case TraceOp::kLayernormGradsAllReduce:
    case TraceOp::kSeparateGradsAllReduce:
    case TraceOp::kOptimizerClip:
      return CommType::kAllReduce;
    default:
      return is_p2p(op) ? CommType::kSendRecv : CommType::kNone;
  }
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  const auto take = [&](Trace&& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      OpRow row;
      row.rank = rows.rank[i];
      row.name = names.index(to_text(rows.optype[i]));
      row.op = comm_of(rows.optype[i]);
      row.kind = row.op == CommType::kNone ? OpKind::kCompute : OpKind::kCommunication;
      row.stream = static_cast<std::int32_t>(rows.optype[i]);
      row.group = groups.index("step " + std::to_string(rows.step[i]));
      row.begin_s = static_cast<double>(rows.start_s[i]);
      row.duration_s = static_cast<double>(rows.duration_s[i]);
      log.ops.push_back(row);
    }
  };
  if (text.starts_with("PAR1")) {
    read_trace_parquet(text, log.file, take, &log.warnings);
  } else {
    read_trace_csv(text, log.file, take, &log.warnings);
  }
  if (log.ops.empty()) {
    throw Error("the trace has no rows");
  }
}

}  // namespace

extern const LogReader kNdtimelineLogReader;
const LogReader kNdtimelineLogReader{"ndtimeline", "NDTimeline exports (.parquet, .csv)", sniff,
                                     read};

}  // namespace lockstep
