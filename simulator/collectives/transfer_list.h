#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/collectives/schedule.h"

namespace lockstep {

/// One point-to-point transfer of a collective.
struct Transfer {
  std::int32_t source = 0, destination = 0;  ///< places
  std::int32_t channel = 0;
  Bytes bytes;
  bool reduce = false;
  /// To a relay, from one: what it brings or sends is not part of what the relay has itself.
  bool to_relay = false, from_relay = false;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// A schedule written out as the DAG that it stands for: for checks, tests and people, not for
/// simulation (a ring of 4096 ranks is 33 million transfers).
struct TransferList {
  std::vector<Transfer> transfers;             ///< in an order in which dependencies come first
  std::vector<std::int32_t> dependency_begin;  ///< CSR, transfers.size() + 1
  std::vector<std::int32_t> dependency;
  std::vector<std::int32_t> chunk_begin;  ///< CSR, transfers.size() + 1
  std::vector<std::int32_t> chunk;        ///< that the transfer carries

  std::span<const std::int32_t> dependencies(std::size_t transfer) const {
    return slice(dependency, dependency_begin, transfer);
  }
  std::span<const std::int32_t> chunks(std::size_t transfer) const {
    return slice(chunk, chunk_begin, transfer);
  }

 private:
  static std::span<const std::int32_t> slice(const std::vector<std::int32_t>& values,
                                             const std::vector<std::int32_t>& begin,
                                             std::size_t i) {
    return std::span(values).subspan(static_cast<std::size_t>(begin[i]),
                                     static_cast<std::size_t>(begin[i + 1] - begin[i]));
  }
};

/// Writes a schedule out; a transfer depends on the one before it in its slot and on what the slot
/// waits for. O(transfers + dependencies). ERRORS: Error when slots wait for each other in a circle
/// (naming one), or for slots that do not exist.
TransferList write_out(const Schedule& schedule);

}  // namespace lockstep
