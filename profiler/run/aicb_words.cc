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

std::string group_name(const RunPlan& plan, const RunItem& item) {
  if (item.comm == CommType::kSendRecv) {
    return "pp_group";
  }
  return item.group < 0 ? "" : plan.groups[static_cast<std::size_t>(item.group)].name;
}

std::int64_t group_size(const RunPlan& plan, const RunItem& item) {
  return item.group < 0 ? 1
                        : static_cast<std::int64_t>(
                              plan.groups[static_cast<std::size_t>(item.group)].ranks.size());
}

GroupTable::GroupTable(RunPlan& plan, const Cut& cut) : plan_(plan) {
  layout_.gpus = cut.world;
  layout_.tp = cut.tp;
  layout_.ep = cut.ep;
  layout_.pp = cut.pp;
  layout_.etp = cut.ep > 1 ? 1 : cut.tp;
  check_layout(layout_);
}

int GroupTable::own(RankGroup kind) {
  if (const auto known = own_.find(kind); known != own_.end()) {
    return known->second;
  }
  int own = -1;
  for (std::vector<std::int32_t>& members : groups_of(layout_, kind)) {
    if (std::ranges::find(members, plan_.rank) != members.end()) {
      own = static_cast<int>(plan_.groups.size());
    }
    plan_.groups.push_back({std::string(aicb_group_name(kind)), std::move(members)});
  }
  own_.emplace(kind, own);
  return own;
}

}  // namespace lockstep
