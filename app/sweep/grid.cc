#include "app/sweep/grid.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>

#include <fmt/format.h>

#include "app/sweep/condition.h"
#include "app/sweep/grid_values.h"
#include "base/text.h"
#include "base/yaml_problem.h"
#include "generator/model/yaml_fields.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostCells = 10'000'000;
constexpr std::int64_t kMostValues = 2'000'000;  // of all axes; about 110 B each
constexpr std::array<std::string_view, 8> kCommands{"simulate",   "plan",          "whatif",
                                                    "compare",    "compare score", "compare health",
                                                    "collective", "goodput"};
constexpr std::string_view kArguments = "arguments";  // words without a flag

/// Every flag once in the whole grid.
class FlagNames {
 public:
  explicit FlagNames(std::string file) : file_(std::move(file)) {}

  std::string take(const YAML::Node& key) {
    std::string name = key.IsScalar() ? key.Scalar() : "";
    if (const std::size_t dashes = name.find_first_not_of('-');
        dashes > 0 && dashes != std::string::npos) {
      throw yaml_error(fmt::format("'{}' has dashes", printable(name)), key, file_, "flags")
          .expected("a flag of the command without its dashes, or 'arguments'")
          .hint(fmt::format("'{}'", printable(name.substr(dashes))));
    }
    const bool fine = !name.empty() && std::ranges::all_of(name, [](char c) {
      return c == '-' || c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    });
    if (!fine) {
      throw yaml_error(fmt::format("'{}' is no flag", printable(name)), key, file_, "flags")
          .expected("a flag of the command without its dashes, or 'arguments'");
    }
    static constexpr std::array<std::string_view, 3> kOurs{"json", "o", "output"};
    if (std::ranges::find(kOurs, name) != kOurs.end()) {
      throw yaml_error(fmt::format("--{} is set by the sweep itself", name), key, file_, "flags");
    }
    static constexpr std::array<std::string_view, 5> kNoResult{"help", "h", "version", "follow",
                                                               "list-stragglers"};
    if (std::ranges::find(kNoResult, name) != kNoResult.end()) {
      throw yaml_error(fmt::format("--{} gives no result that a row could hold", name), key, file_,
                       "flags");
    }
    if (!seen_.try_emplace(name, static_cast<std::size_t>(key.Mark().line) + 1).second) {
      throw yaml_error("stands twice in the grid", key, file_, name);
    }
    return name;
  }
  const std::map<std::string, std::size_t>& lines() const { return seen_; }

 private:
  std::string file_;
  std::map<std::string, std::size_t> seen_;
};

/// What further axes may have.
struct Room {
  std::int64_t cells = kMostCells, values = kMostValues;
};

GridAxis axis_of(const YAML::Node& node, const std::string& file, FlagNames& names, Room& room) {
  const YamlFields fields(node, file, "axes");
  GridAxis axis;
  const auto add = [&](const YAML::Node& key, const YAML::Node& list) {
    axis.flags.push_back(names.take(key));
    const std::vector<FlagValue> values =
        grid_values(list, file, axis.flags.back(), [&](std::int64_t count) {
          if (count > room.cells) {
            throw yaml_error(fmt::format("more than {} points", kMostCells), list, file, "axes");
          }
          if (count > room.values) {
            throw yaml_error(fmt::format("more than {} values", kMostValues), list, file, "axes");
          }
          room.values -= count;
        });
    if (axis.flags.size() > 1 && values.size() != axis.values.size()) {
      throw yaml_error(fmt::format("has {} values, {} has {}", values.size(), axis.flags.front(),
                                   axis.values.size()),
                       list, file, axis.flags.back());
    }
    axis.values.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      axis.values[i].push_back(values[i]);
    }
  };
  if (node.size() != 1) {
    throw yaml_error("an axis has one flag", node, file, "axes")
        .expected("- FLAG: VALUES, or - zip: {FLAG: VALUES, FLAG: VALUES}");
  }
  // Copies: what an iterator of yaml-cpp points to lives no longer than the expression.
  const YAML::Node flag_name = node.begin()->first, values = node.begin()->second;
  if (flag_name.Scalar() != "zip") {
    add(flag_name, values);
    room.cells /= std::ssize(axis.values);
    return axis;
  }
  const YamlFields zipped(values, file, "zip");
  for (const auto& flag : values) {
    add(flag.first, flag.second);
  }
  if (axis.flags.empty()) {
    throw yaml_error("has no flags", values, file, "zip");
  }
  room.cells /= std::ssize(axis.values);
  return axis;
}

