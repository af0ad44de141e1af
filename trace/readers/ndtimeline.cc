// ByteDance's NDTimeline exports: Parquet, or the same columns as CSV (trace/read_trace.h).
#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include <fmt/format.h>

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

/// Which workers an operation is one of, in words: those of a group, or both ends of a link between
/// stages. Empty: nobody that the trace records.
std::string group_of(const Trace& rows, std::size_t i) {
  const std::int32_t dp = rows.dp_rank[i], stage = rows.stage[i];
  const std::int32_t tp = rows.extra.tp_rank.empty() ? 0 : rows.extra.tp_rank[i];
  const std::int32_t cp = rows.extra.cp_rank.empty() ? 0 : rows.extra.cp_rank[i];
  switch (rows.optype[i]) {
    case TraceOp::kParamsAllGather:
    case TraceOp::kGradsReduceScatter:
      return fmt::format("dp stage {} tp {}", stage, tp);
    case TraceOp::kEmbeddingGradsAllReduce:
      return fmt::format("embedding dp {} tp {} cp {}", dp, tp, cp);
    case TraceOp::kLayernormGradsAllReduce:
      return fmt::format("tp dp {} stage {} cp {}", dp, stage, cp);
    case TraceOp::kOptimizerClip:
      return "all";
    case TraceOp::kForwardSend:
    case TraceOp::kForwardRecv:
    case TraceOp::kBackwardSend:
    case TraceOp::kBackwardRecv:
      return fmt::format("pp dp {} tp {} cp {}", dp, tp, cp);
    default:
      return {};
  }
}

/// The two ends of a message: what leaves chunk g of the model forward comes to g + 1, and backward
/// to g - 1. Empty where the trace numbers no chunks.
std::string message_of(const Trace& rows, std::size_t i, const std::string& group) {
  const TraceOp op = rows.optype[i];
  if (!is_p2p(op) || rows.gmc[i] < 0) {
    return {};
  }
  const bool forward = op == TraceOp::kForwardSend || op == TraceOp::kForwardRecv;
  const bool receives = op == TraceOp::kForwardRecv || op == TraceOp::kBackwardRecv;
  const std::int32_t from = rows.gmc[i] + (receives ? (forward ? -1 : 1) : 0);
  return fmt::format("{} {} {} {} {}", group, rows.step[i], forward, from, rows.mb_id[i]);
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  std::map<std::string, std::int64_t> messages;
  const auto take = [&](Trace&& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      OpRow row;
      row.rank = rows.rank[i];
      row.name = names.index(to_text(rows.optype[i]));
      row.op = comm_of(rows.optype[i]);
      row.kind = row.op == CommType::kNone ? OpKind::kCompute : OpKind::kCommunication;
      row.stream = static_cast<std::int32_t>(rows.optype[i]);
      row.step = rows.step[i];
      if (const std::string group = group_of(rows, i); !group.empty()) {
        row.group = groups.index(group);
        if (const std::string message = message_of(rows, i, group); !message.empty()) {
          row.occurrence = messages.try_emplace(message, std::ssize(messages)).first->second;
        }
      }
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
  std::map<std::int64_t, double> ends;  // of the steps, whose zero is their first operation
  for (const OpRow& row : log.ops) {
    double& end = ends[row.step];
    end = std::max(end, row.begin_s + row.duration_s);
  }
  for (const auto& [step, end] : ends) {
    log.steps.push_back({step, -1, end});
  }
}

}  // namespace

extern const LogReader kNdtimelineLogReader;
const LogReader kNdtimelineLogReader{"ndtimeline", "NDTimeline exports (.parquet, .csv)", sniff,
                                     read};

}  // namespace lockstep
