#include "app/serve/run_serve.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "app/flag_value.h"
#include "app/serve/http_server.h"
#include "app/serve/live_process.h"
#include "app/serve/nursery_pool.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "report/html/page.h"

namespace lockstep {
namespace {

bool is_loopback(const std::string& address) {
  return address == "::1" || address == "localhost" || address.starts_with("127.");
}

std::string read_token(const std::string& path) {
  const FileText text(path, Bytes(1 << 16));
  std::string token(trim(text.view().substr(0, text.view().find('\n'))));
  if (token.size() < 16) {
    throw Error("the token is too short")
        .at(path)
        .field("--token-file")
        .expected("16 characters or more in the first line")
        .hint("head -c 24 /dev/urandom | base64 > FILE");
  }
  return token;
}

ApiSettings api_settings(const ServeOptions& options) {
  ApiSettings settings;
  settings.page = html_live_page();
  if (!options.token_file.empty()) {
    settings.token = read_token(options.token_file);
  }
  const bool open = options.socket.empty() && !is_loopback(options.address);
  if (open && settings.token.empty()) {
    throw Error("an address that other machines reach needs a token")
        .field("--address")
        .expected("--token-file FILE");
  }
  settings.any_host = open || !options.socket.empty();
  if (!options.files.empty()) {
    std::error_code problem;
    settings.files = std::filesystem::canonical(options.files, problem).string();
    if (problem || !std::filesystem::is_directory(settings.files)) {
      throw Error("there is no such folder").at(options.files).field("--files");
    }
  }
  settings.time_limit = flag_value("--time-limit", options.time_limit, parse_time);
  settings.memory_limit = flag_value("--memory-limit", options.memory_limit, parse_bytes);
  return settings;
}

HttpSettings http_settings(const ServeOptions& options) {
  HttpSettings settings{.socket = options.socket};
  settings.address = options.address == "localhost" ? "127.0.0.1" : options.address;
  settings.port = static_cast<std::uint16_t>(std::max<std::int64_t>(options.port, 0));
  settings.most_body = flag_value("--body-limit", options.body_limit, parse_bytes).count();
  settings.most_connections = options.connections;
  settings.threads = options.jobs + options.waiting + 2;
  return settings;
}

}  // namespace

ExitCode run_serve(const ServeOptions& options) {
  if (options.socket.empty() == (options.port < 0)) {
    throw Error("nothing to listen on, or two things").expected("--socket PATH, or --port N");
  }
  const ApiSettings settings = api_settings(options);
  const HttpSettings http = http_settings(options);
  const Time grace = flag_value("--grace", options.grace, parse_time);
  NurseryPool pool(options.jobs, options.waiting);
  LiveProcess live(settings.time_limit, settings.memory_limit, settings.files);
  // Sliders do not wait for reports.
  LiveProcess reports(settings.time_limit, settings.memory_limit, settings.files);
  const ApiBackend backend{
      [&](const IsolatedTask& task, const std::function<bool()>& gone) {
        return pool.run(task, gone);
      },
      [&](const std::string& message, bool report, const std::function<bool()>& gone) {
        return (report ? reports : live).ask(message, gone);
      }};
  const StopSignal stop;
  HttpServer server(
      http, [&](const ApiRequest& request) { return answer_api(request, settings, backend); });
  write_file("-", fmt::format("listening on {}\n", server.where()));
  while (!stop.wait_for(std::chrono::milliseconds(500))) {
  }
  constexpr std::int64_t kPicosecondsOfOne = 1'000'000'000;  // of a millisecond
  server.stop(std::chrono::milliseconds(grace.count_ps() / kPicosecondsOfOne));
  pool.close();
  live.close();
  reports.close();
  return ExitCode::kDone;
}

}  // namespace lockstep
