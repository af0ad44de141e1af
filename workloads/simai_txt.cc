#include "workloads/simai_txt.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/simai_header.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 12> kColumns{
    "name",
    "dependency",
    "forward compute time",
    "forward comm type",
    "forward comm size",
    "input-gradient compute time",
    "input-gradient comm type",
    "input-gradient comm size",
    "weight-gradient compute time",
    "weight-gradient comm type",
    "weight-gradient comm size",
    "update time",
};
constexpr std::string_view kPolicyColumn = "policy";
/// "a -1 0 NONE 0 0 NONE 0 0 NONE 0 0" and a line end.
constexpr std::size_t kShortestLine = 33;
constexpr std::int64_t kMaxTimeNs = std::numeric_limits<std::int64_t>::max() / 1'000;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_word(char c) { return static_cast<unsigned char>(c) > ' '; }

/// Each name once, numbered by first use.
class NameTable {
 public:
  explicit NameTable(std::vector<std::string>& names) : names_(names) {}

  /// `name` must outlive the table. The second is true on the first use.
  std::pair<std::int32_t, bool> intern(std::string_view name) {
    const auto [found, added] = ids_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (added) {
      names_.emplace_back(name);
    }
    return {found->second, added};
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

/// One layer line in its common shape: plain decimal numbers of at most 15 digits, the usual
/// spellings. Anything else is left to SlowLine, which reads every valid line and explains the
/// others.
class FastLine {
 public:
  FastLine(const char* begin, const char* end) : at_(begin), end_(end) {}

  /// Whether the line was read. Then at() is behind it, and name() its first column.
  bool read(Layer& layer) {
    return word(name_) && integer(layer.dependency) && phase(layer.forward, GroupKind::kTp) &&
           phase(layer.input_grad, GroupKind::kTp) && phase(layer.weight_grad, GroupKind::kDp) &&
           time(layer.update) && line_end();
  }
  std::string_view name() const { return name_; }
  const char* at() const { return at_; }

 private:
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) {
      ++at_;
    }
  }

  bool word(std::string_view& out) {
    skip_blanks();
    const char* begin = at_;
    while (at_ != end_ && is_word(*at_)) {
      ++at_;
    }
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    return !out.empty();
  }

  bool number(std::int64_t& out) {
    skip_blanks();
    constexpr std::ptrdiff_t kMaxDigits = 15;
    const char* begin = at_;
    std::int64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin <= kMaxDigits) {
      value = value * 10 + (*at_ - '0');
      ++at_;
    }
    out = value;
    return at_ != begin && at_ - begin <= kMaxDigits && (at_ == end_ || !is_word(*at_));
  }

  bool integer(std::int32_t& out) {
    skip_blanks();
    const bool negative = at_ != end_ && *at_ == '-';
    at_ += negative ? 1 : 0;
    std::int64_t value = 0;
    if (at_ == end_ || is_blank(*at_) || !number(value) ||
        value > std::numeric_limits<std::int32_t>::max()) {
      return false;
    }
    out = static_cast<std::int32_t>(negative ? -value : value);
    return true;
  }

  bool time(Time& out) {
    std::int64_t ns = 0;
    if (!number(ns)) {
      return false;
    }
    out = Time::ps(ns * 1'000);  // below 10^18
    return true;
  }

  bool phase(LayerPhase& phase, GroupKind plain) {
    std::string_view type;
    std::int64_t bytes = 0;
    if (!time(phase.compute) || !word(type) || !number(bytes)) {
      return false;
    }
    phase.bytes = Bytes(bytes);
    if (type == "NONE") {
      phase.comm = CommType::kNone;
      phase.group = plain;
      return true;
    }
    const std::optional<SimaiComm> comm = parse_simai_comm(type, plain);
    if (!comm) {
      return false;
    }
    phase.comm = comm->comm;
    phase.group = comm->group;
    return true;
  }

  bool line_end() {
    skip_blanks();
    if (at_ == end_) {
      return true;
    }
    return *at_++ == '\n';
  }

  const char* at_;
  const char* end_;
  std::string_view name_;
};

