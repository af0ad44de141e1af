#include "trace/tagged_runs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "trace/log_line.h"

namespace lockstep {
namespace {

bool begins_run(std::string_view line) {
  return line.starts_with("# nThread ") || line.starts_with("# Collective test starting");
}

}  // namespace

std::vector<TaggedRun> runs_by_tag(std::string_view text) {
  constexpr std::size_t kMostRuns = 4096, kMostBefore = 16 << 10;
  std::map<std::string, std::size_t, std::less<>> known;  // the run of a tag
  std::size_t last = 0;                                   // who began last
  std::int64_t first_line = 0, number = 0;                // where the first run begins
  std::size_t first_at = 0;
  bool mixed = false;
  std::string tag;
  std::string_view rest = text, line;
  while (next_line(rest, line)) {
    ++number;
    std::string_view words = line;
    tag.clear();
    drop_tags(words, &tag);
    if (!tag.empty() && begins_run(words)) {
      if (known.empty()) {
        first_line = number;
        first_at = static_cast<std::size_t>(line.data() - text.data());
      }
      last = known.try_emplace(tag, known.size()).first->second;
    } else if (const auto run = known.find(tag); run != known.end()) {
      mixed = mixed || run->second != last;
    }
  }
  if (!mixed || known.size() > kMostRuns) {
    return {};
  }
  // The last whole lines before the first run.
  std::string_view before = text.substr(0, first_at);
  if (before.size() > kMostBefore) {
    before.remove_prefix(before.size() - kMostBefore);
    before.remove_prefix(before.find('\n') + 1);
  }
  const std::int64_t lines_before = std::ranges::count(before, '\n');
  std::vector<TaggedRun> runs(known.size());
  for (const auto& [name, run] : known) {
    runs[run] = {name, std::string(before), {}};
    for (std::int64_t i = lines_before; i > 0; --i) {
      runs[run].lines.push_back(first_line - i);
    }
  }
  rest = text.substr(first_at);
  for (number = first_line; next_line(rest, line); ++number) {
    std::string_view words = line;
    tag.clear();
    drop_tags(words, &tag);
    if (const auto run = known.find(tag); run != known.end()) {
      runs[run->second].text += line;
      runs[run->second].text += '\n';
      runs[run->second].lines.push_back(number);
    }
  }
  return runs;
}

void append_tables(PhysicalLog&& part, const TaggedRun& run, PhysicalLog& log, TextTable& names) {
  const std::string_view tag =
      std::string_view(run.tag).substr(0, run.tag.find_last_not_of(": \t") + 1);
  const auto first = static_cast<std::int32_t>(log.settings.size());
  for (CommSetting& setting : part.settings) {
    setting.id += fmt::format("#{}", tag);
    log.settings.push_back(std::move(setting));
  }
  for (CommRow& row : part.comms) {
    row.setting += first;
    row.name = names.index(part.names[static_cast<std::size_t>(row.name)]);
    row.line = run.lines[static_cast<std::size_t>(row.line) - 1];
    log.comms.push_back(row);
  }
  for (const Warnings::Entry& entry : part.warnings.entries()) {
    log.warnings.add(entry.text, entry.count);
  }
  log.facts.insert(part.facts.begin(), part.facts.end());
}

}  // namespace lockstep
