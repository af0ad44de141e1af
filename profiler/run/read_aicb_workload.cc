// AICB's workload CSV as a list of what a rank does.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

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

}  // namespace

RunPlan read_aicb_workload(std::string_view text, const std::string& file, const CsvCut& cut,
                           const RunChoice& choice, Warnings& warnings) {
  RunPlan plan;
  plan.world = choice.world;
  plan.rank = choice.rank;
  GroupTable groups(plan, {choice.world, cut.tp, cut.ep, cut.pp});
  std::string_view line;
  std::vector<std::string> fields;
  std::map<std::string, std::size_t, std::less<>> columns;
  if (next_line(text, line)) {
    split_csv(line, fields);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      columns.emplace(fields[i], i);
    }
  }
  for (const char* needed : {"comm_type", "comm_group", "comm_group_size", "msg_size", "stage"}) {
    if (!columns.contains(needed)) {
      throw Error(fmt::format("no column {}", needed)).at(file, 1).expected("AICB's workload CSV");
    }
  }
  std::size_t number = 1;
  const auto value = [&](std::string_view name) -> std::string_view {
    const auto column = columns.find(name);
    return column == columns.end() || column->second >= fields.size()
               ? std::string_view()
               : std::string_view(fields[column->second]);
  };
  const auto wrong = [&](const char* field, const char* expected) {
    return Error(fmt::format("'{}'", printable(value(field))))
        .at(file, number)
        .field(field)
        .expected(expected);
  };
  while (next_line(text, line)) {
    ++number;
    if (trim(line).empty()) {
      continue;
    }
    split_csv(line, fields);
    const std::string_view type = bare(value("comm_type"));
    RunItem item;
    item.name = type;
    item.stage = value("stage");
    if (type == "epoch_end") {
      item.epoch_end = true;
      plan.items.push_back(std::move(item));
      continue;
    }
    if (type == "computation") {
      const auto elapsed = to_double(value("_elapsed_time"));
      const auto shapes = shapes_of(value("msg_size"));
      if (choice.compute == RunCompute::kGemm && shapes) {
        item.compute = *shapes;
      } else if (elapsed && *elapsed >= 0 && *elapsed < 3.6e12) {
        item.compute.idle = Time::seconds(*elapsed * 1e-9);  // nanoseconds: specification, 4.1
      } else if (shapes) {
        warnings.add(
            "computations without a time are left out: --compute gemm runs their products");
        continue;
      } else {
        throw wrong("msg_size", "two shapes, ((4096 1 4096) (4096 6144))");
      }
      plan.items.push_back(std::move(item));
      continue;
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
      // Stages follow each other in the pipeline's group, round its end.
      const int own = groups.own(RankGroup::kPp);
      const auto& members = plan.groups[static_cast<std::size_t>(own)].ranks;
      const auto place =
          static_cast<std::size_t>(std::ranges::find(members, plan.rank) - members.begin());
      const bool next = value("additional").find("next") != std::string_view::npos;
      const std::size_t there =
          next ? (place + 1) % members.size() : (place + members.size() - 1) % members.size();
      item.send = type == "isend";
      item.peer = members[there];
      if (members.size() < 2) {
        throw wrong("comm_type", "messages only where --pp is above 1");
      }
    } else {
      const auto kind = group_named(bare(value("comm_group")));
      if (!kind) {
        throw wrong("comm_group", "tp_group, dp_group, pp_group, ep_group, ep_dp_group or all");
      }
      item.group = groups.own(*kind);
      const std::size_t size = plan.groups[static_cast<std::size_t>(item.group)].ranks.size();
      const auto told = to_int(value("comm_group_size"));
      if (told && *told != static_cast<std::int64_t>(size)) {
        throw Error(fmt::format("a group of {}, but the cut of {} ranks has one of {}", *told,
                                plan.world, size))
            .at(file, number)
            .field("comm_group_size")
            .hint("--tp, --ep and --pp tell how the workload was cut");
      }
    }
    plan.largest_bytes = std::max(plan.largest_bytes, item.bytes);
    plan.items.push_back(std::move(item));
  }
  if (plan.items.empty()) {
    throw Error("there is nothing to run").at(file);
  }
  return plan;
}

}  // namespace lockstep
