#include "simulator/collectives/split.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {
namespace {

struct Row {
  std::vector<Bytes> sizes;
  std::size_t line = 0;
};

/// Rows of sizes between blanks or commas; # starts a comment.
std::vector<Row> parse_rows(std::string_view text, const std::string& file) {
  std::vector<Row> rows;
  std::size_t number = 0;
  for (const std::string_view whole : split(text, '\n')) {
    ++number;
    std::string line(whole.substr(0, whole.find('#')));
    std::ranges::replace(line, ',', ' ');
    Row row;
    row.line = number;
    for (const std::string_view word : split_blanks(line)) {
      try {
        row.sizes.push_back(parse_bytes(word));
      } catch (Error& error) {
        error.locate(file, number);
        throw;
      }
    }
    if (!row.sizes.empty()) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Bytes sum(const std::vector<Bytes>& sizes) {
  Bytes total;
  for (const Bytes size : sizes) {
    total += size;
  }
  return total;
}

}  // namespace

Split parse_split(std::string_view text, const std::string& file, CommType op, std::size_t ranks) {
  const bool all_to_all = op == CommType::kAllToAll;
  if (!all_to_all && op != CommType::kAllGather && op != CommType::kReduceScatter) {
    throw Error(std::string(name_of(op)) + " has no split")
        .at(file)
        .expected("alltoall, allgather or reducescatter");
  }
  const std::vector<Row> rows = parse_rows(text, file);
  Split result;
  for (const Row& row : rows) {
    if (all_to_all && row.sizes.size() != ranks) {
      throw Error("a row of " + std::to_string(row.sizes.size()) + " sizes")
          .at(file, row.line)
          .expected(std::to_string(ranks) + ", one a rank");
    }
    result.sizes.insert(result.sizes.end(), row.sizes.begin(), row.sizes.end());
    result.bytes = all_to_all ? std::max(result.bytes, sum(row.sizes)) : sum(result.sizes);
  }
  const std::size_t expected = all_to_all ? ranks * ranks : ranks;
  if (result.sizes.size() != expected) {
    throw Error(std::to_string(result.sizes.size()) + " sizes for " + std::to_string(ranks) +
                " ranks")
        .at(file)
        .expected(std::to_string(expected) + (all_to_all ? ": a row a rank" : ": one a rank"));
  }
  if (result.bytes == Bytes(0)) {
    throw Error("there is nothing to send").at(file);
  }
  return result;
}

Split read_split(const std::string& path, CommType op, std::size_t ranks) {
  const FileText file(path, Bytes(std::int64_t{1} << 30));
  return parse_split(file.view(), path, op, ranks);
}

}  // namespace lockstep
