#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Kinds of communicators that a job cuts its ranks into. In each kind every rank is in exactly one
/// group; but not every rank uses every kind.
enum class RankGroup : std::uint8_t {
  kTp,           ///< tensor parallel
  kCp,           ///< context parallel
  kDp,           ///< data parallel at the same place of the context
  kDpCp,         ///< data and context parallel: all that hold the same dense parameters
  kPp,           ///< pipeline parallel: members in order of stage
  kModel,        ///< tensor and pipeline parallel: one copy of the dense parameters
  kEp,           ///< expert parallel: together they hold all experts of their stage
  kExpertTp,     ///< tensor parallel inside experts
  kExpertDp,     ///< all that hold the same expert parameters
  kExpertModel,  ///< expert, expert tensor and pipeline parallel: one copy of all experts
  kTpDpCp,       ///< tensor, data and context parallel: a stage's ranks of the dense cut
  kWorld,
};
inline constexpr std::size_t kRankGroupCount = 12;

/// The family's name in an OpTable: the group kind, a '.' and what tells it from others of that
/// kind ("tp", "dp", "dp.plain", "tp.expert", …).
std::string_view name_of(RankGroup kind);

/// How a job's ranks are numbered and cut. Dense parts are cut by tp, cp, pp, experts by ep, etp,
/// pp; both cuts leave a data-parallel degree of their own (Megatron Core: parallel folding).
struct RankLayout {
  std::int64_t gpus = 1;
  std::int64_t tp = 1, cp = 1, pp = 1;
  std::int64_t ep = 1, etp = 1;
  /// Dimensions from the fastest to the slowest, each once, ep anywhere. Megatron's default, and
  /// "tp-cp-ep-pp-dp" with --use-tp-pp-dp-mapping.
  std::string order = "tp-cp-ep-dp-pp";

  std::int64_t dp() const { return gpus / (tp * cp * pp); }
  std::int64_t expert_dp() const { return gpus / (ep * etp * pp); }
};

/// ERRORS: Error naming the broken rule and the nearest degrees that keep it: degrees below 1; gpus
/// above kMaxGpus; tp cp pp or etp ep pp do not divide gpus; an order that is not a permutation of
/// tp, cp, ep, dp, pp; pp not last while dense and expert data-parallel degrees differ (the stages
/// of the two cuts would differ: Megatron Core, parallel_state.initialize_model_parallel).
void check_layout(const RankLayout& layout);

/// The groups of one kind, each with its members ascending along its fastest dimension, ordered by
/// first member. A rank is sum over dimensions of place x stride in the order given; the group of a
/// rank is what varies in the kind's dimensions alone (Megatron Core, RankGenerator).
/// O(gpus). PRECONDITION: check_layout() accepts it.
std::vector<std::vector<std::int32_t>> groups_of(const RankLayout& layout, RankGroup kind);

/// First and last stage of each of these pipelines, which share the embedding's table when it is
/// tied. Ranks of other stages are in none. Empty for one stage.
std::vector<std::vector<std::int32_t>> embedding_groups(
    std::vector<std::vector<std::int32_t>> pipelines);

/// The pipeline stage of each rank.
std::vector<std::int32_t> stage_of_ranks(const RankLayout& layout);

}  // namespace lockstep
