#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "workloads/comm.h"

namespace lockstep {

/// One point-to-point transfer of a collective. Ranks are positions in the group, 0 … n-1.
/// `reduce` says that the receiver adds what arrives to its own copy of the chunk instead of
/// overwriting it.
struct Transfer {
  std::int32_t source = 0, destination = 0;
  std::int32_t channel = 0;
  std::int32_t chunk = 0;  ///< which piece of the data, 0 … chunks-1
  Bytes bytes;
  bool reduce = false;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// A collective as a DAG of transfers: transfer i may start once its source rank has entered the
/// collective and the transfers dependencies(i) have been delivered. A rank has finished when
/// every transfer to it was delivered and every transfer from it was sent.
///
/// What chunk q is, with n = ranks:
///   all-gather, reduce-scatter   part of the shard of rank q / (chunks / n)
///   all-to-all                   what rank q / n sends to rank q mod n
///   send/receive                 what rank q sends
///   others                       part of the tensor
///
/// Memory: 32 B a transfer, 4 B a dependency; a ring all-reduce has 2(n-1)·n·channels transfers.
struct Schedule {
  CommType op = CommType::kNone;
  std::int32_t ranks = 0;
  std::int32_t chunks = 0;
  std::int32_t root = 0;                       ///< of broadcast and reduce
  std::vector<Transfer> transfers;             ///< in an order in which dependencies come first
  std::vector<std::int32_t> dependency_begin;  ///< CSR, transfers.size() + 1
  std::vector<std::int32_t> dependency;
  friend bool operator==(const Schedule&, const Schedule&) = default;

  std::span<const std::int32_t> dependencies(std::size_t transfer) const {
    return std::span(dependency)
        .subspan(
            static_cast<std::size_t>(dependency_begin[transfer]),
            static_cast<std::size_t>(dependency_begin[transfer + 1] - dependency_begin[transfer]));
  }
  /// Makes room for so many transfers with one dependency each (a double, so that no product
  /// overflows on its way here). ERRORS: more than kMaxTransfers.
  void reserve(double transfer_count);
  /// Appends a transfer after those it waits for.
  void add(const Transfer& transfer, std::span<const std::int32_t> waits_for);
  std::size_t memory_bytes() const;
};

/// A schedule may not be larger: 64 Mi transfers take 2.4 GB.
inline constexpr std::int64_t kMaxTransfers = std::int64_t{1} << 26;

}  // namespace lockstep
