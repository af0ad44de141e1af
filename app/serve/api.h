#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/isolate/task.h"

namespace lockstep {

/// One HTTP request, as far as the API looks at it.
struct ApiRequest {
  std::string method, target;
  std::string host, origin, authorization, content_type;  ///< headers; empty: absent
  std::string body;
  std::function<bool()> gone = {};  ///< whether its client has hung up; empty: it has not
};

/// How often who works for a client asks whether it is `gone`.
inline constexpr std::chrono::milliseconds kAskIfGone{200};

struct ApiReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string allow = {};  ///< of 405: the methods that are answered
};

struct ApiSettings {
  std::string token;      ///< that every request but the page must carry; empty: none
  bool any_host = false;  ///< a request may name any host (not on loopback, where a page of
                          ///< another site could otherwise reach us by its own name)
  std::string page;       ///< what / shows
  std::string files;      ///< folder that command lines may name files of; empty: none
  Time time_limit{};      ///< of one command
  Bytes memory_limit{};   ///< of each of its processes
};

/// What runs commands and live models for the API. Both may be called by several threads at once.
struct ApiBackend {
  /// Empty where too much is waiting already. What runs for a client that is `gone` is ended.
  std::function<std::optional<IsolatedResult>(const IsolatedTask&,
                                              const std::function<bool()>& gone)>
      run;
  /// One JSON message to the live model and its answer; empty where it gave none. `report`: the
  /// message wants a whole report, which takes longer. What runs for a client that is `gone` is
  /// ended.
  std::function<std::optional<std::string>(const std::string&, bool report,
                                           const std::function<bool()>& gone)>
      live;
};

/// Answers a request: docs/formats/serve-api.md. Whatever the request is, this is an answer; it
/// does not throw, except where memory is lacking.
ApiReply answer_api(const ApiRequest& request, const ApiSettings& settings,
                    const ApiBackend& backend);

/// An answer that only says what is wrong: {"error": text}.
ApiReply api_error(int status, std::string_view text);

}  // namespace lockstep
