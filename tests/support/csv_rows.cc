#include "tests/support/csv_rows.h"

#include "base/text.h"
#include "tests/support/reference.h"

namespace lockstep::testing {

std::vector<std::map<std::string, std::string>> read_csv(const std::string& path) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> header;
  const std::string text = slurp(path);
  for (const std::string_view line : split(text, '\n')) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else if (c != '\r') {
        fields.back() += c;
      }
    }
    if (header.empty()) {
      header = fields;
    } else if (fields.size() == header.size()) {
      rows.emplace_back();
      for (std::size_t i = 0; i < header.size(); ++i) {
        rows.back()[header[i]] = fields[i];
      }
    }
  }
  return rows;
}

}  // namespace lockstep::testing
