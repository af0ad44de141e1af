#include "app/plan/aceso_flags.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

struct Flag {
  std::string_view theirs, ours;  ///< ours empty: there is none
};
constexpr Flag kFlags[] = {{"--model-name", "--aceso-model"},
                           {"--model-size", "--aceso-size"},
                           {"--global-batch-size", "--global-batch"},
                           {"--micro-batch-size", "--micro-batch"},
                           {"--num-nodes", "--nodes"},
                           {"--num-gpus-per-node", "--gpus-per-node"},
                           {"--profiled-time-path", "--profiles"},
                           {"--config-save-path", "--output"},
                           {"--num-of-saved-configs", "--top"},
                           {"--time-budget-total", "--deadline"},
                           {"--log-path", ""},
                           {"--config-suffix", ""},
                           {"--max-num-hops", ""},
                           {"--initial-point", ""},
                           {"--finetune-after-trial", ""},
                           {"--memory-pred-type", ""},
                           {"--consider-collective-memory", ""}};

const Flag* flag_of(std::string_view word) {
  const auto found = std::ranges::find(kFlags, word.substr(0, word.find('=')), &Flag::theirs);
  return found == std::end(kFlags) ? nullptr : &*found;
}

}  // namespace

void refuse_flags_of_aceso(const std::vector<std::string>& words) {
  std::vector<std::string> renamed, none;
  std::string_view first;
  for (const std::string& word : words) {
    const Flag* flag = flag_of(word);
    if (flag == nullptr) {
      continue;
    }
    first = first.empty() ? flag->theirs : first;
    if (flag->ours.empty()) {
      none.emplace_back(flag->theirs);
    } else {
      renamed.push_back(fmt::format("{} for {}", flag->ours, flag->theirs));
    }
  }
  if (first.empty()) {
    return;
  }
  std::string hint;
  if (!renamed.empty()) {
    hint = fmt::format("here it is {}", fmt::join(renamed, ", "));
  }
  if (!none.empty()) {
    hint += fmt::format("{}without {}, which the search here has no use for",
                        hint.empty() ? "" : "; ", fmt::join(none, ", "));
  }
  throw Error("this is a flag of Aceso's own program").field(std::string(first)).hint(hint);
}

}  // namespace lockstep
