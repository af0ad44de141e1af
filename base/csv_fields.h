#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Splits one line of a CSV file (RFC 4180, without line breaks in fields) into its fields; quotes
/// are taken off, doubled ones inside are one.
void split_csv(std::string_view line, std::vector<std::string>& fields);

/// A field as split_csv reads it back: in quotes where it holds a separator, a quote or a line end.
std::string csv_field(std::string_view text);

/// Takes the next line of a text, without its end; false at the end of the text.
bool next_line(std::string_view& rest, std::string_view& line);

}  // namespace lockstep
