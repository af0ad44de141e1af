#include "profiler/run/aicb_words.h"

#include <algorithm>

#include "generator/comm_names.h"

namespace lockstep {

std::string_view aicb_group_name(RankGroup group) {
  switch (group) {
    case RankGroup::kTp:
      return "tp_group";
    case RankGroup::kDp:
    case RankGroup::kDpCp:
      return "dp_group";
    case RankGroup::kPp:
      return "pp_group";
    case RankGroup::kEp:
      return "ep_group";
    case RankGroup::kExpertDp:
      return "ep_dp_group";
    case RankGroup::kExpertTp:
      return "ep_tp_group";
    case RankGroup::kCp:
      return "cp_group";
    default:
      return "all";
  }
}

std::string_view aicb_comm_name(const RunItem& item) {
  return item.epoch_end ? "epoch_end" : aicb_operation(item.comm, item.send);
}

std::int32_t root_rank(const RunPlan& plan, const RunItem& item) {
  return plan.groups[static_cast<std::size_t>(item.group)]
      .ranks[static_cast<std::size_t>(item.root)];
}

std::string group_name(const RunPlan& plan, const RunItem& item) {
  return item.group < 0 ? "" : plan.groups[static_cast<std::size_t>(item.group)].name;
}

std::int64_t group_size(const RunPlan& plan, const RunItem& item) {
  return item.group < 0 || item.comm == CommType::kSendRecv
             ? 1
             : static_cast<std::int64_t>(
                   plan.groups[static_cast<std::size_t>(item.group)].ranks.size());
}

GroupTable::GroupTable(RunPlan& plan, const Cut& cut) : plan_(plan) {
  layout_.gpus = cut.world;
  layout_.tp = cut.tp;
  layout_.ep = cut.ep;
  layout_.pp = cut.pp;
  check_layout({.gpus = cut.world, .tp = cut.tp, .pp = cut.pp});
  layout_.etp = cut.ep > 0 && layout_.dp() % cut.ep == 0 ? cut.tp : 1;
  check_layout(layout_);
}

std::vector<std::vector<std::int32_t>> GroupTable::members_of(RankGroup kind) const {
  if (kind != RankGroup::kExpertTp) {
    return groups_of(layout_, kind);
  }
  RankLayout blocks = layout_;
  blocks.tp = layout_.etp * layout_.ep;
  return groups_of(blocks, RankGroup::kTp);
}

int GroupTable::own(RankGroup kind) {
  if (const auto known = own_.find(kind); known != own_.end()) {
    return known->second;
  }
  int own = -1;
  for (std::vector<std::int32_t>& members : members_of(kind)) {
    if (std::ranges::find(members, plan_.rank) != members.end()) {
      own = static_cast<int>(plan_.groups.size());
    }
    plan_.groups.push_back({std::string(aicb_group_name(kind)), std::move(members)});
  }
  own_.emplace(kind, own);
  return own;
}

int GroupTable::pair(bool send, bool next) {
  const bool forwards = send == next;
  const auto [known, fresh] = pairs_.emplace(forwards, std::array{-1, -1});
  if (fresh) {
    for (const std::vector<std::int32_t>& stages : groups_of(layout_, RankGroup::kPp)) {
      for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
        const std::int32_t from = stages[forwards ? i : i + 1], to = stages[forwards ? i + 1 : i];
        if (from == plan_.rank || to == plan_.rank) {
          known->second[from == plan_.rank ? 1 : 0] = static_cast<int>(plan_.groups.size());
        }
        plan_.groups.push_back({std::string(aicb_group_name(RankGroup::kPp)), {from, to}, true});
      }
    }
  }
  return known->second[send ? 1 : 0];
}

}  // namespace lockstep
