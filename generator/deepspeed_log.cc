#include "generator/deepspeed_log.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/comm_names.h"

namespace lockstep {
namespace {

/// What stands between `key` and the next `end`; nothing if either is missing.
std::optional<std::string_view> between(std::string_view line, std::string_view key,
                                        std::string_view end) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(at + key.size());
  const std::size_t stop = rest.find(end);
  return stop == std::string_view::npos ? std::nullopt : std::optional(rest.substr(0, stop));
}

}  // namespace

void read_deepspeed_log(std::string_view text, const std::string& file,
                        const std::function<void(const DeepSpeedLogEntry&)>& take) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    const auto operation = between(line, "comm op: ", " |");
    const auto size = between(line, "msg size: ", " |");
    const auto bandwidth = between(line, "algbw (Gbps): ", " ");
    if (!operation.has_value() || !size.has_value() || !bandwidth.has_value()) {
      continue;
    }
    if (!is_aicb_operation(*operation)) {
      const std::string_view near = closest(*operation, aicb_operations());
      throw Error(fmt::format("unknown operation '{}'", printable(*operation)))
          .at(file, number)
          .field("comm op")
          .expected(join(aicb_operations(), ", "))
          .hint(near.empty() ? std::string() : fmt::format("did you mean '{}'?", near));
    }
    take({*operation, *size, *bandwidth});
  }
}

}  // namespace lockstep
