#include "generator/exact/families.h"

#include <utility>

namespace lockstep {

Families::Families(RankLayout layout, std::int64_t replicas)
    : layout_(std::move(layout)), replicas_(replicas) {}

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
  return get(std::string(name_of(kind)), [&] { return groups_of(layout_, kind); });
}

std::int32_t Families::embedding() {
  return get("pp.embedding", [&] { return embedding_groups(layout_); });
}

std::int32_t Families::pipeline_back() {
  return get("pp.back", [&] { return groups_of(layout_, RankGroup::kPp); });
}

std::int32_t Families::copies() {
  return get("dp.copies", [&] {
    Groups pairs;
    for (const std::vector<std::int32_t>& pipeline : groups_of(layout_, RankGroup::kPp)) {
      for (std::size_t i = 0; i < pipeline.size() / 2; ++i) {
        pairs.push_back({pipeline[i], pipeline[pipeline.size() - 1 - i]});
      }
    }
    return pairs;
  });
}

std::int32_t Families::shard() {
  return replicas_ == 1 ? of(RankGroup::kDpCp)
                        : get("dp.shard", [&] { return split_replicas(false); });
}

std::int32_t Families::replica() {
  return get("dp.replica", [&] { return split_replicas(true); });
}

Families::Groups Families::split_replicas(bool across) const {
  Groups result;
  for (const std::vector<std::int32_t>& members : groups_of(layout_, RankGroup::kDpCp)) {
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
