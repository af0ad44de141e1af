#include "generator/deepspeed_log.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/comm_names.h"

namespace lockstep {
namespace {

/// Takes what stands between `key` and the next `end` off the line, with all before it; nothing if
/// either is missing.
std::optional<std::string_view> take(std::string_view& line, std::string_view key,
                                     std::string_view end) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(at + key.size());
  const std::size_t stop = rest.find(end);
  if (stop == std::string_view::npos) {
    return std::nullopt;
  }
  line = rest.substr(stop + end.size());
  return rest.substr(0, stop);
}

}  // namespace

void read_deepspeed_log(std::string_view text, const std::string& file,
                        const std::function<void(const DeepSpeedLogEntry&)>& report) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    // As Python reads text: a line also ends at a carriage return alone, as progress bars write it.
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
    ++number;
    const auto operation = take(line, "comm op: ", " |");  // in this order, as AICB looks for them
    const auto size = take(line, "msg size: ", " |");
    const auto bandwidth = take(line, "algbw (Gbps): ", " ");
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
    report({*operation, *size, *bandwidth});
  }
}

}  // namespace lockstep
