// The accuracy board: no line of docs/accuracy.md may get worse. Its figures are read from that
// file, so that a better model is recorded by writing it anew (the failure says how).
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/compare/score.h"
#include "base/text.h"
#include "tests/support/reference.h"

namespace lockstep::compare {
namespace {

/// Median and p90 by "first cell | second cell" of the tables that have "%" in them.
std::map<std::string, std::pair<double, double>> board(const std::string& text) {
  std::map<std::string, std::pair<double, double>> lines;
  for (const std::string_view line : split(text, '\n')) {
    const auto cells = split(line, '|');
    std::vector<double> shares;
    std::string key;
    for (const std::string_view cell : cells) {
      const std::string_view word = trim(cell);
      if (word.ends_with(" %")) {
        shares.push_back(to_double(word.substr(0, word.size() - 2)).value_or(0));
      } else if (shares.empty() && !to_int(word)) {
        key += std::string(word) + "|";
      }
    }
    if (shares.size() >= 2) {
      lines[key] = {shares[0], shares[1]};
    }
  }
  return lines;
}

TEST(Accuracy, NoLineOfTheBoardGetsWorse) {
  LOCKSTEP_NEEDS_REFERENCE();
  const Score score = score_folder(testing::reference_dir() + "/physical", {});
  const auto now = board(score_markdown(score));
  const auto then = board(testing::slurp(LOCKSTEP_SOURCE_DIR "/docs/accuracy.md"));
  ASSERT_GT(then.size(), 50U);
  for (const auto& [key, errors] : then) {
    const auto found = now.find(key);
    ASSERT_NE(found, now.end()) << key << " is gone; lockstep score writes docs/accuracy.md anew";
    // Noise: the last digit of the figures and of the fits.
    EXPECT_LE(found->second.first, 1.05 * errors.first + 0.5) << key;
  }
  fmt::print("1 MiB and more: median {}, p90 {}; below: median {}, p90 {}\n",
             percent(score.large.median), percent(score.large.p90), percent(score.small.median),
             percent(score.small.p90));
  EXPECT_LT(score.large.median, 0.10);
  EXPECT_LT(score.small.median, 0.20);
}

}  // namespace
}  // namespace lockstep::compare
