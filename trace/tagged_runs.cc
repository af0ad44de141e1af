#include "trace/tagged_runs.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace lockstep
