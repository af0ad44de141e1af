#include "analysis/compare/repeats.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/compare/errors.h"

namespace lockstep::compare {
namespace {

constexpr std::int64_t kLarge = 1 << 20;

/// How many of these times one prediction p can have an error p / t - 1 of at most `limit` on.
std::size_t most_within(std::vector<double> times, double limit) {
  std::ranges::sort(times);
  std::size_t most = 0, first = 0;
  for (std::size_t last = 0; last < times.size(); ++last) {
    while (times[last] * (1 - limit) > times[first] * (1 + limit)) {
      ++first;
    }
    most = std::max(most, last - first + 1);
  }
  return most;
}

/// All that the model is given of a row: the task, and of its table the links and what costs steps.
using Key = std::tuple<CommType, std::string, std::int64_t, std::int32_t, std::int32_t,
                       std::int32_t, std::int32_t, std::int32_t, NcclFabric, std::int32_t, double>;

Key key_of(const ComparedRow& row) {
  const NcclWishes& wishes = row.task.wishes;
  return {row.task.op,
          row.pattern,
          row.task.bytes.count(),
          row.task.ranks,
          row.task.servers,
          wishes.version.number,
          wishes.algorithm ? static_cast<std::int32_t>(*wishes.algorithm) : -1,
          wishes.protocol ? static_cast<std::int32_t>(*wishes.protocol) : -1,
          row.system.fabric,
          row.system.nics_per_server,
          row.step_factor};
}

}  // namespace

Repeats repeats_of(const std::vector<ComparedRow>& rows) {
  std::vector<const ComparedRow*> pointers;
  for (const ComparedRow& row : rows) {
    pointers.push_back(&row);
  }
  const std::map<const CommSetting*, std::size_t> numbers = table_numbers(pointers);
  std::map<Key, std::array<std::vector<double>, 2>> alike;
  std::map<const CommSetting*, std::vector<const ComparedRow*>> tables;
  for (const ComparedRow& row : rows) {
    if (row.task.bytes.count() >= kLarge) {
      alike[key_of(row)][numbers.at(row.setting) % 2].push_back(row.measured_us);
      tables[row.setting].push_back(&row);
    }
  }
  std::map<Key, std::map<const CommSetting*, std::vector<double>>> keys;
  for (const ComparedRow& row : rows) {
    if (row.task.bytes.count() >= kLarge) {
      keys[key_of(row)][row.setting].push_back(row.measured_us);
    }
  }
  std::size_t reached = 0, repeated = 0;
  for (const auto& [key, by_table] : keys) {
    std::vector<double> times;
    for (const auto& [setting, measured] : by_table) {
      times.insert(times.end(), measured.begin(), measured.end());
    }
    if (by_table.size() > 1) {
      repeated += times.size();
      reached += most_within(std::move(times), 0.12);
    }
  }
  std::vector<double> of_half, of_table;
  for (const auto& [key, halves] : alike) {
    for (const std::size_t half : {0U, 1U}) {
      const std::vector<double>& others = halves[1 - half];
      const double expected = others.empty() ? 0 : median(others);
      for (const double measured : halves[half]) {
        if (!others.empty()) {
          of_half.push_back(expected / measured - 1);
        }
      }
    }
  }
  for (const auto& [setting, members] : tables) {
    for (const ComparedRow* row : members) {
      const auto bytes = static_cast<double>(row->task.bytes.count());
      std::vector<double> near;
      for (const ComparedRow* other : members) {
        const double ratio = static_cast<double>(other->task.bytes.count()) / bytes;
        const bool same = other->task.op == row->task.op && other->task.ranks == row->task.ranks &&
                          other->task.servers == row->task.servers;
        if (same && ratio >= 0.8 && ratio <= 1.25) {
          near.push_back(other->measured_us / ratio);
        }
      }
      if (near.size() > 2) {
        of_table.push_back(median(std::move(near)) / row->measured_us - 1);
      }
    }
  }
  const double share =
      repeated > 0 ? static_cast<double>(reached) / static_cast<double>(repeated) : 0;
  return {error_statistics(of_half), error_statistics(of_table), share, repeated};
}

}  // namespace lockstep::compare
