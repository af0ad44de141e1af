#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// A text whose lines have at most `width` characters where that can be. A table (lines that have
/// two blanks or more between words) is set with two blanks between its columns, or one, if all of
/// it fits then. Other lines that are too long go on below their last column, or a little further
/// in than they began. Words are not cut, nor are cells of Markdown, nor command lines to copy
/// ("lockstep …"). O(text).
std::string fitted(const std::string& text, std::size_t width);

}  // namespace lockstep
