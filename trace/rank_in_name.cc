#include "trace/rank_in_name.h"

#include <cctype>
#include <filesystem>

#include "base/text.h"

namespace lockstep {

std::int32_t rank_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::size_t at = name.rfind("rank");
  if (at == std::string::npos) {
    const auto parts = split(name, '.');
    const auto number = parts.size() > 2 ? to_int(parts[parts.size() - 2]) : std::nullopt;
    return number && *number >= 0 && *number < (1 << 24) ? static_cast<std::int32_t>(*number) : -1;
  }
  std::size_t begin = at + 4;
  begin += begin < name.size() && (name[begin] == '_' || name[begin] == '-') ? 1U : 0U;
  std::size_t end = begin;
  while (end < name.size() && end < begin + 7 &&
         std::isdigit(static_cast<unsigned char>(name[end])) != 0) {
    ++end;
  }
  return static_cast<std::int32_t>(to_int(name.substr(begin, end - begin)).value_or(-1));
}

}  // namespace lockstep
