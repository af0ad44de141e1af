#include "app/plan/price_journal.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kSchema = "lockstep-plan-prices/1";

PricedStep step_of(const JsonView& line) {
  PricedStep step;
  step.step_s = line["step_s"].number();
  step.compute_s = line["compute_s"].number();
  const JsonView exposed = line["exposed_s"];
  if (exposed.size() != step.exposed_s.size()) {
    throw exposed.error(fmt::format("expected {} numbers", step.exposed_s.size()));
  }
  for (std::size_t i = 0; i < step.exposed_s.size(); ++i) {
    step.exposed_s[i] = exposed[i].number();
  }
  if (!(step.step_s > 0)) {
    throw line["step_s"].error("expected a time above 0");
  }
  return step;
}

}  // namespace

std::map<std::string, PricedStep> read_price_journal(std::string_view text, const std::string& file,
                                                     std::string_view problem) {
  std::map<std::string, PricedStep> known;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      break;  // cut off while it was written
    }
    const std::string_view words = text.substr(0, end);
    text.remove_prefix(end + 1);
    try {
      const Json json = parse_json(words, file);
      const JsonView line(json, file);
      if (number > 1) {
        known.insert_or_assign(line["plan"].string(), step_of(line));
      } else if (line["schema"].string() != kSchema) {
        throw Error("this is no journal of plans' prices")
            .expected(fmt::format("schema {}", kSchema));
      } else if (line["problem"].string() != problem) {
        throw Error("the prices are those of another problem")
            .hint("--resume with a file of its own");
      }
    } catch (Error& error) {
      error.locate(file, number);
      error.add_context(fmt::format("in line {} of the journal", number));
      throw;
    }
  }
  return known;
}

PriceJournal::PriceJournal(std::string path, std::string problem) : path_(std::move(path)) {
  if (path_.empty()) {
    return;
  }
  if (std::filesystem::exists(path_)) {
    const FileText text(path_);
    const std::string_view all = text.view();
    known_ = read_price_journal(all, path_, problem);
    if (!all.empty() && all.back() != '\n') {  // take the unfinished end off
      write_file(path_, all.substr(0, all.rfind('\n') + 1));
    }
    if (all.find('\n') != std::string_view::npos) {
      return;
    }
  }
  append(Json{{"schema", kSchema}, {"problem", problem}}.dump());
}

std::optional<PricedStep> PriceJournal::find(const std::string& plan) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(plan);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void PriceJournal::add(const std::string& plan, const PricedStep& step) {
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(plan, step);
  if (!path_.empty()) {
    append(Json{{"plan", plan},
                {"step_s", step.step_s},
                {"compute_s", step.compute_s},
                {"exposed_s", step.exposed_s}}
               .dump());
  }
}

void PriceJournal::append(const std::string& line) const {
  const std::string text = line + "\n";
  errno = 0;
  std::FILE* file = std::fopen(path_.c_str(), "ab");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int problem = errno;
  if (file != nullptr && std::fclose(file) != 0 && good) {
    good = false;
    problem = errno;
  }
  if (!good) {
    throw Error(fmt::format("cannot write: {}", std::strerror(problem))).at(path_);
  }
}

}  // namespace lockstep