void read_limits(const YAML::Node& node, const std::string& file, Grid& grid) {
  const YamlFields fields(node, file, "limits");
  constexpr std::array<std::string_view, 2> kKeys{"time", "memory"};
  fields.allow(kKeys);
  const auto quantity = [&](std::string_view key, auto parse, auto& value) {
    if (fields.has(key)) {
      try {
        value = parse(fields.text(key));
      } catch (Error& error) {
        throw fields.error(error.message(), key);
      }
    }
  };
  quantity("time", parse_time, grid.time_limit);
  quantity("memory", parse_bytes, grid.memory_limit);
  const auto positive = [&](std::string_view key, bool above) {
    if (fields.has(key) && !above) {
      throw fields.error("nothing could run within it", key)
          .expected("more than 0; without a limit, leave it out");
    }
  };
  positive("time", grid.time_limit > Time());
  positive("memory", grid.memory_limit > Bytes(0));
}

std::vector<std::string> texts(const YAML::Node& node, const std::string& file,
                               const std::string& field) {
  std::vector<std::string> all;
  if (node.IsScalar()) {
    all.push_back(node.Scalar());
  } else if (node.IsSequence()) {
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) {
        throw yaml_error("holds a value that is no text", item, file, field);
      }
      all.push_back(item.Scalar());
    }
  } else {
    throw yaml_error("is no list", node, file, field);
  }
  return all;
}

/// The point of a cell of the whole product; the last axis is the fastest.
GridPoint at_cell(const Grid& grid, std::int64_t cell) {
  GridPoint point;
  point.places.assign(grid.axes.size(), 0);
  for (std::size_t a = grid.axes.size(); a-- > 0;) {
    const auto size = static_cast<std::int64_t>(grid.axes[a].values.size());
    point.places[a] = static_cast<std::size_t>(cell % size);
    cell /= size;
  }
  for (std::size_t a = 0; a < grid.axes.size(); ++a) {
    const GridAxis& axis = grid.axes[a];
    for (std::size_t f = 0; f < axis.flags.size(); ++f) {
      point.inputs.emplace_back(axis.flags[f], axis.values[point.places[a]][f]);
    }
  }
  point.inputs.insert(point.inputs.end(), grid.flags.begin(), grid.flags.end());
  return point;
}

void find_points(const YAML::Node& root, const YamlFields& fields, Grid& grid) {
  std::int64_t cells = 1;
  for (const GridAxis& axis : grid.axes) {
    cells *= std::ssize(axis.values);  // at most kMostCells, as axis_of saw to
  }
  std::vector<Condition> conditions;
  if (fields.has("where")) {
    const YAML::Node list = root["where"];
    for (const std::string& text : texts(list, grid.file, "where")) {
      conditions.emplace_back(text, grid.file, static_cast<std::size_t>(list.Mark().line) + 1);
    }
  }
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    if (conditions.empty() || std::ranges::all_of(conditions, [&](const Condition& condition) {
          return condition.holds(at_cell(grid, cell).inputs);
        })) {
      grid.cells.push_back(cell);
    }
  }
  if (grid.cells.empty()) {
    throw fields.error("no point meets all conditions", "where");
  }
}

void add_words(std::vector<std::string>& words, const std::string& flag, const FlagValue& value) {
  for (const std::string& text : value) {
    if (flag != kArguments) {
      words.push_back((flag.size() == 1 ? "-" : "--") + flag);
    }
    if (!text.empty()) {
      words.push_back(text);
    }
  }
}

/// The value with its files in the folder: "step.json", "timeline=step.svg".
FlagValue in_folder(const FlagValue& value, const std::string& folder) {
  FlagValue moved;
  for (const std::string& word : value) {
    const std::size_t name = word.find('=') + 1;  // 0 without one
    moved.push_back(word.empty() ? word : word.substr(0, name) + folder + "/" + word.substr(name));
  }
  return moved;
}

