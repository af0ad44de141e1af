#include "app/sweep/grid_flags.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/generate_exact.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// What there is to know of a flag.
struct KnownFlag {
  std::string name;                   ///< the same for all of its spellings
  bool bare = false, valued = false;  ///< may stand without a value, with one
};

/// The flags of one command, and those of a job where it takes one.
class CommandFlags {
 public:
  explicit CommandFlags(std::string_view command) {
    const std::vector<std::string_view> words = split_blanks(command);
    const auto found = std::ranges::find(commands(), words.front(), &Command::name);
    LOCKSTEP_CHECK(found != commands().end(), "a grid is of a command that there is");
    app_ = root_.add_subcommand(std::string(words.front()));
    (*found)->define(*app_);
    takes_job_ = app_->get_allow_extras();
    for (std::size_t i = 1; i < words.size(); ++i) {
      app_ = app_->get_subcommand(std::string(words[i]));
    }
    if (takes_job_) {
      job_ = described_job_flags();
    }
  }

  std::optional<KnownFlag> find(const std::string& flag) const {
    if (flag == "quiet" || flag == "q" || flag == "max-input") {  // of every command
      return KnownFlag{flag, flag != "max-input", flag == "max-input"};
    }
    if (const CLI::Option* option =
            app_->get_option_no_throw((flag.size() == 1 ? "-" : "--") + flag)) {
      return KnownFlag{option->get_name(), option->get_items_expected_min() == 0,
                       option->get_items_expected_max() > 0};
    }
    const ArgSpec* spec = find_of_job(with_underscores(flag));
    if (spec == nullptr) {
      return std::nullopt;
    }
    const bool is_switch = spec->kind == ArgKind::kSwitch;
    return KnownFlag{"--" + std::string(spec->name), is_switch, !is_switch};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const CLI::Option* option : app_->get_options()) {
      const auto& longs = option->get_lnames();
      all.insert(all.end(), longs.begin(), longs.end());
    }
    for (const ArgSpec& spec : job_) {
      all.emplace_back(spec.name);
      for (const std::string_view alias : split_blanks(spec.aliases)) {
        all.emplace_back(alias);
      }
    }
    return all;
  }

 private:
  /// As argparse finds it: by name or alias, else by an unambiguous beginning of a name.
  const ArgSpec* find_of_job(const std::string& name) const {
    const ArgSpec* begins = nullptr;
    int beginning = 0;
    for (const ArgSpec& spec : job_) {
      const std::vector<std::string_view> aliases = split_blanks(spec.aliases);
      if (spec.name == name || std::ranges::find(aliases, name) != aliases.end()) {
        return &spec;
      }
      if (spec.name.starts_with(name)) {
        begins = &spec;
        ++beginning;
      }
    }
    return beginning == 1 ? begins : nullptr;
  }

  CLI::App root_;
  CLI::App* app_ = nullptr;
  bool takes_job_ = false;
  std::vector<ArgSpec> job_;
};

Error error_at(const Grid& grid, const std::string& flag, std::string message) {
  Error error(std::move(message));
  return std::move(error).at(grid.file, grid.lines.at(flag)).field(flag);
}

void check_value(const Grid& grid, const std::string& flag, const KnownFlag& known,
                 const FlagValue& value) {
  if (value.empty()) {
    return;  // left out
  }
  const bool bare = value == FlagValue{""};
  if (bare && !known.bare) {
    throw error_at(grid, flag, "needs a value").expected("a text or number, not true");
  }
  if (!bare && !known.valued) {
    throw error_at(grid, flag, fmt::format("takes no value such as '{}'", printable(value.front())))
        .expected("true or false");
  }
}

}  // namespace

void check_flags(const Grid& grid) {
  const CommandFlags known_flags(grid.command);
  std::map<std::string, std::string> seen;  // name -> the spelling
  std::map<std::string, KnownFlag> known_of;
  for (const auto& [flag, line] : grid.lines) {
    if (flag == "arguments") {
      continue;
    }
    const auto known = known_flags.find(flag);
    if (!known) {
      const std::vector<std::string> names = known_flags.names();
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string_view near = closest(with_underscores(flag), candidates);
      const std::string_view as_given = closest(flag, candidates);
      const std::string_view best = as_given.empty() ? near : as_given;
      throw error_at(grid, flag, fmt::format("{} has no flag '--{}'", grid.command, flag))
          .hint(best.empty() ? fmt::format("'lockstep {} --help' shows what there is", grid.command)
                             : fmt::format("did you mean '{}'?", best));
    }
    if (const auto [other, fresh] = seen.emplace(known->name, flag); !fresh) {
      throw error_at(grid, flag,
                     fmt::format("stands twice in the grid: as '{}' too", other->second));
    }
    known_of[flag] = *known;
  }
  grid.for_each_value([&](const std::string& flag, const FlagValue& value) {
    if (flag != "arguments") {
      check_value(grid, flag, known_of.at(flag), value);
    }
  });
}

}  // namespace lockstep
