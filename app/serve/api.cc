#include "app/serve/api.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <vector>

#include <fmt/format.h>

#include "app/build_facts.h"
#include "base/atomic_file.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/input_limit.h"
#include "base/json.h"
#include "base/scratch_folder.h"
#include "base/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Commands that compute and end; none that serves, sweeps or measures.
constexpr std::array<std::string_view, 8> kCommands{"generate", "topology",   "simulate", "whatif",
                                                    "compare",  "collective", "goodput",  "plan"};

constexpr std::size_t kMostFiles = 1000;       // of a request
constexpr std::int64_t kMostValues = 100'000;  // of its body: a tree of 40 B each and their texts
constexpr Bytes kMostWritten(std::int64_t{1} << 28);  // of what a command prints, and of each file

/// Bad requests, as the API's user sees them.
struct Refusal {
  int status;
  std::string text;
  std::string allow = {};  ///< of 405
};

std::string dump(const Json& json) { return to_line(json) + "\n"; }

/// Takes as long whatever the texts are, so that the time does not tell how much of them agrees.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    different |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ other));
  }
  return different == 0;
}

/// A Host header's name, without the port behind it, means this machine whatever DNS says. None
/// does as well: only a browser can be misled, and browsers send one.
bool is_loopback_name(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::size_t end = bracketed ? std::min(host.find(']'), host.size() - 1) + 1
                                    : std::min(host.find(':'), host.size());
  const std::string name = to_lower(host.substr(0, end));
  const std::string_view port = host.substr(end);
  if (!port.empty() && (port[0] != ':' || !std::ranges::all_of(port.substr(1), is_digit))) {
    return false;
  }
  if (bracketed) {
    in6_addr address{};
    return name.ends_with(']') &&
           ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &address) == 1 &&
           IN6_IS_ADDR_LOOPBACK(&address);
  }
  in_addr address{};
  return name.empty() || name == "localhost" ||
         (::inet_pton(AF_INET, name.c_str(), &address) == 1 &&
          ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
}

void check_access(const ApiRequest& request, const ApiSettings& settings) {
  if (!settings.any_host && !is_loopback_name(request.host)) {
    throw Refusal{403, "this host is not served"};
  }
  if (!request.origin.empty() && !request.origin.ends_with("//" + request.host)) {
    throw Refusal{403, "requests of other sites' pages are not answered"};
  }
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization;
  if (!settings.token.empty() &&
      !(given.starts_with(kBearer) && same_secret(given.substr(kBearer.size()), settings.token))) {
    throw Refusal{401, "needs the header 'Authorization: Bearer TOKEN'"};
  }
}

/// Values of a JSON text, at most: its commas and opened lists and objects.
std::int64_t values_in(std::string_view text) {
  std::int64_t values = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '[' || c == '{')) {
      ++values;
    }
  }
  return values;
}

Json json_body(const ApiRequest& request) {
  const std::string_view type = request.content_type;
  if (to_lower(trim(type.substr(0, type.find(';')))) != "application/json") {
    throw Refusal{415, "the body must be application/json"};
  }
  if (values_in(request.body) > kMostValues) {
    throw Refusal{413, fmt::format("the body has more than {} values", kMostValues)};
  }
  try {
    return parse_json(request.body, "body");
  } catch (const Error& error) {
    throw Refusal{400, error.what()};
  }
}

std::vector<std::string> words_of(const Json& list, const char* key) {
  std::vector<std::string> words;
  if (!list.is_array()) {
    throw Refusal{400, fmt::format("'{}' must be a list of texts", key)};
  }
  for (const Json& word : list) {
    if (!word.is_string() || word.get_ref<const std::string&>().find('\0') != std::string::npos) {
      throw Refusal{400, fmt::format("'{}' must be a list of texts", key)};
    }
    words.push_back(word.get<std::string>());
  }
  return words;
}

/// A plain name or path below the request's own folder, that a file can have.
bool stays_inside(std::string_view path) {
  constexpr std::size_t kLongest = 255, kMostParts = 10;  // of a part, as Linux has it
  const std::vector<std::string_view> parts = split(path, '/');
  return parts.size() <= kMostParts && std::ranges::all_of(parts, [](std::string_view part) {
           return !part.empty() && part != "." && part != ".." && part.size() <= kLongest &&
                  part.find('\0') == std::string_view::npos;
         });
}

/// Not by a std::filesystem::path, which holds each of a long word's parts.
void check_path(std::string_view path, const ApiSettings& settings) {
  bool climbs = false;
  for (std::size_t begin = 0; begin <= path.size() && !climbs;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    climbs = path.substr(begin, end - begin) == "..";
    begin = end + 1;
  }
  const std::string below = settings.files.ends_with('/') ? settings.files : settings.files + "/";
  const bool is_served =
      !settings.files.empty() && (path == settings.files || path.starts_with(below));
  if (climbs || (path.starts_with('/') && !is_served)) {
    throw Refusal{403, fmt::format("the path '{}' is not served", printable(path))};
  }
}

