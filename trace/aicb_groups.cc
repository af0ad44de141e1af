#include "trace/aicb_groups.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

void place_aicb_groups(PhysicalLog& log, CommSetting& setting) {
  std::map<std::string, std::int64_t> size;
  std::vector<std::int64_t> of_group(log.groups.size());
  for (const CommRow& row : log.comms) {
    if (row.group >= 0) {
      const auto group = static_cast<std::size_t>(row.group);
      of_group[group] = std::max<std::int64_t>(of_group[group], row.ranks);
      size[log.groups[group]] = of_group[group];
    }
  }
  const auto ranks = [&](const char* group) {
    const auto found = size.find(group);
    return found == size.end() ? 1 : std::max<std::int64_t>(1, found->second);
  };
  const std::int64_t tp = ranks("tp_group"), dp = ranks("dp_group"), ep = ranks("ep_group");
  log.members.resize(log.groups.size());
  std::int64_t world = 0;
  for (std::size_t i = 0; i < log.groups.size(); ++i) {
    const std::string& name = log.groups[i];
    const std::int64_t apart = name == "dp_group" || name == "ep_group" ? tp
                               : name == "ep_dp_group"                  ? tp * ep
                               : name == "pp_group"                     ? tp * dp
                                                                        : 1;
    const std::int64_t all = apart * of_group[i];
    world = std::max(world, std::min<std::int64_t>(all, 1 << 24));
    for (std::int64_t k = 0; k < of_group[i] && all < (1 << 24); ++k) {
      log.members[i].push_back(static_cast<std::int32_t>(k * apart));
    }
  }
  for (const CommRow& row : log.comms) {
    world = std::max<std::int64_t>(world, row.ranks);
  }
  setting.ranks = static_cast<std::int32_t>(world);
  setting.ranks_guessed = true;
}

}  // namespace lockstep
