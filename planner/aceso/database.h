#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/warnings.h"
#include "planner/aceso/model.h"
#include "planner/aceso/op_traits.h"
#include "planner/aceso/tables.h"

namespace lockstep::aceso {

enum class Primitive { kAllGather, kAllReduce, kReduceScatter, kAllToAll };

/// The measurements Aceso plans with, for one model: a folder of CSV files as its profiler left
/// them, `{model}_{size}_mbs{M}_tp{T}_algo{A}.csv`, `prim_{model}_{size}_{primitive}_{n}gpus.csv`
/// and `p2p_{intra,inter}_node.csv`.
struct Database {
  std::string folder;
  std::vector<std::string> names;  ///< of the rows of every op table
  std::vector<OpTraits> traits;    ///< of the same rows
  std::vector<int> ops;            ///< the model: a row number for each op
  struct Profile {
    std::int64_t microbatch = 0;
    int tp = 0, algorithm = 0;
    std::vector<OpCost> costs;  ///< by row
  };
  std::vector<Profile> profiles;
  std::array<std::array<CollectiveTable, 4>, 4> collectives;  ///< [primitive][log2(gpus)]
  PeerTable intra{}, inter{};
  std::vector<std::string> missing;  ///< files that would widen the space, each with what it holds

  /// The row's costs; kUnprofiledOp where no file has them.
  const OpCost& cost(int row, std::int64_t microbatch, int tp, int algorithm) const;
  bool has(std::int64_t microbatch, int tp, int algorithm) const;
};

/// Reads the tables for the microbatches and tensor-parallel degrees 1, 2, 4 … max_tp.
/// `microbatches` are those per data-parallel rank that may be asked for; files that are absent are
/// listed in `missing`. ERRORS: Error if there is no op table at all, no p2p_intra_node.csv, or a
/// table lists other ops than the first.
Database read_database(const std::string& folder, const Model& model,
                       const std::vector<std::int64_t>& microbatches, int max_tp);

}  // namespace lockstep::aceso