/// One layer line with everything that may be in it; throws an Error about the first fault.
class SlowLine {
 public:
  SlowLine(std::string_view line, LinePlace place, bool customized, bool at_file_end)
      : line_(line), place_(place), words_(split_blanks(line)) {
    const std::size_t wanted = kColumns.size() + (customized ? 1 : 0);
    if (words_.size() == wanted) {
      return;
    }
    Error problem = Error(fmt::format("the line has {} columns", words_.size()))
                        .at(place_.file, place_.line)
                        .expected(fmt::format("{} columns: {}{}", wanted, join(kColumns, ", "),
                                              customized ? ", policy" : ""));
    if (at_file_end && words_.size() < wanted) {
      throw std::move(problem).hint("the file ends here; was it cut off?");
    }
    throw problem;
  }

  std::string_view read(Layer& layer) const {
    layer.dependency = static_cast<std::int32_t>(integer(
        1, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
    layer.forward = phase(2, GroupKind::kTp);
    layer.input_grad = phase(5, GroupKind::kTp);
    layer.weight_grad = phase(8, GroupKind::kDp);
    layer.update = time(11);
    return words_[0];
  }

  /// Column 13 of HYBRID_CUSTOMIZED.
  std::string_view policy() const {
    const std::string_view word = words_.back();
    if (!is_simai_policy(word)) {
      const std::string_view near = closest(word, simai_policies());
      throw error(words_.size() - 1,
                  fmt::format("unknown parallelism policy '{}'", printable(word)))
          .expected(join(simai_policies(), ", "))
          .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    return word;
  }

  /// Checked once a name.
  void check_name() const {
    for (const char c : words_[0]) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') {
        throw error(0, fmt::format("'{}' has control characters in it", printable(words_[0])))
            .expected("a name without blanks and control characters")
            .hint("is this a text file?");
      }
    }
  }

 private:
  LayerPhase phase(std::size_t first, GroupKind plain) const {
    LayerPhase out;
    out.compute = time(first);
    const std::optional<SimaiComm> comm = parse_simai_comm(words_[first + 1], plain);
    if (!comm) {
      const std::string_view near = closest_simai_comm(words_[first + 1]);
      throw error(first + 1,
                  fmt::format("unknown communication type '{}'", printable(words_[first + 1])))
          .expected(
              "NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST with nothing, "
              "_EP or _DP_EP behind")
          .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    out.comm = comm->comm;
    out.group = comm->group;
    out.bytes = Bytes(integer(first + 2, 0, std::numeric_limits<std::int64_t>::max(), " of bytes"));
    return out;
  }

  Time time(std::size_t column) const {
    return Time::ns(integer(column, 0, kMaxTimeNs, " of nanoseconds"));
  }

  std::int64_t integer(std::size_t column, std::int64_t low, std::int64_t high,
                       std::string_view unit = "") const {
    const std::optional<std::int64_t> value = to_int(words_[column]);
    if (!value || *value < low || *value > high) {
      throw error(column, fmt::format("'{}' is not a valid value", printable(words_[column])))
          .expected(fmt::format("a whole number{} from {} to {}", unit, low, high));
    }
    return *value;
  }

  Error error(std::size_t column, std::string message) const {
    const auto offset = static_cast<std::size_t>(words_[column].data() - line_.data());
    return Error(std::move(message))
        .at(place_.file, place_.line, offset + 1)
        .field(column < kColumns.size() ? kColumns[column] : kPolicyColumn);
  }

  std::string_view line_;
  LinePlace place_;
  std::vector<std::string_view> words_;
};

class SimaiReader {
 public:
  SimaiReader(std::string_view text, const std::string& file, Warnings* warnings)
      : at_(text.data()), end_(text.data() + text.size()), file_(file), warnings_(warnings) {}

  Workload read() {
    WorkloadJob job;
    LayerTable table;
    read_header(job, table);
    read_layers(table);
    check_layer_list(SimaiKey::kCheckpoints, table.checkpoints, table);
    check_layer_list(SimaiKey::kCheckpointInitiates, table.checkpoint_initiates, table);
    job.name = stem();
    job.work = std::move(table);
    Workload workload;
    workload.jobs.push_back(std::move(job));
    return workload;
  }

 private:
  void read_header(WorkloadJob& job, LayerTable& table) {
    if (!skip_blank_lines()) {
      throw Error("the file is empty")
          .at(file_)
          .expected("a workload: a policy with its keys, the number of layers, one line a layer");
    }
    header_line_ = line_;
    parse_simai_header(take_line(), {file_, header_line_}, job, table, warnings_);
    if (!skip_blank_lines()) {
      throw Error("the file ends after its first line")
          .at(file_, header_line_)
          .expected("a second line with the number of layers");
    }
    count_line_ = line_;
    const std::string_view text = trim(take_line());
    const std::optional<std::int64_t> count = to_int(text);
    if (!count || *count < 1 || *count > std::numeric_limits<std::int32_t>::max()) {
      throw Error(fmt::format("'{}' is not a valid number of layers", printable(text)))
          .at(file_, count_line_, 1)
          .field("number of layers")
          .expected(fmt::format("a whole number from 1 to {}, alone on its line",
                                std::numeric_limits<std::int32_t>::max()));
    }
    count_ = static_cast<std::size_t>(*count);
  }

  void read_layers(LayerTable& table) {
    const bool customized = table.policy == kCustomizedPolicy;
    NameTable names(table.names);
    table.layers.reserve(
        std::min(count_, static_cast<std::size_t>(end_ - at_) / kShortestLine + 1));
    while (skip_blank_lines()) {
      if (table.layers.size() == count_) {
        throw count_error(fmt::format("more layers than the {} of line {}", count_, count_line_),
                          line_);
      }
      Layer& layer = table.layers.emplace_back();
      FastLine fast(at_, end_);
      if (!customized && fast.read(layer)) {
        const auto [id, is_new] = names.intern(fast.name());
        layer.name = id;
        if (is_new) {
          slow_line(customized).check_name();
        }
        at_ = fast.at();
        ++line_;
        continue;
      }
      const SlowLine slow = slow_line(customized);
      layer.name = names.intern(slow.read(layer)).first;
      slow.check_name();
      if (customized) {
        table.layer_policies.emplace_back(slow.policy());
      }
      take_line();
    }
    if (table.layers.size() < count_) {
      throw count_error(fmt::format("the file ends after {} of the {} layers of line {}",
                                    table.layers.size(), count_, count_line_),
                        line_ - 1);
    }
  }

  /// The line that at_ is in.
  SlowLine slow_line(bool customized) const {
    const std::string_view rest(line_begin_, static_cast<std::size_t>(end_ - line_begin_));
    const std::string_view line = rest.substr(0, rest.find('\n'));
    return {line, {file_, line_}, customized, line.size() == rest.size()};
  }

  Error count_error(std::string message, std::size_t line) const {
    return Error(std::move(message))
        .at(file_, line)
        .expected(fmt::format("as many layer lines as line {} says", count_line_));
  }

  void check_layer_list(SimaiKey key, const std::vector<std::int32_t>& ids,
                        const LayerTable& table) const {
    for (const std::int32_t id : ids) {
      if (static_cast<std::size_t>(id) >= table.layers.size()) {
        throw Error(fmt::format("there is no layer {}", id))
            .at(file_, header_line_)
            .field(key == SimaiKey::kCheckpoints ? "checkpoints:" : "checkpoint_initiates:")
            .expected(fmt::format("layers from 0 to {}", table.layers.size() - 1));
      }
    }
  }

  /// Whether anything is left; then at_ is at the first word of its line.
  bool skip_blank_lines() {
    for (line_begin_ = at_; at_ != end_; ++at_) {
      if (*at_ == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      } else if (!is_blank(*at_)) {
        return true;
      }
    }
    return false;
  }

  /// The line that at_ is in, without its end; at_ moves behind it.
  std::string_view take_line() {
    const auto* newline =
        static_cast<const char*>(std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_)));
    const char* stop = newline == nullptr ? end_ : newline;
    at_ = newline == nullptr ? end_ : newline + 1;
    ++line_;
    return {line_begin_, static_cast<std::size_t>(stop - line_begin_)};
  }

  std::string stem() const {
    std::string_view name = file_;
    name.remove_prefix(
        name.find_last_of('/') == std::string_view::npos ? 0 : name.find_last_of('/') + 1);
    if (name.size() > 4 && name.ends_with(".txt")) {
      name.remove_suffix(4);
    }
    return name.empty() || name == "-" ? "job" : std::string(name);
  }

  const char* at_;
  const char* end_;
  const char* line_begin_ = at_;
  const std::string& file_;
  Warnings* warnings_;
  std::size_t line_ = 1;  // of at_
  std::size_t header_line_ = 1, count_line_ = 2;
  std::size_t count_ = 0;
};

}  // namespace

Workload read_simai_txt(std::string_view text, const std::string& file, Warnings* warnings) {
  return SimaiReader(text, file, warnings).read();
}

}  // namespace lockstep
