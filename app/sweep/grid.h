#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// What a flag is given, in the order of the command line: no text for a flag that is left out,
/// several for one that is given several times, and the single text "" for a bare flag.
using FlagValue = std::vector<std::string>;

/// One axis: flags that change together. `values[i][j]` is what flags[j] has at the i-th place.
struct GridAxis {
  std::vector<std::string> flags;
  std::vector<std::vector<FlagValue>> values;
};

/// One command line of a grid.
struct GridPoint {
  std::int64_t number = 0;                                ///< from 0, in the grid's order
  std::vector<std::pair<std::string, FlagValue>> inputs;  ///< axes' flags, then the others
  std::vector<std::size_t> places;                        ///< on each axis
};

/// Command lines in a grid: docs/formats/grid.md. Points are numbered from 0 in the order of the
/// axes, the last fastest, those that the conditions refuse left out.
struct Grid {
  std::string file;
  std::string command;  ///< "simulate", or of several words: "compare score"
  std::vector<std::pair<std::string, FlagValue>> flags;  ///< of every point
  std::vector<GridAxis> axes;
  std::vector<std::string> outputs;          ///< keys of the result that become columns; empty: all
  Time time_limit{};                         ///< of a point; 0: none
  Bytes memory_limit{};                      ///< of each process of a point; 0: none
  std::vector<std::int64_t> cells;           ///< the cell of the whole product that each point is
  std::map<std::string, std::size_t> lines;  ///< of each flag in the file

  std::int64_t size() const { return static_cast<std::int64_t>(cells.size()); }
  /// O(axes). PRECONDITION: 0 <= number < size().
  GridPoint point(std::int64_t number) const;
  /// Calls f(flag, value) for each value that a flag has, of every point and of the axes.
  template <class F>
  void for_each_value(F&& f) const;
};

/// Reads a grid. ERRORS: Error with file and line; commands that cannot be swept; values, ranges
/// and conditions that are none; a flag that stands twice; more than 10^7 cells or 2 10^6 values of
/// axes; no point at all.
Grid parse_grid(std::string_view text, const std::string& file);

/// The words of the point's command line, without the program's name. Results are asked for as
/// JSON; a command that must write files is given `folder` for them, and one that can if `keep`;
/// flags that name a file to write get one in `folder`.
std::vector<std::string> command_line(const Grid& grid, const GridPoint& point,
                                      const std::string& folder, bool keep);
/// Whether command_line() uses the folder.
bool writes_files(const Grid& grid, bool keep);
/// Whether a flag of the grid's command names a file or folder that it writes.
bool names_output(const Grid& grid, std::string_view flag);
/// The first of the grid's flags that names a file which each point would write; empty: none.
std::string output_flag_of(const Grid& grid);

/// A flag's value as one text: the words with blanks between; "true" for a bare flag.
std::string to_text(const FlagValue& value);

template <class F>
void Grid::for_each_value(F&& f) const {
  for (const auto& [flag, value] : flags) {
    f(flag, value);
  }
  for (const GridAxis& axis : axes) {
    for (const auto& place : axis.values) {
      for (std::size_t i = 0; i < axis.flags.size(); ++i) {
        f(axis.flags[i], place[i]);
      }
    }
  }
}

}  // namespace lockstep
