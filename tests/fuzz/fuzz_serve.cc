// Whatever arrives on a connection of `lockstep serve`, it is answered or waited for: HTTP, the
// API's JSON, paths and hosts. Nothing is run; where the API would, the fake says so.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "app/serve/http_server.h"
#include "app/serve/live_sliders.h"
#include "base/error.h"
#include "base/json.h"

namespace {

using namespace lockstep;

/// Only tasks within the limits come through, whose paths are served.
std::optional<IsolatedResult> refuse(const IsolatedTask& task,
                                     const std::function<bool()>& /*gone*/) {
  LOCKSTEP_CHECK(task.confined && task.readable.empty() && task.output_limit > Bytes(0),
                 "a stranger's task without its limits");
  for (const std::string& word : task.arguments) {
    LOCKSTEP_CHECK(word.find("/../") == std::string::npos && !word.starts_with("--follow"),
                   "a word came through that must not");
  }
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ApiSettings settings;
  settings.token = size % 2 == 0 ? "sesame" : "";
  settings.time_limit = Time::us(1);
  const ApiBackend backend{refuse,
                           [](const std::string& message, bool,
                              const std::function<bool()>&) -> std::optional<std::string> {
                             try {
                               (void)sliders_of(parse_json(message, "message"));
                             } catch (const Error&) {
                             }
                             return std::nullopt;
                           }};
  const int status = answer_bytes(bytes, 1 << 16, [&](const ApiRequest& request) {
    return answer_api(request, settings, backend);
  });
  LOCKSTEP_CHECK(status == 0 || (status >= 200 && status < 600), "no status");
  return 0;
}
