// AICB's workload CSV as a list of what a rank does.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "profiler/run/aicb_words.h"
#include "profiler/run/run_plan.h"

namespace lockstep {
namespace {

/// "CommType.all_reduce" and "all_reduce" alike.
std::string_view bare(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  return trim(dot == std::string_view::npos ? text : text.substr(dot + 1));
}

std::optional<RankGroup> group_named(std::string_view name) {
  for (const RankGroup kind : {RankGroup::kTp, RankGroup::kDp, RankGroup::kPp, RankGroup::kEp,
                               RankGroup::kExpertDp, RankGroup::kExpertTp, RankGroup::kWorld}) {
    if (name == aicb_group_name(kind)) {
      return kind;
    }
  }
  if (name == "all_nodes") {
    return RankGroup::kWorld;
  }
  return std::nullopt;
}

std::optional<CommType> comm_named(std::string_view name) {
  static const std::map<std::string_view, CommType> names{
      {"all_reduce", CommType::kAllReduce},
      {"all_gather", CommType::kAllGather},
      {"all_gather_into_tensor", CommType::kAllGather},
      {"reduce_scatter", CommType::kReduceScatter},
      {"reduce_scatter_tensor", CommType::kReduceScatter},
      {"all_to_all", CommType::kAllToAll},
      {"broadcast", CommType::kBroadcast},
      {"reduce", CommType::kReduce},
      {"barrier", CommType::kBarrier},
      {"isend", CommType::kSendRecv},
      {"irecv", CommType::kSendRecv}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// "((4096 1 4096) (4096 6144))": the last two of the first shape by the second's.
std::optional<ComputeCall> shapes_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  std::vector<std::size_t> lengths;
  std::size_t current = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] >= '0' && text[i] <= '9') {
      std::int64_t value = 0;
      const auto [end, problem] =
          std::from_chars(text.data() + i, text.data() + text.size(), value);
      if (problem != std::errc() || value < 1) {
        return std::nullopt;
      }
      numbers.push_back(value);
      ++current;
      i = static_cast<std::size_t>(end - text.data());
      continue;
    }
    if (text[i] == ')' && current > 0) {
      lengths.push_back(current);
      current = 0;
    }
    ++i;
  }
  if (lengths.size() != 2 || lengths[0] < 2 || lengths[1] != 2) {
    return std::nullopt;
  }
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < lengths[0]; ++i) {
    if (__builtin_mul_overflow(rows, numbers[i], &rows)) {
      return std::nullopt;
    }
  }
  return ComputeCall{rows, numbers[lengths[0] + 1], numbers[lengths[0]], {}};
}

/// AICB's CSV, row by row.
class Reader {
 public:
  Reader(const std::string& file, const CsvCut& cut, const RunChoice& choice, Warnings& warnings)
      : file_(file),
        choice_(choice),
        warnings_(warnings),
        groups_(plan_, {choice.world, cut.tp, cut.ep, cut.pp}) {
    plan_.streams = {"all"};
  }

  RunPlan read(std::string_view text);

 private:
  /// A message row of all stages, whoever runs it.
  struct Message {
    std::size_t line = 0;
    std::int64_t bytes = 0;
  };

  std::string_view value(std::string_view name) const {
    const auto column = columns_.find(name);
    return column == columns_.end() || column->second >= fields_.size()
               ? std::string_view()
               : trim(fields_[column->second]);
  }
  Error wrong(const char* field, const char* expected) const {
    return Error(fmt::format("'{}'", printable(value(field))))
        .at(file_, line_)
        .field(field)
        .expected(expected);
  }

  void read_header(std::string_view line);
  void read_row();
  void add_computation(RunItem item);
  void add_message(RunItem item, bool send);
  void add_collective(RunItem item);
  void add(RunItem item);
  std::int32_t root_of(const RunItem& item) const;
  void check_messages() const;

  const std::string& file_;
  const RunChoice& choice_;
  Warnings& warnings_;
  RunPlan plan_;
  GroupTable groups_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string> fields_;
  std::size_t line_ = 0;
  std::int32_t last_ = -1;                ///< the last item that is no message, -1: none yet
  std::map<int, std::int32_t> messages_;  ///< the last of each pair since then
  std::map<int, int> streams_;            ///< of each pair
  std::map<std::string, std::vector<Message>, std::less<>> rows_;  ///< by "send_next" …
};

