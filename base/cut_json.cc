#include "base/cut_json.h"

#include <cstddef>

namespace lockstep {

std::optional<std::string> whole_of_cut_json(std::string_view text) {
  std::string open;  // brackets that close what is open, the outermost first
  std::size_t whole = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      quoted = c != '"';
      i += c == '\\' ? 1 : 0;
      continue;
    }
    if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != c) {
        return std::nullopt;
      }
      open.pop_back();
    }
    if (!quoted && std::string_view("{[]},").find(c) != std::string_view::npos) {
      whole = i + (c == ',' ? 0 : 1);
    }
  }
  if (open.empty()) {
    return std::nullopt;
  }
  return std::string(text.substr(0, whole)) + std::string(open.rbegin(), open.rend());
}

}  // namespace lockstep
