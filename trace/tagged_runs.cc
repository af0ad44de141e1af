#include "trace/tagged_runs.h"

#include <algorithm>
#include <cstddef>
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
  constexpr std::size_t kMostRuns = 4096;
  std::vector<TaggedRun> runs;
  std::size_t last = 0;  // who began last
  bool mixed = false;
  std::string tag;
  const auto run_of = [&](std::string_view line) {
    tag.clear();
    drop_tags(line, &tag);
    const std::size_t run =
        static_cast<std::size_t>(std::ranges::find(runs, tag, &TaggedRun::tag) - runs.begin());
    return std::pair(run, line);
  };
  std::string_view rest = text, line;
  while (next_line(rest, line)) {
    const auto [run, words] = run_of(line);
    if (begins_run(words) && !tag.empty()) {
      if (run == runs.size()) {
        if (runs.size() == kMostRuns) {
          return {};
        }
        runs.push_back({tag, {}});
      }
      last = run;
    } else if (run < runs.size() && run != last) {
      mixed = true;
    }
  }
  if (!mixed) {
    return {};
  }
  rest = text;
  while (next_line(rest, line)) {
    const std::size_t of = run_of(line).first;
    for (std::size_t run = 0; run < runs.size(); ++run) {
      if (of == run || of == runs.size()) {
        runs[run].text += line;
      }
      runs[run].text += '\n';
    }
  }
  return runs;
}

void append_tables(PhysicalLog&& run, std::string_view tag, PhysicalLog& log, TextTable& names) {
  tag = tag.substr(0, tag.find_last_not_of(": \t") + 1);
  const auto first = static_cast<std::int32_t>(log.settings.size());
  for (CommSetting& setting : run.settings) {
    setting.id += fmt::format("#{}", tag);
    log.settings.push_back(std::move(setting));
  }
  for (CommRow& row : run.comms) {
    row.setting += first;
    row.name = names.index(run.names[static_cast<std::size_t>(row.name)]);
    log.comms.push_back(row);
  }
  for (const Warnings::Entry& entry : run.warnings.entries()) {
    log.warnings.add(entry.text, entry.count);
  }
  log.facts.insert(run.facts.begin(), run.facts.end());
}

}  // namespace lockstep
