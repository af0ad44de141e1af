#include "app/whatif/follow_state.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_number.h"
#include "base/text.h"

namespace lockstep {
namespace {

const std::string& event_of(const Json& line) {
  return line.at("event").get_ref<const std::string&>();
}

void check_first_line(const Json& line, const std::string& file, const FollowedJob& job) {
  if (event_of(line) != "journal" || line.at("schema") != kFollowSchema) {
    throw Error(fmt::format("this is no journal of the form {}", kFollowSchema)).at(file, 1);
  }
  if (line.at("trial_name") != job.trial_name) {
    throw Error(fmt::format("the journal is of the job '{}', not of '{}'",
                            printable(line.at("trial_name").get<std::string>()), job.trial_name))
        .at(file)
        .hint("choose another output folder");
  }
  if (line.contains("meta") && line.at("meta") != job.meta) {  // earlier versions wrote none
    throw Error("the journal is of a meta file that says something else")
        .at(file)
        .field("--meta")
        .hint("choose another output folder: steps of two layouts do not belong together");
  }
}

}  // namespace

bool closes_entry(const Json& line) {
  const std::string& event = event_of(line);
  return event == "file" || event == "refused" || event == "journal";
}

void FollowState::apply(const Json& line, const AlertRule& rule) {
  const std::string& event = event_of(line);
  if (event == "step") {
    steps.insert(whole_number(line.at("step")));
    const double slowdown = line.at("slowdown").get<double>();
    const bool slow = slowdown >= rule.slowdown;
    slow_in_a_row = slow ? slow_in_a_row + 1 : 0;
    fast_in_a_row = slow ? 0 : fast_in_a_row + 1;
    slow_sum = slow ? slow_sum + slowdown : 0;
  } else if (event == "alert" || event == "clear") {
    alerted = event == "alert";
  } else if (event == "file" || event == "refused") {
    files.insert({line.at("file").get<std::string>(), whole_number(line.at("bytes")),
                  whole_number(line.at("modified_ns"))});
  }
}

std::size_t read_follow_journal(std::string_view text, const std::string& file,
                                const FollowedJob& job, const AlertRule& rule, FollowState& state) {
  std::vector<Json> entry;
  std::size_t end = 0, number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos) {
      break;
    }
    ++number;
    Json line = Json::parse(text.substr(at, newline - at), nullptr, /*allow_exceptions=*/false);
    at = newline + 1;
    try {
      if (number == 1) {
        check_first_line(line, file, job);
      }
      const bool closed = closes_entry(line);
      entry.push_back(std::move(line));
      if (closed) {
        for (const Json& part : entry) {
          state.apply(part, rule);
        }
        entry.clear();
        end = at;
      }
    } catch (const Json::exception&) {
      throw Error("this is no line of a journal")
          .at(file, number)
          .expected("a JSON object with an event and what belongs to it")
          .hint("move the file away to begin anew");
    }
  }
  return end;
}

}  // namespace lockstep
