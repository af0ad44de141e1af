#include "simulator/collectives/schedule.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

void Schedule::reserve(double transfer_count) {
  if (transfer_count > static_cast<double>(kMaxTransfers)) {
    throw Error(
        fmt::format("{} on {} ranks would be {:.3g} transfers, too many to simulate one by one",
                    name_of(op), ranks, transfer_count))
        .expected(fmt::format("at most {}", kMaxTransfers))
        .hint("use fewer channels or the analytic engine");
  }
  const auto count = static_cast<std::size_t>(transfer_count);
  transfers.reserve(count);
  dependency.reserve(count);
  dependency_begin.reserve(count + 1);
}

void Schedule::add(const Transfer& transfer, std::span<const std::int32_t> waits_for) {
  if (dependency_begin.empty()) {
    dependency_begin.push_back(0);
  }
  transfers.push_back(transfer);
  dependency.insert(dependency.end(), waits_for.begin(), waits_for.end());
  dependency_begin.push_back(static_cast<std::int32_t>(dependency.size()));
}

std::size_t Schedule::memory_bytes() const {
  return transfers.capacity() * sizeof(Transfer) +
         (dependency.capacity() + dependency_begin.capacity()) * sizeof(std::int32_t);
}

}  // namespace lockstep
