#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "planner/metis/cluster.h"
#include "planner/metis/profile.h"

namespace lockstep::metis {

/// Metis's cost model as it is, or mended: bandwidth between servers where a group crosses them,
/// bytes where it counts elements (two each), 1 GB/s = 10^6 bytes/ms, all layers covered.
enum class Flavour { kStrict, kFixed };

struct Problem {
  std::vector<Node> nodes;  ///< in the hostfile's order
  ProfileSet profiles;
  std::int64_t layers = 0, global_batch = 0;
  std::int64_t hidden = 4096, sequence = 1024, vocabulary = 51200;
  int max_tp = 4;
  std::int64_t max_batch = 4;
  Flavour flavour = Flavour::kStrict;
  int gpus() const;
  std::vector<std::string> types() const;  ///< each once, in the order they come
};

struct Strategy {
  int dp = 1, tp = 1;
  bool operator==(const Strategy&) const = default;
};

struct Plan {
  std::vector<std::string> node_sequence;  ///< types; the nodes of one follow those of another
  std::vector<int> device_groups;
  std::vector<Strategy> strategies;
  std::int64_t batches = 1;
  std::vector<std::int64_t> partition;  ///< first layers of the stages, then the end
  bool operator==(const Plan&) const = default;
};

/// What a step takes, in ms.
struct Price {
  double execution = 0, synchronisation = 0, update = 0, data_parallel = 0, pipeline = 0, batch = 0;
  double total() const {
    return execution + synchronisation + update + data_parallel + pipeline + batch;
  }
};

/// The server of each rank when the nodes are in the plan's order, and the one that Metis takes it
/// to be on where links and memory count, as if each had as many GPUs as the hostfile's first
/// (strict; else the same one).
struct Rank {
  int node = 0, taken = 0;
};
/// ERRORS: Error if `sequence` is no order of the cluster's types; strict: if a rank is beyond the
/// last server so counted, where Metis crashes.
std::vector<Rank> ranks_of(const Problem& problem, const std::vector<std::string>& sequence);

/// How many samples of `batch` each group of a stage gets, by the speed of its leader, a type.
/// Empty if a profile with one sample is missing.
std::vector<std::int64_t> balance(const Problem& problem, const std::vector<std::string>& leaders,
                                  int tp, std::int64_t batch, std::string* missing);
/// Types of the first GPUs of the stage's dp groups.
std::vector<std::string> leaders_of(const Problem& problem, const std::vector<Rank>& ranks,
                                    int first, Strategy strategy);
/// Whether the ranks [first, first + gpus) are all of one type; by the servers that Metis takes
/// them to be on if `taken`.
bool alike(const Problem& problem, const std::vector<Rank>& ranks, int first, int gpus,
           bool taken = false);
/// Adds a list of the profile for so many samples, which is the sum of those for its powers of two.
/// False if one of them is missing; `missing` names it.
bool add_pieces(const Problem& problem, const std::string& type, int tp, std::int64_t samples,
                std::vector<double> Profile::*list, std::vector<double>& sums,
                std::string* missing);

/// Time in ms of each layer on a stage's slowest group to come: one list a distinct group, the
/// stage takes the largest sum. Empty if a profile is missing; `missing` names it.
std::vector<std::vector<double>> group_times(const Problem& problem, const std::vector<Rank>& ranks,
                                             int first, int gpus, Strategy strategy,
                                             std::int64_t batches, std::string* missing);

/// Parts of the price of one stage or of the edge behind it (Metis 4b24046, section 7.5 of its
/// description in docs/planner.md).
double update_ms(const Problem& problem, Strategy strategy, std::int64_t layers);
/// What the sum of gradients takes for each byte of parameters that a GPU of the stage holds.
double gradient_ms_a_byte(const Problem& problem, const std::vector<Rank>& ranks, int first,
                          Strategy strategy);
/// Bytes of the parameters of the layers [begin, end) on one GPU.
double parameter_bytes(const Problem& problem, Strategy strategy, std::int64_t begin,
                       std::int64_t end);
/// What one rank sends of `samples` to the stage that begins at next_layer, in Metis's elements.
double elements_sent(const Problem& problem, std::int64_t samples, int tp, std::int64_t next_layer);
/// Over the edge behind a stage: `first` is its first rank, `end` where the next one's end.
double transfer_ms(const Problem& problem, const std::vector<Rank>& ranks, int first, int end,
                   Strategy sender, std::int64_t batches, std::int64_t next_layer);
/// Below 0 where a step is shorter than its layers. Nothing if a profile is missing, which
/// `missing` names, or (strict) it is 0, which Metis takes for one that is missing.
std::optional<double> sync_ms(const Problem& problem, const std::vector<Rank>& ranks, int first,
                              int gpus, Strategy strategy, std::int64_t batches,
                              std::string* missing);

/// Of a last stage whose sync_ms() is 0 (strict).
Error no_sync_error(const Problem& problem);

/// ERRORS: Error that names the profile that is missing, or what of the plan is inconsistent.
Price price_plan(const Problem& problem, const Plan& plan);

}  // namespace lockstep::metis
