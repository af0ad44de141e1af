#include "trace/rank_in_name.h"

#include <array>
#include <filesystem>
#include <optional>

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostRanks = 1 << 24;

/// The digits that a text begins or ends with, as far as they are a rank.
std::optional<std::int32_t> rank_of_digits(std::string_view digits) {
  const auto rank = digits.size() <= 8 ? to_int(digits) : std::nullopt;
  return rank && *rank >= 0 && *rank < kMostRanks ? std::optional(static_cast<std::int32_t>(*rank))
                                                  : std::nullopt;
}

constexpr std::string_view kDigits = "0123456789";

/// "rank3", "rank_3", "rank-3", "rank.3", the last such.
std::optional<std::int32_t> behind_the_word(std::string_view name) {
  for (std::size_t at = name.rfind("rank"); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : name.rfind("rank", at - 1)) {
    std::string_view rest = name.substr(at + 4);
    rest.remove_prefix(!rest.empty() && std::string_view("_-.").find(rest.front()) != rest.npos);
    if (const auto rank = rank_of_digits(rest.substr(0, rest.find_first_not_of(kDigits)))) {
      return rank;
    }
  }
  return std::nullopt;
}

/// The number that stands before the file's extension by itself, "trace.3.et", or behind a word for
/// what a rank is, "gpu-3.json".
std::optional<std::int32_t> before_the_extension(std::string_view name) {
  const auto parts = split(name, '.');
  if (parts.size() < 2) {
    return std::nullopt;
  }
  if (const auto rank = parts.size() > 2 ? rank_of_digits(parts[parts.size() - 2]) : std::nullopt) {
    return rank;
  }
  const std::string_view stem = parts[0];
  const std::size_t digits = stem.find_last_not_of(kDigits) + 1;
  std::string_view word = stem.substr(0, digits);
  word = word.substr(0, word.find_last_not_of("_-") + 1);
  word.remove_prefix(word.find_last_of("_-") + 1);
  for (const std::string_view known : {"trace", "worker", "gpu", "npu", "process", "host"}) {
    if (word == known) {
      return rank_of_digits(stem.substr(digits));
    }
  }
  return std::nullopt;
}

}  // namespace

std::int32_t rank_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return behind_the_word(name).value_or(before_the_extension(name).value_or(-1));
}

}  // namespace lockstep