void Reader::read_header(std::string_view line) {
  split_csv(line, fields_);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    columns_.emplace(fields_[i], i);
  }
  for (const char* needed : {"comm_type", "comm_group", "comm_group_size", "msg_size", "stage"}) {
    if (!columns_.contains(needed)) {
      throw Error(fmt::format("no column {}", needed)).at(file_, 1).expected("AICB's workload CSV");
    }
  }
}

/// What is no message comes after all messages before it, and these after what is none.
void Reader::add(RunItem item) {
  const auto number = static_cast<std::int32_t>(plan_.items.size());
  if (item.comm == CommType::kSendRecv) {
    const auto [stream, fresh] =
        streams_.emplace(item.group, static_cast<int>(plan_.streams.size()));
    if (fresh) {
      plan_.streams.push_back(
          fmt::format("{} rank {}", item.send ? "send to" : "receive from", item.peer));
    }
    item.stream = stream->second;
    if (last_ >= 0) {
      item.after = {last_};
    }
    messages_[item.group] = number;
  } else {
    for (const auto& [group, message] : messages_) {
      item.after.push_back(message);
    }
    messages_.clear();
    last_ = number;
  }
  plan_.largest_bytes = std::max(plan_.largest_bytes, item.bytes);
  plan_.items.push_back(std::move(item));
}

void Reader::add_computation(RunItem item) {
  const auto elapsed = to_double(value("_elapsed_time"));
  const auto shapes = shapes_of(value("msg_size"));
  if (choice_.compute == RunCompute::kGemm && shapes) {
    item.compute = *shapes;
  } else if (elapsed && *elapsed >= 0 && *elapsed < 3.6e12) {
    item.compute.idle = Time::seconds(*elapsed * 1e-9);  // nanoseconds: specification, 4.1
  } else if (shapes) {
    warnings_.add("computations without a time are left out: --compute gemm runs their products");
    return;
  } else {
    throw wrong("msg_size", "two shapes, ((4096 1 4096) (4096 6144))");
  }
  add(std::move(item));
}

void Reader::add_message(RunItem item, bool send) {
  const std::string_view where = value("additional");
  const bool next = where == (send ? "send_next" : "recv_next");
  if (!next && where != (send ? "send_prev" : "recv_prev")) {
    throw wrong("additional", send ? "send_next or send_prev" : "recv_next or recv_prev");
  }
  const auto& stages = plan_.groups[static_cast<std::size_t>(groups_.own(RankGroup::kPp))].ranks;
  if (stages.size() < 2) {
    throw wrong("comm_type", "messages only where --pp is above 1");
  }
  rows_[std::string(where)].push_back({line_, item.bytes});
  item.group = groups_.pair(send, next);
  if (item.group < 0) {
    return;  // the pipeline ends here
  }
  item.send = send;
  item.peer = plan_.groups[static_cast<std::size_t>(item.group)].ranks[send ? 1 : 0];
  add(std::move(item));
}

void Reader::add_collective(RunItem item) {
  const auto kind = group_named(bare(value("comm_group")));
  if (!kind) {
    throw wrong("comm_group", "tp_group, dp_group, pp_group, ep_group, ep_dp_group or all");
  }
  item.group = groups_.own(*kind);
  const std::size_t size = plan_.groups[static_cast<std::size_t>(item.group)].ranks.size();
  const auto told = to_int(value("comm_group_size"));
  if (told && *told != static_cast<std::int64_t>(size)) {
    throw Error(fmt::format("a group of {}, but the cut of {} ranks has one of {}", *told,
                            plan_.world, size))
        .at(file_, line_)
        .field("comm_group_size")
        .hint("--tp, --ep and --pp tell how the workload was cut");
  }
  item.root = root_of(item);
  add(std::move(item));
}