/// ERRORS: outputs that do not lie in the point's folder.
void check_outputs(const Grid& grid) {
  grid.for_each_value([&](const std::string& flag, const FlagValue& value) {
    for (const std::string& word : value) {
      const std::string name = word.substr(word.find('=') + 1);
      if (names_output(grid, flag) &&
          (name.find('/') != std::string::npos || name == "-" || name == "..")) {
        throw Error(
            fmt::format("'{}' is no name of a file in the point's own folder", printable(name)))
            .at(grid.file, grid.lines.at(flag))
            .field(flag)
            .expected("a name alone: with --keep-files it lies in points/NUMBER of the sweep");
      }
    }
  });
}

}  // namespace

GridPoint Grid::point(std::int64_t number) const {
  GridPoint point = at_cell(*this, cells.at(static_cast<std::size_t>(number)));
  point.number = number;
  return point;
}

Grid parse_grid(std::string_view text, const std::string& file) {
  const YAML::Node root = load_yaml(text, file);
  const YamlFields fields(root, file, "");
  constexpr std::array<std::string_view, 6> kKeys{"command", "flags",  "axes",
                                                  "where",   "limits", "outputs"};
  fields.allow(kKeys);
  Grid grid;
  grid.file = file;
  if (fields.text("command").find(" -") != std::string::npos) {
    throw fields.error("a command with flags", "command")
        .expected("its name alone, such as simulate; flags stand under 'flags'");
  }
  grid.command = kCommands[fields.choice("command", kCommands)];
  FlagNames names(file);
  if (fields.has("axes")) {
    const YAML::Node axes = fields.at("axes");
    if (!axes.IsSequence()) {
      throw yaml_error("is no list", axes, file, "axes").expected("- FLAG: VALUES");
    }
    Room room;
    for (const YAML::Node& axis : axes) {
      grid.axes.push_back(axis_of(axis, file, names, room));
    }
  }
  if (fields.has("flags")) {
    const YAML::Node flags = fields.at("flags");
    const YamlFields checked(flags, file, "flags");
    for (const auto& flag : flags) {
      const std::string name = names.take(flag.first);
      grid.flags.emplace_back(name, grid_value(flag.second, file, name));
    }
  }
  if (fields.has("limits")) {
    read_limits(fields.at("limits"), file, grid);
  }
  if (fields.has("outputs")) {
    grid.outputs = texts(fields.at("outputs"), file, "outputs");
  }
  grid.lines = names.lines();
  check_outputs(grid);
  find_points(root, fields, grid);
  return grid;
}

bool names_output(const Grid& grid, std::string_view flag) {
  static constexpr std::array<std::string_view, 10> kOutputs{
      "byteps-trace", "csv",     "fct",    "figure",  "memory-csv",
      "pfc",          "picture", "report", "samples", "resume"};
  return (grid.command == "simulate" && flag == "trace") ||
         std::ranges::find(kOutputs, flag) != kOutputs.end();
}

std::string output_flag_of(const Grid& grid) {
  for (const auto& [flag, line] : grid.lines) {
    if (names_output(grid, flag)) {
      return flag;
    }
  }
  return {};
}

bool writes_files(const Grid& grid, bool keep) {
  return grid.command == "whatif" || (keep && grid.command == "plan") ||
         !output_flag_of(grid).empty();
}

std::vector<std::string> command_line(const Grid& grid, const GridPoint& point,
                                      const std::string& folder, bool keep) {
  std::vector<std::string> words;
  for (const std::string_view word : split_blanks(grid.command)) {
    words.emplace_back(word);
  }
  for (const auto& [flag, value] : point.inputs) {
    if (flag != kArguments) {
      add_words(words, flag, names_output(grid, flag) ? in_folder(value, folder) : value);
    }
  }
  words.emplace_back("--json");
  if (grid.command == "whatif" || (keep && grid.command == "plan")) {
    words.insert(words.end(), {"--output", folder});
  }
  for (const auto& [flag, value] : point.inputs) {
    if (flag == kArguments) {
      add_words(words, flag, value);
    }
  }
  return words;
}

std::string to_text(const FlagValue& value) {
  if (value == FlagValue{""}) {
    return "true";
  }
  std::string text;
  for (const std::string& word : value) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace lockstep
