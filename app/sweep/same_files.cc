#include "app/sweep/same_files.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "app/sweep/identity.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kQuestion = "look ", kAnswer = "seen ";
constexpr std::chrono::seconds kLate{5};
constexpr std::size_t kMostNamed = 3;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::vector<std::string> differences(const Json& asked, const std::string& output) {
  std::vector<std::string> differ;
  for (const auto& [name, digest] : asked["files"].items()) {
    const std::string here = digest_of_named(name, output);
    if (here != digest) {
      differ.push_back(fmt::format("'{}' {}", printable(name),
                                   here.empty() ? "is not there" : "has other bytes there"));
    }
  }
  std::error_code ignored;
  const std::string journal = output + "/journal.jsonl";
  if (asked["keeps"].get<bool>() && !fs::exists(journal, ignored)) {
    differ.push_back(fmt::format("'{}' is not there", printable(journal)));
  }
  return differ;
}

}  // namespace

std::string letter_of_question(const SweepIdentity& identity, const std::string& output,
                               bool keeps) {
  Json files = Json::object();
  for (const auto& [name, digest] : identity.files) {
    files[name] = digest;
  }
  const Json asked{{"program", identity.program},
                   {"files", std::move(files)},
                   {"output", output},
                   {"keeps", keeps}};
  return std::string(kQuestion) + asked.dump();
}

bool is_question(std::string_view letter) { return letter.starts_with(kQuestion); }

std::string letter_of_answer(std::string_view question) {
  const Json asked = Json::parse(question.substr(kQuestion.size()));
  const std::string output = asked["output"];
  Json answer{{"host", host_name()}, {"same_program", digest_of_programs() == asked["program"]}};
  const auto until = Clock::now() + kLate;
  std::vector<std::string> differ = differences(asked, output);
  while (!differ.empty() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    differ = differences(asked, output);
  }
  answer["differ"] = differ;
  return std::string(kAnswer) + answer.dump();
}

bool is_answer(std::string_view letter) { return letter.starts_with(kAnswer); }

void check_answer(std::string_view answer, int from) {
  const Json seen = Json::parse(answer.substr(kAnswer.size()));
  const std::string who =
      fmt::format("rank {} on '{}'", from, printable(seen["host"].get<std::string>()));
  if (!seen["same_program"].get<bool>()) {
    throw Error(fmt::format("{} runs another build of lockstep, or of what lies beside it", who))
        .expected("the same program on every machine");
  }
  const auto differ = seen["differ"].get<std::vector<std::string>>();
  if (differ.empty()) {
    return;
  }
  const std::size_t named = std::min(differ.size(), kMostNamed);
  throw Error(
      fmt::format(
          "{} sees other files than rank 0: {}{}", who,
          fmt::join(differ.begin(), differ.begin() + static_cast<std::ptrdiff_t>(named), ", "),
          differ.size() > named ? fmt::format(" and {} more", differ.size() - named) : ""))
      .expected("the same files under the same names on every machine")
      .hint(
          "a file system that all machines share, or copies; relative names are from the folder in "
          "which the launcher starts each rank");
}

}  // namespace lockstep
