// What calibrate makes of one half of a cluster's tables, on the other half: no cluster's line of
// docs/accuracy.md may get worse, and that file is what the command writes.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "analysis/compare/score.h"
#include "base/text.h"
#include "tests/support/reference.h"
#include "tests/support/sanitized.h"

namespace lockstep::compare::accuracy_halves_test {
namespace {

/// "2.8 %, 7.7 %" in percent; nothing if it is none.
std::optional<std::pair<double, double>> pair_in(std::string_view cell) {
  const auto parts = split(cell, ',');
  if (parts.size() != 2 || !parts[0].ends_with(" %") || !parts[1].ends_with(" %")) {
    return std::nullopt;
  }
  const auto number = [](std::string_view part) {
    const std::string_view word = trim(part);
    return to_double(word.substr(0, word.size() - 2)).value_or(-1);
  };
  return std::pair(number(parts[0]), number(parts[1]));
}

/// "calibrated" and "from defaults" of each cluster in the board's text.
std::map<std::string, std::array<std::pair<double, double>, 2>> clusters(const std::string& text) {
  std::map<std::string, std::array<std::pair<double, double>, 2>> lines;
  const std::size_t begin = text.find("## Calibrated by halves");
  if (begin == std::string::npos) {
    return lines;
  }
  for (const std::string_view line :
       split(std::string_view(text).substr(begin, text.find("\n## ", begin + 1) - begin), '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() < 8) {
      continue;
    }
    const auto calibrated = pair_in(trim(cells[5])), defaults = pair_in(trim(cells[7]));
    if (calibrated && defaults) {
      lines[std::string(trim(cells[1]))] = {*calibrated, *defaults};
    }
  }
  return lines;
}

// A model that became better is recorded by writing the file anew; the table of steps behind it is
// step_score_test's.
TEST(AccuracyByHalves, NoClusterGetsWorseAndTheFileIsWhatScoreWrites) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string board =
      score_markdown(score_folder(testing::reference_dir() + "/physical", {}, true));
  const std::string written = testing::slurp(LOCKSTEP_SOURCE_DIR "/docs/accuracy.md");
  if (!testing::is_sanitized()) {  // other compilers round otherwise
    EXPECT_EQ(written.substr(0, written.find("\n## Training steps")), board)
        << "lockstep score measurements --halves --step-gpus 64 -o docs/accuracy.md";
  }
  const auto now = clusters(board), then = clusters(written);
  ASSERT_GE(then.size(), 10U);
  for (const auto& [name, line] : then) {
    const auto found = now.find(name);
    ASSERT_NE(found, now.end()) << name << " is gone";
    for (const std::size_t which : {0U, 1U}) {
      EXPECT_LE(found->second[which].first, 1.05 * line[which].first + 0.5) << name;
      EXPECT_LE(found->second[which].second, 1.1 * line[which].second + 1) << name;
    }
  }
  // The goal is a median of 5 % and a 90th percentile of 12 %; the clusters that meet it:
  int met = 0;
  for (const auto& entry : now) {
    const auto& calibrated = entry.second[0];
    met += entry.first != "all" && calibrated.first <= 5 && calibrated.second <= 12 ? 1 : 0;
  }
  EXPECT_GE(met, 3);
}

}  // namespace
}  // namespace lockstep::compare::accuracy_halves_test
