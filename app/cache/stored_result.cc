#include "app/cache/stored_result.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_number.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string packed(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

constexpr std::string_view kFolder = "folder", kNoFolder = "no folder";  // digests
constexpr std::string_view kPlace = "";                                  // a path

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

/// Names of all files below, in their order: whether one came or went. What is read of them is an
/// input of its own. None where there are too many, or not all can be seen.
std::string digest_of_folder(const std::string& path) {
  constexpr std::size_t kMostEntries = 100'000;
  std::vector<std::string> entries;
  std::error_code problem;
  fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, problem);
  for (const fs::recursive_directory_iterator end; at != end && !problem; at.increment(problem)) {
    entries.push_back(at->path().lexically_relative(path).string());
    if (entries.size() > kMostEntries) {
      return {};
    }
  }
  if (problem) {
    return {};
  }
  std::ranges::sort(entries);
  Digest digest;
  for (const std::string& entry : entries) {
    digest.add(entry);
  }
  return digest.hex();
}

/// All but the digest.
CacheInput stat_of(const std::string& path) {
  CacheInput input{.path = path, .digest = {}};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    input.digest = kAbsent;
    return input;
  }
  input.size = info.st_size;
  input.modified_ns = nanoseconds(info.st_mtim);
  input.changed_ns = nanoseconds(info.st_ctim);
  input.inode = static_cast<std::int64_t>(info.st_ino);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  input.settled =
      S_ISREG(info.st_mode) && nanoseconds(now) - input.changed_ns > std::int64_t{1'000'000'000};
  return input;
}

}  // namespace

StoredParts to_parts(const StoredResult& result) {
  Json names = Json::array(), bytes = Json::array();
  for (const CacheFile& file : result.files) {
    names.push_back({file.path, digest_of(file.bytes)});
    bytes.push_back(file.bytes);
  }
  return {.head = packed({{"exit_code", result.exit_code},
                          {"out", result.out},
                          {"err", result.err},
                          {"files", std::move(names)}}),
          .files = packed(bytes)};
}

std::string to_bytes(const std::vector<CacheInput>& inputs) {
  Json json = Json::array();
  for (const CacheInput& input : inputs) {
    json.push_back({input.path, input.digest, input.size, input.modified_ns, input.changed_ns,
                    input.inode, input.settled});
  }
  return packed(json);
}

std::vector<CacheInput> inputs_of_bytes(std::string_view bytes) {
  std::vector<CacheInput> inputs;
  for (const Json& json : Json::from_cbor(bytes.begin(), bytes.end())) {
    inputs.push_back({.path = json.at(0).get<std::string>(),
                      .digest = json.at(1).get<std::string>(),
                      .size = whole_number(json.at(2)),
                      .modified_ns = whole_number(json.at(3)),
                      .changed_ns = whole_number(json.at(4)),
                      .inode = whole_number(json.at(5)),
                      .settled = json.at(6).get<bool>()});
  }
  return inputs;
}

CacheInput look_at(const std::string& path) {
  CacheInput input = stat_of(path);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return {.path = path, .digest = digest_of_folder(path)};
  }
  if (fs::is_regular_file(path, ignored)) {
    try {
      input.digest = digest_of(FileText(path).view());
    } catch (const Error&) {
      input.digest.clear();
    }
  }
  return input;
}

CacheInput look_for_folder(const std::string& path) {
  std::error_code ignored;
  return {.path = path,
          .digest = std::string(fs::is_directory(path, ignored) ? kFolder : kNoFolder)};
}

CacheInput look_at_place() {
  std::error_code problem;
  return {.path = std::string(kPlace), .digest = fs::current_path(problem).string()};
}

bool unchanged(const CacheInput& input) {
  if (input.digest.empty()) {
    return false;
  }
  if (input.path == kPlace) {
    return look_at_place().digest == input.digest;
  }
  if (input.digest == kFolder || input.digest == kNoFolder) {
    return look_for_folder(input.path).digest == input.digest;
  }
  if (input.settled) {
    CacheInput now = stat_of(input.path);
    now.digest = input.digest;
    if (now == input) {
      return true;
    }
  }
  return look_at(input.path).digest == input.digest;
}

StoredResult result_of_head(std::string_view head, std::vector<bool>& missing) {
  const Json json = Json::from_cbor(head.begin(), head.end());
  StoredResult result{.exit_code = static_cast<int>(whole_number(json.at("exit_code"))),
                      .out = json.at("out").get<std::string>(),
                      .err = json.at("err").get<std::string>(),
                      .files = {}};
  for (const Json& file : json.at("files")) {
    result.files.push_back({file.at(0).get<std::string>(), {}});
    missing.push_back(look_at(result.files.back().path).digest != file.at(1).get<std::string>());
  }
  return result;
}

void add_files(std::string_view files, StoredResult& result) {
  const Json json = Json::from_cbor(files.begin(), files.end());
  for (std::size_t i = 0; i < result.files.size(); ++i) {
    result.files[i].bytes = json.at(i).get<std::string>();
  }
}

}  // namespace lockstep
