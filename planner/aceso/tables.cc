#include "planner/aceso/tables.h"

#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep::aceso {
namespace {

/// Calls f(line number, fields) for every line that holds something.
template <class F>
void each_line(std::string_view text, F&& f) {
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (!trim(line).empty()) {
      f(number, split(line, ','));
    }
  }
}

/// us, MB or GB/s: sums over the ops of a model stay within what they are kept in.
constexpr double kMostAmount = 1e9;

double amount(std::string_view text, const std::string& file, std::size_t line,
              std::string_view column) {
  const auto value = to_double(trim(text));
  if (!value || *value < 0 || *value > kMostAmount) {
    throw Error(fmt::format("'{}' is no amount", printable(text)))
        .at(file, line)
        .field(column)
        .expected("a number from 0 to 1e9");
  }
  return *value;
}

constexpr std::array<std::string_view, 9> kColumns = {
    "op_name", "forward-compute", "backward-compute", "input_size",  "output_size",
    "weights", "activations",     "fwd_reserved",     "bwd_reserved"};

void check_width(const std::vector<std::string_view>& fields, std::size_t wanted,
                 const std::string& file, std::size_t line) {
  if (fields.size() != wanted) {
    throw Error(fmt::format("{} fields", fields.size()))
        .at(file, line)
        .expected(fmt::format("{}", wanted));
  }
}

}  // namespace

OpTable parse_op_table(std::string_view text, const std::string& file) {
  OpTable table;
  std::set<std::string_view> names;
  double time_us = 0;
  bool header = true;
  each_line(text, [&](std::size_t line, const std::vector<std::string_view>& fields) {
    check_width(fields, kColumns.size(), file, line);
    if (header) {
      header = false;
      if (trim(fields[0]) != kColumns[0]) {
        throw Error("this is no op table").at(file, line).expected(join(kColumns, ","));
      }
      return;
    }
    std::array<double, 9> value{};
    for (std::size_t i = 1; i < fields.size(); ++i) {
      value[i] = amount(fields[i], file, line, kColumns[i]);
    }
    if (!names.insert(trim(fields[0])).second) {
      throw Error(fmt::format("the op {} stands twice", printable(trim(fields[0]))))
          .at(file, line)
          .expected("one row an op");
    }
    time_us += value[1] + value[2];
    table.names.emplace_back(trim(fields[0]));
    table.costs.push_back(
        {value[1], value[2], value[3], value[4], value[5], value[6], value[7], value[8]});
  });
  if (table.names.empty()) {
    throw Error("no ops").at(file).expected("a header and one row an op");
  }
  if (!(time_us > 0)) {
    throw Error("no op takes any time")
        .at(file)
        .field(fmt::format("{}, {}", kColumns[1], kColumns[2]))
        .hint("a profile without times would be the fastest way to run everything");
  }
  return table;
}

CollectiveTable parse_collective_table(std::string_view text, const std::string& file) {
  CollectiveTable table;
  bool header = true;
  each_line(text, [&](std::size_t line, const std::vector<std::string_view>& fields) {
    check_width(fields, 2, file, line);
    if (header) {
      header = false;
      if (!trim(fields[0]).starts_with("data_size")) {
        throw Error("this is no table of a collective")
            .at(file, line)
            .expected("data_size(MB),time(ms)");
      }
      return;
    }
    const auto size = to_int(trim(fields[0]));
    if (!size || *size < 0) {
      throw Error(fmt::format("'{}' is no size", printable(fields[0])))
          .at(file, line)
          .field("data_size(MB)")
          .expected("a whole number of MB");
    }
    const double time = amount(fields[1], file, line, "time(ms)");
    const auto [place, fresh] = table.emplace(*size, time);
    if (!fresh && place->second != time) {
      throw Error(fmt::format("{} MB stands twice, with {} and {} ms", *size, place->second, time))
          .at(file, line);
    }
  });
  return table;
}

PeerTable parse_peer_table(std::string_view text, const std::string& file) {
  PeerTable table{};
  std::size_t row = 0;
  each_line(text, [&](std::size_t line, const std::vector<std::string_view>& fields) {
    if (++row > 2) {
      throw Error("a third row").at(file, line).expected("sizes, then bandwidths");
    }
    check_width(fields, table.size(), file, line);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const double value =
          amount(fields[i], file, line, row == 1 ? "size in MB" : "bandwidth in GB/s");
      if (row == 1 && value != static_cast<double>(std::int64_t{1} << i)) {
        throw Error(fmt::format("size {} in place {}", value, i + 1))
            .at(file, line)
            .expected("1, 2, 4 … 1024");
      }
      if (row == 2) {
        if (value == 0) {
          throw Error("a bandwidth of 0").at(file, line).field("bandwidth in GB/s");
        }
        table[i] = value;
      }
    }
  });
  if (row != 2) {
    throw Error("two rows are needed").at(file).expected("sizes, then bandwidths");
  }
  return table;
}

}  // namespace lockstep::aceso
