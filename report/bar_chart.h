#pragma once

#include <string>
#include <vector>

#include "report/picture/picture.h"

namespace lockstep {

/// Quantities side by side: a row of bars a category, one bar a series.
struct BarChart {
  std::string title;
  std::string unit;                         ///< behind each number
  std::vector<std::string> series;          ///< names; at most 4
  std::vector<std::string> categories;      ///< names, from top to bottom
  std::vector<std::vector<double>> values;  ///< [series][category], at least 0
};

/// Bars from a common zero, the longest as wide as the picture, each with its number.
/// PRECONDITION: a value for each series and category.
Picture bar_chart(const BarChart& chart);

/// Writes the picture beside each other as FOLDER/NAME.svg and .png.
void write_picture(const std::string& folder, const std::string& name, const Picture& picture);

}  // namespace lockstep
