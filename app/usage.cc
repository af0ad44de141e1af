#include "app/usage.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

/// Flags that name what is written.
constexpr std::array<std::string_view, 12> kOutputs{
    "output", "report", "figure",  "picture",    "trace",        "csv",
    "fct",    "pfc",    "samples", "memory-csv", "byteps-trace", "resume"};

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      names.push_back("-" + name);
    }
  }
  return names;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::string help_hint(const CLI::App& app) {
  return fmt::format("'{} --help' shows what there is, with examples", full_name(app));
}

/// An Error that names the subcommand; main puts "lockstep: " before it.
Error about(const CLI::App& app, const std::string& message) {
  const std::string name = full_name(app);
  const std::size_t blank = name.find(' ');
  return Error(blank == std::string::npos ? message : name.substr(blank + 1) + ": " + message);
}

Error unknown_word(const CLI::App& app, const std::string& word) {
  const bool is_flag = word.size() > 1 && word[0] == '-';
  const std::string name = is_flag ? word.substr(0, word.find('=')) : word;
  const std::vector<std::string> known = is_flag ? flags_of(app) : subcommands_of(app);
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  const char* kind = is_flag ? "flag" : candidates.empty() ? "argument" : "command";
  const std::string_view near = closest(name, candidates);
  return about(app, fmt::format("unknown {} '{}'", kind, printable(name)))
      .hint(near.empty() ? help_hint(app) : fmt::format("did you mean '{}'?", near));
}

/// The words no application on the way to the chosen one could use.
std::vector<std::string> unknown_words(const CLI::App& root) {
  std::vector<std::string> words;
  for (const CLI::App* app = &root; app != nullptr;
       app = app->get_subcommands().empty() ? nullptr : app->get_subcommands().back()) {
    if (!app->get_allow_extras()) {
      const std::vector<std::string> own = app->remaining();
      words.insert(words.end(), own.begin(), own.end());
    }
  }
  return words;
}

}  // namespace

const CLI::App& chosen(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().back();
  }
  return *app;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string root_help(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.help() : root_help(*app.get_parent());
}

Error usage_error(const CLI::App& root, const CLI::ParseError& problem) {
  const CLI::App& app = chosen(root);
  // CLI11 looks for missing flags first; but a missing flag is often only a mistyped one.
  const std::vector<std::string> unknown = unknown_words(root);
  if (!unknown.empty()) {
    return unknown_word(app, unknown.front());
  }
  const std::vector<std::string> commands = subcommands_of(app);
  if (dynamic_cast<const CLI::RequiredError*>(&problem) != nullptr && !commands.empty()) {
    return about(app, "a command is missing")
        .expected(fmt::format("{}", fmt::join(commands, ", ")))
        .hint(help_hint(app));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&problem) != nullptr) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_items_expected_max() <= 1 && option->count() > 1) {
        return about(app, fmt::format("--{} is given {} times",
                                      fmt::join(option->get_lnames(), " or --"), option->count()))
            .hint(help_hint(app));
      }
    }
  }
  return about(app, printable(problem.what(), 400)).hint(help_hint(app));
}

void read_numbers_as_decimal(CLI::App& app) {
  const auto decimal = [](std::string& text) -> std::string {
    const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    if (text.size() < sign + 2 || text[sign] != '0') {
      return {};
    }
    const std::string digits = text.substr(sign);
    if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
      return fmt::format("'{}' is no whole decimal number", printable(text, 100));
    }
    text.resize(sign);
    text += digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    return {};
  };
  for (CLI::Option* option : app.get_options()) {
    const std::string kind = option->get_type_name();
    if (kind.starts_with("INT") || kind.starts_with("UINT")) {
      option->transform(CLI::Validator(decimal, ""));
    }
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    read_numbers_as_decimal(*sub);
  }
}

void check_numbers(const CLI::App& root) {
  for (const CLI::Option* option : chosen(root).get_options()) {
    const std::string kind = option->get_type_name();
    const auto refuse = [&](const std::string& text, const char* what) {
      throw Error(fmt::format("'{}' is {}", printable(text, 100), what))
          .field(option->get_name())
          .hint(help_hint(chosen(root)));
    };
    for (const std::string& text : option->results()) {
      errno = 0;
      if (kind.starts_with("FLOAT")) {
        if (!std::isfinite(std::strtod(text.c_str(), nullptr))) {
          refuse(text, "no finite number");
        }
      } else if (kind.starts_with("INT")) {
        (void)std::strtoll(text.c_str(), nullptr, 10);
      } else if (kind.starts_with("UINT")) {
        if (text.starts_with('-')) {
          refuse(text, "negative");  // strtoull() would take it modulo 2^64
        }
        (void)std::strtoull(text.c_str(), nullptr, 10);
      }
      if (errno == ERANGE && !kind.starts_with("FLOAT")) {
        refuse(text, "too large");
      }
    }
  }
}

void check_output_names(const CLI::App& root, const std::vector<std::string>& arguments) {
  for (const CLI::Option* option : chosen(root).get_options()) {
    const bool unnamed = std::ranges::any_of(option->get_lnames(), [&](const std::string& name) {
      return std::ranges::find(kOutputs, name) != kOutputs.end() &&
             (std::ranges::find(option->results(), "") != option->results().end() ||
              std::ranges::find(arguments, "--" + name + "=") != arguments.end());
    });
    if (unnamed) {
      throw Error("the name is empty")
          .field(option->get_name())
          .expected("a file or folder to write")
          .hint(help_hint(chosen(root)));
    }
  }
}

void check_streams(const CLI::App& root) {
  constexpr std::array<std::string_view, 3> kOfPackets{"fct", "pfc", "samples"};
  const CLI::Option* reads = nullptr;
  for (const CLI::Option* option : chosen(root).get_options()) {
    const auto is_one_of = [&](const auto& names) {
      return std::ranges::any_of(option->get_lnames(), [&](const std::string& name) {
        return std::ranges::find(names, name) != names.end();
      });
    };
    if (std::ranges::find(option->results(), "-") == option->results().end()) {
      continue;
    }
    if (is_one_of(kOfPackets)) {
      throw Error("standard output is for the result")
          .field(option->get_name())
          .expected("a file to write");
    }
    if (is_one_of(kOutputs)) {
      continue;
    }
    if (reads != nullptr) {
      throw Error(fmt::format("standard input goes to {} already", reads->get_name()))
          .field(option->get_name())
          .expected("a file for one of them");
    }
    reads = option;
  }
}

void check_dashes(const CLI::App& root, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() < 3 || name[0] != '-' || name[1] == '-') {
      continue;
    }
    for (const CLI::Option* option : chosen(root).get_options()) {
      if (option->check_lname(name.substr(1))) {
        throw about(chosen(root), fmt::format("unknown flag '{}'", printable(name)))
            .hint(fmt::format("did you mean '-{}'?", name));
      }
    }
  }
}

Error usage_error(const CLI::App& command, const UnknownFlag& problem) {
  if (problem.has_near()) {
    return problem;
  }
  return unknown_word(chosen(command), "--" + problem.word());
}

}  // namespace lockstep
