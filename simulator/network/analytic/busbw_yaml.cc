#include "simulator/network/analytic/busbw_yaml.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> kSections{"TP", "DP", "EP", "PP"};
constexpr std::array<std::string_view, 4> kEntries{"allreduce", "allgather", "reducescatter",
                                                   "alltoall"};
constexpr std::string_view kPipelineEntry = "busbw";
constexpr double kMaxGBps = 1e9;

template <class Names>
std::optional<std::size_t> index_of(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end()
             ? std::nullopt
             : std::optional<std::size_t>(static_cast<std::size_t>(found - names.begin()));
}

struct Line {
  std::string_view key;
  std::string_view value;  ///< empty after a section
  bool has_colon = false;
};

Line split_line(std::string_view text) {
  text = trim(text.substr(0, text.find('#')));
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return {text, {}, false};
  }
  std::string_view key = trim(text.substr(0, colon));
  if (key.ends_with(',')) {
    key = trim(key.substr(0, key.size() - 1));
  }
  return {key, trim(text.substr(colon + 1)), true};
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read_line(std::string_view text, std::size_t number) {
    number_ = number;
    const Line line = split_line(text);
    if (line.key.empty() && !line.has_colon) {
      return;
    }
    const bool first = !std::exchange(begun_, true);
    if (line.has_colon && line.value.empty()) {
      section_ = index_of(kSections, line.key);
      if (!section_) {
        throw problem(fmt::format("unknown section '{}'", printable(line.key)))
            .expected(join(kSections, ", "));
      }
    } else if (section_ && line.has_colon) {
      read_entry(line);
    } else if (!first) {
      throw problem(
          fmt::format("'{}' is neither a section nor an entry of one", printable(trim(text))))
          .expected("a section such as 'TP:', then entries such as 'allreduce: 300'");
    }
  }
  const BusBandwidths& result() const { return result_; }
  void require_section() const {
    if (!section_) {
      throw Error("the file has no section").at(file_).expected(join(kSections, ", "));
    }
  }

 private:
  Error problem(std::string message) const { return Error(std::move(message)).at(file_, number_); }

  void read_entry(const Line& line) {
    const std::string_view section = kSections[*section_];
    const bool pipeline = section == "PP";
    const std::optional<std::size_t> entry = index_of(kEntries, line.key);
    if (pipeline ? line.key != kPipelineEntry : !entry) {
      throw problem(fmt::format("unknown entry '{}' in section {}", printable(line.key), section))
          .expected(pipeline ? std::string(kPipelineEntry) : join(kEntries, ", "));
    }
    const std::string name = fmt::format("{}.{}", section, line.key);
    if (!seen_.insert(name).second) {
      throw problem("the entry stands twice").field(name);
    }
    if (line.value == "null" || line.value == "~") {
      return;
    }
    const std::optional<double> value = to_double(line.value);
    if (!value || *value <= 0 || *value > kMaxGBps) {
      throw problem(fmt::format("'{}' is no bandwidth", printable(line.value)))
          .field(name)
          .expected("GB/s (1e9 bytes) above 0, or null");
    }
    const Bandwidth rate = Bandwidth::bytes_per_second(*value * 1e9);
    (pipeline ? result_.pipeline : result_.collectives[*section_][*entry]) = rate;
  }

  const std::string& file_;
  std::size_t number_ = 0;
  bool begun_ = false;
  std::optional<std::size_t> section_;
  std::set<std::string> seen_;
  BusBandwidths result_;
};

}  // namespace

std::optional<Bandwidth> BusBandwidths::find(GroupKind group, CommType op) const {
  const auto entry = [&](Section section) -> std::optional<Bandwidth> {
    switch (op) {
      case CommType::kAllReduce:
        return collectives[section][0];
      case CommType::kAllGather:
        return collectives[section][1];
      case CommType::kReduceScatter:
        return collectives[section][2];
      case CommType::kAllToAll:
        return collectives[section][3];
      default:
        return std::nullopt;
    }
  };
  switch (group) {
    case GroupKind::kTp:
      return entry(kTp);
    case GroupKind::kDp:
      return entry(kDp);
    case GroupKind::kEp:
    case GroupKind::kDpEp:
      return entry(kEp);
    default:
      return std::nullopt;
  }
}

BusBandwidths parse_busbw_yaml(std::string_view text, const std::string& file) {
  Reader reader(file);
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    reader.read_line(lines[i], i + 1);
  }
  reader.require_section();
  return reader.result();
}

BusBandwidths read_busbw_yaml(const std::string& path) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 20;
  return parse_busbw_yaml(FileText(path, Bytes(kLimit)).view(), path);
}

}  // namespace lockstep
