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

/// An argument, and where its name begins and its dots end within a line.
struct Found {
  std::string_view name;
  std::size_t begin = 0, end = 0;
};

/// The first argument of a line that begins at `from` or behind it: "  name .... value", with name
/// and dots kWidth characters; names that are longer stand between two blanks on either side.
std::optional<Found> find_argument(std::string_view line, std::size_t from = 0) {
  for (std::size_t dots = line.find(" .", from); dots != std::string_view::npos;
       dots = line.find(" .", dots + 1)) {
    const std::size_t begin = name_begin(line, dots);
    std::size_t end = dots + 1;
    while (end < line.size() && line[end] == '.') {
      ++end;
    }
    const bool filled = dots - begin + (end - dots - 1) == kWidth && begin < dots && begin >= from;
    if (filled && (end == line.size() || line[end] == ' ')) {
      return Found{line.substr(begin, dots - begin), begin, end};
    }
  }
  for (std::size_t gap = line.find("  ", from); gap != std::string_view::npos;
       gap = line.find("  ", gap + 1)) {
    const std::size_t begin = name_begin(line, gap);
    if (gap - begin >= kWidth && begin >= from) {
      return Found{line.substr(begin, gap - begin), begin, gap};
    }
  }
  return std::nullopt;
}

/// A value without what another rank wrote right behind it.
std::string value_of(std::string_view text) {
  std::string value = plain(text);
  for (const std::string_view word : {"True", "False", "None"}) {
    if (value.starts_with(word)) {
      return std::string(word);
    }
  }
  return value;
}

/// The arguments of a line: one, but for lines that have lost their end.
void take_arguments(std::string_view line, std::size_t number, TrainingLog& log) {
  std::optional<Found> found = find_argument(line);
  while (found) {
    const std::optional<Found> next = find_argument(line, found->end);
    const std::string_view text =
        line.substr(found->end, next ? next->begin - found->end : std::string_view::npos);
    log.arguments.push_back({std::string(found->name), value_of(text), number});
    found = next;
  }
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

bool is_training_log(std::string_view text) { return text.find(kHead) != std::string_view::npos; }

TrainingLog read_training_log(std::string_view text, const std::string& file) {
  std::string without;
  if (text.find("\x1b[") != std::string_view::npos) {
    without = without_colours(text);
    text = without;
  }
  TrainingLog best, current;
  bool listing = false;
  std::size_t number = 0, heads = 0, whole = 0;
  std::string_view line;
  // Whether `current`, which has ended, is the one to take so far.
  const auto keep = [&] {
    if (current.line > 0 && (current.trained || !best.trained)) {
      best = std::move(current);
    }
    current = {};
  };
  while (next_line(text, line)) {
    ++number;
    const bool iterates = line.find("elapsed time per iteration") != std::string_view::npos ||
                          line.find("elapsed_time_per_iteration") != std::string_view::npos;
    if (line.find(kHead) != std::string_view::npos) {
      if (!listing) {
        keep();
      }
      current = {};
      current.line = number;
      listing = true;
      ++heads;
    } else if (listing && iterates) {
      throw Error("iterations begin before this list of arguments ends")
          .at(file, current.line)
          .expected("all of it, up to the line \"… end of arguments …\"");
    } else if (listing && line.find(kEnd) != std::string_view::npos) {
      listing = false;
      ++whole;
    } else if (listing) {
      take_arguments(line, number, current);
    } else if (iterates) {
      current.trained = current.line > 0;
    } else if (current.line > 0) {
      take_fact(line, current);
    }
  }
  const std::size_t cut = listing ? current.line : 0;
  if (!listing) {
    keep();
  }
  if (whole == 0) {
    throw Error("the list of arguments ends with the file")
        .at(file, cut)
        .expected("all of it, up to the line \"… end of arguments …\"");
  }
  const auto is_tp = [](const LoggedArgument& argument) {
    return argument.name == "tensor_model_parallel_size" || argument.name == "model_parallel_size";
  };
  if (std::ranges::none_of(best.arguments, is_tp)) {
    throw Error("the list of arguments has no tensor_model_parallel_size")
        .at(file, best.line)
        .expected("the arguments of Megatron-LM or a fork of it, a line each");
  }
  if (heads > 1) {
    best.warnings.add(
        fmt::format("{}:{}: of {} lists of arguments this one is taken, {}", file, best.line, heads,
                    best.trained ? "the last that iterations follow" : "the last that is whole"));
  }
  return best;
}

}  // namespace lockstep
