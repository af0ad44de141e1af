#include "analysis/compare/halves.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/compare/calibrate.h"

namespace lockstep::compare {
namespace {

constexpr std::size_t kLeastTables = 4;

/// "github:owner/name:path" without its path; and of that, the name.
std::string publisher(const std::string& source) {
  const std::size_t first = source.find(':');
  const std::size_t second = first == std::string::npos ? first : source.find(':', first + 1);
  const std::string whole = source.substr(0, second);
  return whole.substr(whole.rfind('/') + 1);
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

ByHalves fit_by_halves(const std::vector<ComparedRow>& rows, const CompareWishes& wishes) {
  std::map<const CommSetting*, std::string> cluster_of;
  std::map<std::string, std::vector<ComparedRow>> clusters;
  for (const ComparedRow& row : rows) {
    std::string& cluster = cluster_of[row.setting];
    if (cluster.empty()) {
      const auto preset = cluster_preset(*row.setting, wishes);
      const std::string from = publisher(row.setting->source);
      cluster = (preset ? preset->name : "") + (from.empty() ? "" : " (" + from + ")");
    }
    if (row.pattern.empty()) {
      clusters[cluster].push_back(row);
    }
  }
  ByHalves result;
  std::vector<double> all_before, all_after, all_from_defaults;
  for (const auto& [name, members] : clusters) {
    std::set<const CommSetting*> tables;
    for (const ComparedRow& row : members) {
      tables.insert(row.setting);
    }
    if (tables.size() < kLeastTables) {
      continue;
    }
    HalvesLine line;
    line.system = name;
    line.tables = tables.size();
    std::vector<double> before, after, from_defaults;
    CompareWishes unknown = wishes;
    unknown.preset = cluster_preset(*members.front().setting, wishes);
    unknown.preset->system.rates = {};
    for (const TrainingHalf half : {TrainingHalf::kFirst, TrainingHalf::kSecond}) {
      const Calibration fit = calibrate(members, wishes, {}, half);
      append(before, fit.before_held_out_errors);
      append(after, fit.held_out_errors);
      line.kept += fit.preset_kept ? 1 : 0;
      append(from_defaults, calibrate(members, unknown, {}, half).held_out_errors);
    }
    line.before = error_statistics(before);
    line.after = error_statistics(after);
    line.from_defaults = error_statistics(from_defaults);
    append(all_from_defaults, from_defaults);
    append(all_before, before);
    append(all_after, after);
    line.repeats = repeats_of(members);
    result.systems.push_back(std::move(line));
  }
  result.before = error_statistics(all_before);
  result.after = error_statistics(all_after);
  result.from_defaults = error_statistics(all_from_defaults);
  std::ranges::stable_sort(result.systems, [](const HalvesLine& a, const HalvesLine& b) {
    return a.after.p90 > b.after.p90;
  });
  return result;
}

}  // namespace lockstep::compare
