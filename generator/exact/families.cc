#include "generator/exact/families.h"

#include <utility>

namespace lockstep {

Families::Families(RankLayout layout, std::int64_t replicas)
    : groups_of_([layout = std::move(layout)](RankGroup kind) { return groups_of(layout, kind); }),
      replicas_(replicas) {}

Families::Families(GroupsOf groups) : groups_of_(std::move(groups)) {}

void Families::enter_part(std::string name, GroupsOf groups) {
  part_ = "." + std::move(name);
  groups_of_ = std::move(groups);
}

std::int32_t Families::add(std::string name, Groups groups) {
  return get(std::move(name), [&] { return std::move(groups); });
}

template <class Make>
std::int32_t Families::get(std::string name, Make make) {
  const auto next = static_cast<std::int32_t>(families_.size());
  const auto [found, is_new] = index_.try_emplace(name, next);
  if (is_new) {
    families_.push_back({std::move(name), make()});
  }
  return found->second;
}

std::int32_t Families::of(RankGroup kind) {
  const bool of_pipelines =
      kind == RankGroup::kPp || kind == RankGroup::kModel || kind == RankGroup::kExpertModel;
  return get(std::string(name_of(kind)) + (of_pipelines ? part_ : ""),
             [&] { return groups_of_(kind); });
}

std::int32_t Families::embedding() {
  return get("pp.embedding" + part_, [&] { return embedding_groups(groups_of_(RankGroup::kPp)); });
}

std::int32_t Families::pipeline_back() {
  return get("pp.back" + part_, [&] { return groups_of_(RankGroup::kPp); });
}

std::int32_t Families::copies() {
  return get("dp.copies" + part_, [&] {
    Groups pairs;
    for (const std::vector<std::int32_t>& pipeline : groups_of_(RankGroup::kPp)) {
      for (std::size_t i = 0; i < pipeline.size() / 2; ++i) {
        pairs.push_back({pipeline[i], pipeline[pipeline.size() - 1 - i]});
      }
    }
    return pairs;
  });
}

std::int32_t Families::shard(bool expert) {
  const RankGroup kind = expert ? RankGroup::kExpertDp : RankGroup::kDpCp;
  return replicas_ == 1 ? of(kind) : get(std::string(name_of(kind)) + ".shard", [&] {
    return split_replicas(kind, false);
  });
}

std::int32_t Families::replica(bool expert) {
  const RankGroup kind = expert ? RankGroup::kExpertDp : RankGroup::kDpCp;
  return get(std::string(name_of(kind)) + ".replica", [&] { return split_replicas(kind, true); });
}

Families::Groups Families::split_replicas(RankGroup kind, bool across) const {
  Groups result;
  for (const std::vector<std::int32_t>& members : groups_of_(kind)) {
    const auto replicas = static_cast<std::size_t>(replicas_);
    const std::size_t shard = members.size() / replicas;
    Groups parts(across ? shard : replicas);
    for (std::size_t i = 0; i < members.size(); ++i) {
      parts[across ? i % shard : i / shard].push_back(members[i]);
    }
    result.insert(result.end(), parts.begin(), parts.end());
  }
  return result;
}

}  // namespace lockstep