/// Behind short flags that stand together: "/x" of "-o/x" and of "-qo/x"; empty for other words.
std::string_view behind_letters(std::string_view word) {
  if (!word.starts_with('-')) {
    return {};
  }
  const auto* const end = std::find_if_not(
      word.begin() + 1, word.end(), [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
  return word.substr(static_cast<std::size_t>(end - word.begin()));
}

/// Command lines may name files of their own folder and of the one that is served, no others. That
/// is told here at once; who opens files heeds it as well, whatever names them
/// (IsolatedTask::confined).
void check_word(std::string_view word, const ApiSettings& settings) {
  check_path(behind_letters(word), settings);
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find_first_of("=:,", begin), word.size());
    check_path(word.substr(begin, end - begin), settings);
    begin = end + 1;
  }
}

IsolatedTask task_of(const Json& body, const ApiSettings& settings) {
  IsolatedTask task{.arguments = words_of(body.value("arguments", Json()), "arguments"),
                    .folder = {},
                    .time_limit = settings.time_limit,
                    .memory_limit = settings.memory_limit,
                    .output_limit = kMostWritten,
                    .confined = true,
                    .readable = {}};
  if (!settings.files.empty()) {
    task.readable.push_back(settings.files);
  }
  if (task.arguments.empty() ||
      std::ranges::find(kCommands, task.arguments.front()) == kCommands.end()) {
    throw Refusal{400,
                  fmt::format("'arguments' must begin with one of {}", fmt::join(kCommands, ", "))};
  }
  for (const std::string& word : task.arguments) {
    if (word.starts_with("--follow")) {
      throw Refusal{400, "--follow does not end, and is not served"};
    }
    if (word.starts_with("--max-input")) {
      throw Refusal{400, "--max-input is not for callers"};
    }
    check_word(word, settings);
  }
  if (body.contains("time_limit_s")) {
    const Json& limit = body["time_limit_s"];
    if (!limit.is_number() || !(limit.get<double>() > 0 && limit.get<double>() < 1e6)) {
      throw Refusal{400, "'time_limit_s' must be a number above 0 and below 1e6"};
    }
    // 0 is no limit: neither what rounds to it nor a server without one.
    const Time wanted = std::max(Time::ps(1), Time::seconds(limit.get<double>()));
    const bool limited = settings.time_limit > Time();
    task.time_limit = limited ? std::min(wanted, settings.time_limit) : wanted;
  }
  return task;
}

/// JSON holds text: other bytes are {"base64": …}.
Json bytes_json(std::string bytes) {
  return is_utf8(bytes) ? Json(std::move(bytes)) : Json{{"base64", to_base64(bytes)}};
}

/// Nothing where the JSON is neither a text nor {"base64": …}.
std::optional<std::string> bytes_of(const Json& json) {
  if (json.is_string()) {
    return json.get<std::string>();
  }
  if (json.is_object() && json.size() == 1 && json.contains("base64") &&
      json["base64"].is_string()) {
    return from_base64(json["base64"].get_ref<const std::string&>());
  }
  return std::nullopt;
}

void write_files(const Json& files, const std::string& folder) {
  if (!files.is_object() || files.size() > kMostFiles) {
    throw Refusal{
        400, fmt::format("'files' must be an object of {} names and texts at most", kMostFiles)};
  }
  for (const auto& [name, content] : files.items()) {
    const std::optional<std::string> bytes = bytes_of(content);
    if (!stays_inside(name) || !bytes) {
      throw Refusal{400, fmt::format("'files': '{}' is no name of a file, or is neither a text nor "
                                     "{{\"base64\": text}}",
                                     printable(name))};
    }
    for (std::size_t end = name.find('/'); end != std::string::npos;
         end = name.find('/', end + 1)) {
      if (files.contains(name.substr(0, end))) {
        throw Refusal{400, fmt::format("'files': '{}' is below another file", printable(name))};
      }
    }
    try {
      const fs::path path = fs::path(folder) / name;
      make_folder(path.parent_path().string());
      write_file(path.string(), *bytes);
    } catch (const Error& error) {
      throw Refusal{400, fmt::format("file '{}': {}", printable(name), error.message())};
    }
  }
}

/// A file as it is: FileText leaves out a byte order mark, and refuses pickles.
std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()), file.gcount() > 0) {
    bytes.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (bytes.size() > static_cast<std::size_t>(kMostWritten.count())) {
      throw input_too_large(path, "the file has", kMostWritten);
    }
  }
  if (file.bad()) {
    throw Error("cannot read the file").at(path);
  }
  return bytes;
}

