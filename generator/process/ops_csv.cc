#include "generator/process/ops_csv.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "generator/comm_names.h"
#include "generator/csv_row.h"

namespace lockstep {
namespace {

/// Empty where AICB has no word for it.
std::string_view aicb_group(const std::string& family) {
  static constexpr std::array<std::array<std::string_view, 2>, 9> kGroups{
      {{"tp", "tp_group"},
       {"dp", "dp_group"},
       {"pp", "pp_group"},
       {"pp.back", "pp_group"},
       {"ep", "ep_group"},
       {"tp.expert", "ep_tp_group"},
       {"dp_ep", "ep_dp_group"},
       {"pp.embedding", "embedding_group"},
       {"world", "all"}}};
  for (const auto& [ours, aicb] : kGroups) {
    if (ours == family) {
      return aicb;
    }
  }
  return {};
}

/// The CSV is not quoted: no comma, no line break.
std::string stage_text(std::string name) {
  std::ranges::replace(name, ',', ';');
  std::ranges::replace(name, '\n', ' ');
  const std::size_t blank = name.find(' ');
  if (blank != std::string::npos) {
    name[blank] = '.';
  }
  return name;
}

std::string row_of(const Op& op, const GroupFamily& family) {
  const bool message = op.comm == CommType::kSendRecv;
  const std::string bytes = fmt::format("{}", op.bytes.count());
  const std::string stage = stage_text(op.name);
  const std::string other =
      fmt::format("{}_{}", op.send ? "send" : "recv", op.peer > 0 ? "next" : "prev");
  CsvRow row{aicb_operation(op.comm, op.send), aicb_group(family.name),
             message ? Count(1) : Count(static_cast<std::int64_t>(family.members.front().size())),
             bytes, stage};
  if (op.comm == CommType::kBroadcast) {
    row.src = Count(0);
  }
  if (op.comm == CommType::kReduce) {
    row.dst = Count(0);
  }
  if (message) {
    row.additional = other;
  }
  std::string text;
  append(text, row);
  return text;
}

}  // namespace

std::map<std::string, std::int64_t> write_ops_csv(const WorkloadJob& job, std::size_t init_ops,
                                                  BlockWriter& out) {
  const OpTable& table = std::get<OpTable>(job.work);
  std::string epoch_end;
  append_comm(epoch_end, "epoch_end", "", std::nullopt, 0, "");
  out.text(kCsvHeader);
  const std::vector<Op>& ops = table.programs.front().ops;
  std::map<std::string, std::int64_t> left_out;
  const auto write_rows = [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      if (ops[i].comm == CommType::kNone) {
        continue;
      }
      const GroupFamily& family = table.groups[static_cast<std::size_t>(ops[i].group)];
      if (aicb_group(family.name).empty()) {
        ++left_out[family.name];
      } else {
        out.text(row_of(ops[i], family));
      }
    }
    out.text(epoch_end);
  };
  write_rows(0, init_ops);
  write_rows(init_ops, ops.size());
  return left_out;
}

}  // namespace lockstep
