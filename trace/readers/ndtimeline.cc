// ByteDance's NDTimeline exports: Parquet, or the same columns as CSV (trace/read_trace.h).
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
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

/// What a transfer with peers that the trace does not record would take if none was late; below 0:
/// another row, or nobody knows.
double alone_s(const Trace& rows, std::size_t i) {
  const std::vector<float>& alone = rows.extra.alone_s;
  return is_peer_comm(rows.optype[i]) && !alone.empty() ? static_cast<double>(alone[i]) : -1;
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
    case TraceOp::kForwardTpComm:
    case TraceOp::kBackwardTpComm:
    case TraceOp::kWeightTpComm:
      return fmt::format("peers dp {} stage {}", dp, stage);
    default:
      return {};
  }
}

/// Finds both ends of messages. The k-th message of a direction, from or to a stage, is that of the
/// stage's k-th pass; where a stage lacks the first one's (a list one short) of the k+1-th. What
/// leaves chunk g of the model forward comes to g + 1, and backward to g - 1.
class Messages {
 public:
  void add(const Trace& rows, std::size_t i, std::size_t op, const std::string& group) {
    const TraceOp type = rows.optype[i];
    const bool forward = type == TraceOp::kForwardCompute || type == TraceOp::kForwardSend ||
                         type == TraceOp::kForwardRecv;
    Direction& direction = directions_[{rows.rank[i], rows.step[i], forward}];
    const Ends ends{rows.gmc[i], rows.mb_id[i]};
    if (type == TraceOp::kForwardCompute || type == TraceOp::kBackwardCompute) {
      direction.passes[rows.seq_id[i]] = ends;
    } else if (is_p2p(type)) {
      const bool receives = type == TraceOp::kForwardRecv || type == TraceOp::kBackwardRecv;
      direction.receives += receives ? 1 : 0;
      messages_.push_back({&direction, fmt::format("{} {} {}", group, rows.step[i], forward), op,
                           rows.seq_id[i],
                           !receives ? 0
                           : forward ? -1
                                     : 1,
                           ends});
    }
  }

  /// Gives the two ends of each a number of their own.
  void tell(std::vector<OpRow>& ops) const {
    std::map<std::tuple<std::string_view, std::int32_t, std::int32_t>, std::int64_t> known;
    for (const Message& message : messages_) {
      Ends ends = message.ends;  // by its own columns, where they say
      if (ends.chunk < 0) {
        const Direction& of = *message.direction;
        const bool short_list = message.towards != 0 && of.receives + 1 == std::ssize(of.passes);
        const auto pass = of.passes.find(message.seq + (short_list ? 1 : 0));
        if (pass == of.passes.end() || pass->second.chunk < 0) {
          continue;
        }
        ends = pass->second;
      }
      ops[message.op].occurrence =
          known
              .try_emplace({message.way, ends.chunk + message.towards, ends.microbatch},
                           std::ssize(known))
              .first->second;
    }
  }

 private:
  struct Ends {
    std::int32_t chunk = -1, microbatch = -1;  // of the whole model
  };
  struct Direction {  // of a worker in a step
    std::map<std::int32_t, Ends> passes;
    std::int64_t receives = 0;
  };
  struct Message {
    const Direction* direction;
    std::string way;
    std::size_t op;
    std::int32_t seq;
    std::int32_t towards;  // of a receive: where the sender's chunk is
    Ends ends;
  };
  std::map<std::tuple<std::int32_t, std::int64_t, bool>, Direction> directions_;
  std::vector<Message> messages_;
};

/// The zero of a step is its first operation. Where all operations of one begin later than it is
/// long, that is no rank's lateness: the times count from another zero, which is taken off all.
void take_steps(PhysicalLog& log) {
  struct Span {
    double begin, end;
  };
  std::map<std::int64_t, Span> steps;
  for (const OpRow& row : log.ops) {
    const double end = row.begin_s + row.duration_s;
    Span& step = steps.try_emplace(row.step, Span{row.begin_s, end}).first->second;
    step.begin = std::min(step.begin, row.begin_s);
    step.end = std::max(step.end, end);
  }
  constexpr double kSpacing = 1.0 / (1 << 23);  // of the format's times, which have 32 bits
  bool other_zero = false;
  for (const auto& [number, step] : steps) {
    const double length = step.end - step.begin;
    const bool late = length > 0 && step.begin > length;
    if (late && step.begin * kSpacing > 0.01 * length) {
      throw Error(fmt::format("step {} begins at {:.9g} s, beside which its {:.3g} s are lost in "
                              "32 bits",
                              number, step.begin, length))
          .field("start_ts")
          .expected("seconds since the step's first operation");
    }
    other_zero = other_zero || late;
  }
  for (const auto& [number, step] : steps) {
    log.steps.push_back({number, -1, step.end - (other_zero ? step.begin : 0)});
  }
  if (other_zero) {
    for (OpRow& row : log.ops) {
      row.begin_s -= steps.at(row.step).begin;
    }
    log.warnings.add(
        "start_ts counts from another zero than the step's first operation, which is taken "
        "instead");
  }
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  Messages messages;
  const auto take = [&](Trace&& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      OpRow row;
      row.rank = rows.rank[i];
      row.name = names.index(to_text(rows.optype[i]));
      row.op = comm_of(rows.optype[i]);
      row.kind = row.op == CommType::kNone && !is_peer_comm(rows.optype[i])
                     ? OpKind::kCompute
                     : OpKind::kCommunication;
      row.stream = static_cast<std::int32_t>(rows.optype[i]);
      row.step = rows.step[i];
      const std::string group = group_of(rows, i);
      if (!group.empty()) {
        row.group = groups.index(group);
      }
      messages.add(rows, i, log.ops.size(), group);
      row.begin_s = static_cast<double>(rows.start_s[i]);
      row.duration_s = static_cast<double>(rows.duration_s[i]);
      if (const double alone = alone_s(rows, i); alone >= 0) {
        row.waited_s = std::clamp(row.duration_s - alone, 0.0, row.duration_s);
      }
      log.ops.push_back(row);
    }
  };
  Warnings repairs;
  if (text.starts_with("PAR1")) {
    read_trace_parquet(text, log.file, take, &repairs);
  } else {
    read_trace_csv(text, log.file, take, &repairs);
  }
  for (const Warnings::Entry& entry : repairs.entries()) {  // the file is named before each anyway
    std::string_view told = entry.text;
    told.remove_prefix(told.starts_with(log.file + ": ") ? log.file.size() + 2 : 0);
    log.warnings.add(told);
  }
  if (log.ops.empty()) {
    throw Error("the trace has no rows");
  }
  messages.tell(log.ops);
  take_steps(log);
}

}  // namespace

extern const LogReader kNdtimelineLogReader;
const LogReader kNdtimelineLogReader{"ndtimeline", "NDTimeline exports (.parquet, .csv)", sniff,
                                     read};

}  // namespace lockstep
