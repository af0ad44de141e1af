#include "app/plan/given_plan.h"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/plan/job_words.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 53;

/// What both the plan and the command line around it may say.
std::string_view shared_flag(std::string_view name) {
  const std::string plain = with_underscores(name);
  return plain == "gpus" || plain == "world_size"                                    ? "--gpus"
         : plain == "gbs" || plain == "global_batch" || plain == "global_batch_size" ? "--gbs"
                                                                                     : "";
}

/// A flag's name in a word such as "--tp" or "--tp=4"; empty: it is no flag.
std::string_view name_in(std::string_view word) {
  return word.starts_with("--") ? word.substr(2, word.find('=') - 2) : std::string_view();
}

/// A plan that is written as an object of flags.
std::vector<std::string> words_of(const JsonView& plan) {
  std::vector<std::string> words;
  for (const auto& [name, ignored] : plan.json().items()) {
    const JsonView value = plan[name];
    if (!is_axis(name) && shared_flag(name).empty()) {
      throw value.error("this is no axis of a plan")
          .expected("tp, pp, mbs, zero and others, as in 'flags' of what 'plan --model' writes");
    }
    if (value.json().is_boolean() && !value.boolean()) {
      continue;
    }
    words.push_back("--" + name);
    if (!value.json().is_boolean()) {
      words.push_back(value.json().is_string() ? value.string()
                                               : std::to_string(value.integer(0, kMost)));
    }
  }
  return words;
}

std::vector<std::string> parse_words(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonView document(json, file);
  if (!json.is_object() || json.empty()) {
    throw document.error("this is no plan")
        .expected("an object of flags, or what 'plan --model' writes");
  }
  const JsonView plan = document.has("best") ? document["best"] : document;
  if (!plan.json().is_object()) {
    throw plan.error("expected an object, such as an entry of 'plans'");
  }
  if (plan.has("kinds")) {
    throw plan["kinds"]
        .error("no flags say how these pipelines differ")
        .expected("a plan of --replicas alike")
        .hint("job.sh beside this plan's file simulates it");
  }
  if (!plan.has("flags")) {
    return words_of(plan);
  }
  std::vector<std::string> words;
  plan["flags"].each([&](const JsonView& word) {
    const std::string_view name = name_in(word.string());
    if (!name.empty() && !is_axis(name) && shared_flag(name).empty()) {
      throw word.error("this is no axis of a plan");
    }
    words.push_back(word.string());
  });
  return words;
}

/// The value of the flag at `at`; moves `at` to its last word.
std::string value_at(std::span<const std::string> words, std::size_t& at) {
  const std::size_t equals = words[at].find('=');
  if (equals != std::string::npos) {
    return words[at].substr(equals + 1);
  }
  return at + 1 < words.size() ? words[++at] : std::string();
}

/// What `words` say of a flag that both may give.
std::optional<std::string> value_of(std::span<const std::string> words, std::string_view flag) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (shared_flag(name_in(words[i])) == flag) {
      value = value_at(words, i);
    }
  }
  return value;
}

/// ERRORS: Error with file and flag: a value that is none of the flag's.
void check_values(std::span<const std::string> words, const std::string& file) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = name_in(words[i]);
    const bool alone = words[i].find('=') == std::string::npos &&
                       (i + 1 == words.size() || !name_in(words[i + 1]).empty());
    if (name.empty() || alone) {
      continue;
    }
    const std::string value = value_at(words, i);
    try {
      for (const std::string_view part : split(value, ',')) {
        check_axis(name, trim(part));
      }
    } catch (Error& error) {
      throw std::move(error).at(file).field(name);
    }
  }
}

}  // namespace

std::vector<std::string> words_with_plan(std::span<const std::string> words,
                                         const std::string& file) {
  const FileText text(file, Bytes(1 << 24));
  return words_with_plan(words, text.view(), file);
}

std::vector<std::string> words_with_plan(std::span<const std::string> words, std::string_view text,
                                         const std::string& file) {
  for (const std::string& word : words) {
    const std::string_view name = name_in(word);
    if (!name.empty() && is_axis(name) && shared_flag(name).empty()) {
      throw Error(fmt::format("{} says how the job is cut", file))
          .field(fmt::format("--{}", name))
          .expected("no axis beside --price but --gpus");
    }
  }
  const std::vector<std::string> plan = parse_words(text, file);
  check_values(plan, file);
  for (const std::string_view flag : {"--gpus", "--gbs"}) {
    const std::optional<std::string> here = value_of(words, flag), there = value_of(plan, flag);
    if (here && there && to_int(*here) != to_int(*there)) {
      throw Error(fmt::format("the plan is of {}, not of {}", printable(*there), printable(*here)))
          .at(file)
          .field(std::string(flag))
          .expected("the plan's, or none");
    }
  }
  std::vector<std::string> result(words.begin(), words.end());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const std::string_view flag = shared_flag(name_in(plan[i]));
    if (!flag.empty() && value_of(words, flag)) {
      value_at(plan, i);  // said already
      continue;
    }
    result.push_back(plan[i]);
  }
  return result;
}

}  // namespace lockstep
