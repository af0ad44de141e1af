#include "generator/megatron_args/training_log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kHead = "------------------------ arguments ------------------------";
constexpr std::string_view kEnd = "-------------------- end of arguments ---------------------";
constexpr std::size_t kWidth = 48;  // of a name with its dots

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Where the name ends that text[0 … end) ends with begins.
std::size_t name_begin(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && is_name_character(text[begin - 1])) {
    --begin;
  }
  return begin;
}

/// A value without what a terminal or our own markers of unknown text would take for something
/// else.
std::string plain(std::string_view value) {
  std::string text(trim(value));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

/// The argument of a line, if it is one: "  name .... value", with name and dots kWidth characters;
/// names that are longer stand between two blanks on either side.
std::optional<LoggedArgument> argument_of(std::string_view line) {
  for (std::size_t dots = line.find(" ."); dots != std::string_view::npos;
       dots = line.find(" .", dots + 1)) {
    const std::size_t begin = name_begin(line, dots);
    std::size_t end = dots + 1;
    while (end < line.size() && line[end] == '.') {
      ++end;
    }
    const bool filled = dots - begin + (end - dots - 1) == kWidth && begin < dots;
    if (filled && (end == line.size() || line[end] == ' ')) {
      return LoggedArgument{std::string(line.substr(begin, dots - begin)), plain(line.substr(end)),
                            0};
    }
  }
  for (std::size_t gap = line.find("  "); gap != std::string_view::npos;
       gap = line.find("  ", gap + 1)) {
    const std::size_t begin = name_begin(line, gap);
    if (gap - begin >= kWidth) {
      return LoggedArgument{std::string(line.substr(begin, gap - begin)), plain(line.substr(gap)),
                            0};
    }
  }
  return std::nullopt;
}

/// The whole number behind `label` in a line.
std::optional<std::int64_t> number_behind(std::string_view line, std::string_view label) {
  const std::size_t found = line.find(label);
  if (found == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = trim(line.substr(found + label.size()));
  return to_int(rest.substr(0, rest.find_first_not_of("0123456789")));
}

/// What a line behind the list tells.
void take_fact(std::string_view line, TrainingLog& log) {
  if (!log.vocabulary) {
    log.vocabulary = number_behind(line, "padded vocab (size:");
  }
  const std::size_t building = line.find("building ");
  const std::size_t model = line.find(" model ...");
  if (log.model.empty() && building < model && model != std::string_view::npos) {
    log.model = plain(line.substr(building + 9, model - building - 9));
  }
  const std::string_view count = "model parallel rank (0, ";
  if (line.find("number of parameters on (tensor, pipeline)") != std::string_view::npos) {
    const auto stage = number_behind(line, count);
    const auto parameters = number_behind(line, "): ");
    if (stage && parameters) {
      log.parameters.emplace(*stage, *parameters);
    }
  }
}

}  // namespace

bool is_training_log(std::string_view text) {
  const std::size_t head = text.find(kHead);
  if (head == std::string_view::npos) {
    return false;
  }
  text.remove_prefix(head);
  std::string_view line;
  for (int i = 0; i < 100 && next_line(text, line); ++i) {  // other ranks' lines may come between
    if (argument_of(line)) {
      return true;
    }
  }
  return false;
}

TrainingLog read_training_log(std::string_view text, const std::string& file) {
  TrainingLog log, open;
  bool listing = false;
  std::size_t number = 0, lists = 0;
  std::string_view line;
  while (next_line(text, line)) {
    ++number;
    if (line.find(kHead) != std::string_view::npos) {
      open = {};
      open.line = number;
      listing = true;
    } else if (listing && line.find(kEnd) != std::string_view::npos) {
      log = std::exchange(open, {});
      listing = false;
      ++lists;
    } else if (listing) {
      if (std::optional<LoggedArgument> argument = argument_of(line)) {
        argument->line = number;
        open.arguments.push_back(std::move(*argument));
      }
    } else if (lists > 0) {
      take_fact(line, log);
    }
  }
  if (lists == 0) {
    throw Error("the list of arguments ends with the file")
        .at(file, open.line)
        .expected("all of it, up to the line \"… end of arguments …\"");
  }
  if (lists > 1) {
    log.warnings.add(
        fmt::format("{}:{}: of {} lists of arguments the last is taken", file, log.line, lists));
  }
  if (listing) {
    log.warnings.add(
        fmt::format("{}:{}: this list of arguments ends with the file: the one of "
                    "line {} is taken",
                    file, open.line, log.line));
  }
  return log;
}

}  // namespace lockstep