/// A reduce's `dst` is a rank of the world; a broadcast comes from the first of the group
/// (specification, 5).
std::int32_t Reader::root_of(const RunItem& item) const {
  const std::string_view dst = value("dst");
  if (item.comm != CommType::kReduce || dst.empty() || dst == "None") {
    return 0;
  }
  const auto& ranks = plan_.groups[static_cast<std::size_t>(item.group)].ranks;
  const auto rank = to_int(dst);
  const auto place = rank ? std::ranges::find(ranks, *rank) : ranks.end();
  if (place == ranks.end()) {
    throw Error(fmt::format("'{}' is not in rank {}'s {}", printable(dst), plan_.rank,
                            group_name(plan_, item)))
        .at(file_, line_)
        .field("dst")
        .expected(fmt::format("one of the ranks {}", fmt::join(ranks, " ")));
  }
  return static_cast<std::int32_t>(place - ranks.begin());
}

/// Each message needs its other end on the stage beside, which runs the same file.
void Reader::check_messages() const {
  constexpr std::pair<std::string_view, std::string_view> kEnds[] = {{"send_next", "recv_prev"},
                                                                     {"recv_next", "send_prev"},
                                                                     {"send_prev", "recv_next"},
                                                                     {"recv_prev", "send_next"}};
  for (const auto& [end, other_end] : kEnds) {
    const auto these = rows_.find(end), those = rows_.find(other_end);
    for (std::size_t i = 0; these != rows_.end() && i < these->second.size(); ++i) {
      const bool there = those != rows_.end() && i < those->second.size();
      if (there && those->second[i].bytes == these->second[i].bytes) {
        continue;
      }
      throw Error(there ? fmt::format("{} of {} bytes, but its {} (line {}) is of {}", end,
                                      these->second[i].bytes, other_end, those->second[i].line,
                                      those->second[i].bytes)
                        : fmt::format("no row is the {} of this {}", other_end, end))
          .at(file_, these->second[i].line)
          .field("additional")
          .expected("a file that all stages of the pipeline can run")
          .hint(
              "AICB writes what one rank of the first stage does: 'lockstep generate' without "
              "--generator writes the steps of all ranks");
    }
  }
}

void Reader::read_row() {
  const std::string_view type = bare(value("comm_type"));
  if (const std::string_view rate = value("algbw"); !rate.empty() && rate != "None") {
    throw wrong("algbw", "None: this is the log of a run, whose times are milliseconds");
  }
  RunItem item;
  item.name = type;
  item.stage = value("stage");
  if (type == "epoch_end") {
    item.epoch_end = true;
    add(std::move(item));
    return;
  }
  if (type == "computation") {
    add_computation(std::move(item));
    return;
  }
  const auto comm = comm_named(type);
  if (!comm) {
    throw wrong("comm_type", "all_reduce, all_gather, …, computation or epoch_end");
  }
  item.comm = *comm;
  const auto bytes = to_double(value("msg_size"));
  if (!bytes || *bytes < 0 || *bytes > 0x1p50) {
    throw wrong("msg_size", "bytes from 0 on");
  }
  item.bytes = static_cast<std::int64_t>(*bytes);
  if (item.comm == CommType::kSendRecv) {
    add_message(std::move(item), type == "isend");
  } else {
    add_collective(std::move(item));
  }
}

RunPlan Reader::read(std::string_view text) {
  plan_.world = choice_.world;
  plan_.rank = choice_.rank;
  std::string_view line;
  ++line_;
  read_header(next_line(text, line) ? line : std::string_view());
  while (next_line(text, line)) {
    ++line_;
    if (!trim(line).empty()) {
      split_csv(line, fields_);
      read_row();
    }
  }
  check_messages();
  if (plan_.items.empty() && rows_.empty()) {
    throw Error("there is nothing to run").at(file_);
  }
  if (plan_.items.empty() || !plan_.items.back().epoch_end) {
    RunItem end;  // the file's end is its last iteration's
    end.name = "epoch_end";
    end.epoch_end = true;
    add(std::move(end));
  }
  return std::move(plan_);
}

}  // namespace

RunPlan read_aicb_workload(std::string_view text, const std::string& file, const CsvCut& cut,
                           const RunChoice& choice, Warnings& warnings) {
  return Reader(file, cut, choice, warnings).read(text);
}

}  // namespace lockstep
