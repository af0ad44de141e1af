// Our own time lines as a table: a row an operation (write_timeline_csv() in trace/timeline.h).
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/timeline_log.h"

namespace lockstep {
namespace {

constexpr std::string_view kHeader = "rank,track,kind,name,begin_s,end_s,bytes,together";

/// How many columns a header has; 0: it is another one. Earlier versions wrote seven.
std::size_t columns_of(std::string_view header) {
  header = trim(header);
  return header == kHeader ? 8 : header == kHeader.substr(0, kHeader.rfind(',')) ? 7 : 0;
}

bool sniff(std::string_view head, std::string_view) {
  std::string_view line;
  return next_line(head, line) && columns_of(line) > 0;
}

class Reader {
 public:
  void run(std::string_view text, PhysicalLog& log) {
    std::string_view line;
    columns_ = next_line(text, line) ? columns_of(line) : 0;
    if (columns_ == 0) {
      throw Error("the first line is another one").expected(std::string(kHeader));
    }
    timeline_.keys = {"bytes"};
    while (next_line(text, line)) {
      if (!trim(line).empty() && !take(line)) {
        log.warnings.add("lines that are no row of a time line were left out");
      }
    }
    if (timeline_.events.empty()) {
      throw Error("there are no rows").expected("a row an operation");
    }
    add_to_log(timeline_, log);
  }

 private:
  /// Whether it is a row.
  bool take(std::string_view line) {
    split_csv(line, fields_);
    if (fields_.size() != columns_) {
      return false;
    }
    const auto rank = to_int(fields_[0]), bytes = to_int(fields_[6]);
    const std::optional<Time> begin = time(fields_[4]), end = time(fields_[5]);
    if (!rank || *rank < 0 || *rank >= (1 << 24) || !bytes || *bytes < 0 || !begin || !end ||
        *end < *begin) {
      return false;
    }
    const std::int64_t together = columns_ > 7 ? to_int(fields_[7]).value_or(-1) : -1;
    if (columns_ > 7 && !fields_[7].empty() && together < 0) {
      return false;
    }
    TimelineEvent event;
    event.track = track(static_cast<std::int32_t>(*rank), fields_[1]);
    event.kind = kinds_.index(fields_[2]);
    event.name = names_.index(fields_[3]);
    event.begin = *begin;
    event.end = *end;
    if (*bytes > 0) {
      event.arguments = 1;
      event.first_argument = std::ssize(timeline_.arguments);
      timeline_.arguments.push_back({0, *bytes});
    }
    if (together >= 0) {
      const auto [first, is_new] = together_.try_emplace(together, std::ssize(timeline_.events));
      if (!is_new) {
        timeline_.flows.push_back({first->second, std::ssize(timeline_.events)});
      }
    }
    timeline_.events.push_back(event);
    return true;
  }

  /// To the picosecond; nothing where it is no time of the clock.
  static std::optional<Time> time(const std::string& text) {
    const auto seconds = to_double(text);
    return seconds && *seconds >= 0 && *seconds < 9e6 ? std::optional(Time::seconds(*seconds))
                                                      : std::nullopt;
  }

  std::int32_t track(std::int32_t rank, const std::string& name) {
    const auto [found, is_new] = tracks_.try_emplace({rank, name}, 0);
    if (!is_new) {
      return found->second;
    }
    const auto [above, first] = ranks_.try_emplace(rank, std::pair(0, 0));
    if (first) {
      above->second.first = static_cast<std::int32_t>(timeline_.tracks.size());
      timeline_.tracks.push_back({"rank " + std::to_string(rank), -1, rank});
    }
    found->second = static_cast<std::int32_t>(timeline_.tracks.size());
    timeline_.tracks.push_back({name, above->second.first, above->second.second++});
    return found->second;
  }

  Timeline timeline_;
  TextTable names_{timeline_.names}, kinds_{timeline_.kinds};
  std::map<std::pair<std::int32_t, std::string>, std::int32_t> tracks_;
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> ranks_;  // track, tracks below it
  std::map<std::int64_t, std::int64_t> together_;  // the first event of each number
  std::size_t columns_ = 0;
  std::vector<std::string> fields_;
};

void read(std::string_view text, PhysicalLog& log) { Reader().run(text, log); }

}  // namespace

extern const LogReader kTimelineCsvLogReader;
const LogReader kTimelineCsvLogReader{"timeline-csv", "our own time lines as a table", sniff, read};

}  // namespace lockstep