/// What the command wrote, those files that the request wants.
Json written_files(const Json& wanted, const std::string& folder) {
  Json files = Json::object();
  for (const std::string& name : words_of(wanted, "want_files")) {
    std::error_code ignored;
    const fs::path path = fs::path(folder) / name;
    if (!stays_inside(name) || fs::is_symlink(path, ignored)) {
      throw Refusal{403, fmt::format("the path '{}' is not served", printable(name))};
    }
    if (fs::is_regular_file(path, ignored)) {
      files[name] = bytes_json(read_bytes(path.string()));
    }
  }
  return files;
}

ApiReply run_command(const ApiRequest& request, const ApiSettings& settings,
                     const ApiBackend& backend) {
  const Json body = json_body(request);
  if (!body.is_object()) {
    throw Refusal{400, "the body must be an object"};
  }
  for (const auto& [key, value] : body.items()) {
    constexpr std::array<std::string_view, 4> kKeys{"arguments", "files", "want_files",
                                                    "time_limit_s"};
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      throw Refusal{400, fmt::format("unknown key '{}'", printable(key))};
    }
  }
  IsolatedTask task = task_of(body, settings);
  const ScratchFolder scratch;
  task.folder = scratch.path();
  if (body.contains("files")) {
    write_files(body["files"], scratch.path());
  }
  const std::optional<IsolatedResult> result = backend.run(task, request.gone);
  if (!result) {
    throw Refusal{503, "too many requests are waiting; try again later"};
  }
  Json reply{{"schema", "lockstep-run/1"},
             {"ending", to_text(result->ending)},
             {"exit_code", result->exit_code},
             {"wall_s", result->wall_s},
             {"cpu_s", result->cpu_s}};
  if (!result->reason.empty()) {
    reply["reason"] = result->reason;
  }
  Json document = Json::parse(result->out, nullptr, false);
  reply["output"] = document.is_discarded() ? bytes_json(result->out) : std::move(document);
  reply["messages"] = result->err;
  if (body.contains("want_files")) {
    reply["files"] = written_files(body["want_files"], scratch.path());
  }
  return {.status = 200, .content_type = "application/json", .body = dump(reply)};
}

ApiReply live(const ApiRequest& request, const ApiSettings& settings, const ApiBackend& backend) {
  const Json body = json_body(request);
  if (body.is_object() && body.contains("arguments")) {
    for (const std::string& word : words_of(body["arguments"], "arguments")) {
      check_word(word, settings);
    }
  }
  const bool report = body.is_object() && body.value("report", Json()) == Json(true);
  const std::optional<std::string> reply = backend.live(dump(body), report, request.gone);
  if (!reply) {
    throw Refusal{503, "the live model is busy or had to be ended; try again"};
  }
  const bool failed = reply->starts_with(R"({"error":)");  // a report has megabytes to parse
  return {.status = failed ? 400 : 200, .content_type = "application/json", .body = *reply};
}

ApiReply about() {
  return {.status = 200,
          .content_type = "application/json",
          .body = dump({{"schema", "lockstep-serve/1"},
                        {"version", build_facts().version},
                        {"commands", kCommands}})};
}

ApiReply route(const ApiRequest& request, const ApiSettings& settings, const ApiBackend& backend) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const auto only = [&](std::string_view method) {
    if (request.method != method) {
      throw Refusal{405, fmt::format("only {} is answered here", method),
                    method == "GET" ? "GET, HEAD" : std::string(method)};
    }
  };
  if (path == "/") {
    only("GET");
    if (!settings.any_host && !is_loopback_name(request.host)) {
      throw Refusal{403, "this host is not served"};
    }
    return {.status = 200, .content_type = "text/html; charset=utf-8", .body = settings.page};
  }
  check_access(request, settings);
  if (path == "/api/v1/about") {
    only("GET");
    return about();
  }
  if (path == "/api/v1/run") {
    only("POST");
    return run_command(request, settings, backend);
  }
  if (path == "/api/v1/live") {
    only("POST");
    return live(request, settings, backend);
  }
  throw Refusal{404, "there is nothing here"};
}

}  // namespace

ApiReply api_error(int status, std::string_view text) {
  return {.status = status,
          .content_type = "application/json",
          .body = dump({{"error", printable(text, 2000)}})};
}

ApiReply answer_api(const ApiRequest& request, const ApiSettings& settings,
                    const ApiBackend& backend) {
  try {
    return route(request, settings, backend);
  } catch (const Refusal& refusal) {
    ApiReply reply = api_error(refusal.status, refusal.text);
    reply.allow = refusal.allow;
    return reply;
  } catch (const Error& error) {
    return api_error(500, error.what());
  } catch (const std::exception& error) {
    return api_error(500, error.what());
  }
}

}  // namespace lockstep
