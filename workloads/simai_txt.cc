#include "workloads/simai_txt.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/simai_header.h"
#include "workloads/simai_line.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

/// "a -1 0 NONE 0 0 NONE 0 0 NONE 0 0" and a line end.
constexpr std::size_t kShortestLine = 33;
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

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
      std::string_view name;
      const char* behind = customized ? nullptr : scan_simai_line(at_, end_, layer, name);
      if (behind != nullptr) {
        const auto [id, is_new] = names.intern(name);
        layer.name = id;
        if (is_new) {
          slow_line(customized).check_name();
        }
        at_ = behind;
        ++line_;
        continue;
      }
      const SimaiLine slow = slow_line(customized);
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
  SimaiLine slow_line(bool customized) const {
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
            .field(key == SimaiKey::kCheckpoints ? "checkpoints" : "checkpoint_initiates")
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
