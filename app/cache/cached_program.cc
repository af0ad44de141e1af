#include "app/cache/cached_program.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "app/cache/result_cache.h"
#include "app/program.h"
#include "app/program_identity.h"
#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/find_program.h"
#include "base/output_capture.h"
#include "base/units.h"

extern char** environ;

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Commands whose result follows from files and flags.
constexpr std::array<std::string_view, 8> kPure{"generate", "topology",   "simulate", "whatif",
                                                "compare",  "collective", "goodput",  "plan"};

bool is_pure(const std::vector<std::string>& arguments) {
  return !arguments.empty() && std::ranges::find(kPure, arguments.front()) != kPure.end() &&
         std::ranges::none_of(arguments, [](const std::string& word) {
           // --resume: a journal grows, it is not replaced.
           return word.starts_with("--follow") || word.starts_with("--resume") || word == "-h" ||
                  word == "--help";
         });
}

std::string key_of(const std::vector<std::string>& arguments) {
  Digest digest;
  digest.add(program_identity());
  for (const std::string& word : arguments) {
    digest.add(word);
  }
  std::set<std::string> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("LOCKSTEP_") && !text.starts_with("LOCKSTEP_CACHE")) {
      settings.emplace(text);
    }
  }
  for (const std::string& setting : settings) {
    digest.add(setting);
  }
  if (std::ranges::find(arguments, "packet") != arguments.end()) {
    const fs::path program = find_program("lockstep-packet");
    digest.add(program.empty() ? "" : look_at(program.string()).digest);
  }
  return digest.hex();
}

bool lies_in(const std::string& path, const fs::path& folder) {
  const fs::path relative = fs::path(path).lexically_normal().lexically_relative(
      (folder / "").lexically_normal().parent_path());
  return !relative.empty() && *relative.begin() != ".." && relative != ".";
}

/// The folders among the words of the command line that it has not written into: what lies in them
/// may matter too.
void add_folders(const std::vector<std::string>& arguments, const std::set<std::string>& written,
                 std::vector<CacheInput>& inputs) {
  for (const std::string& word : arguments) {
    const std::string path = word.substr(word.starts_with("--") ? word.find('=') + 1 : 0);
    std::error_code ignored;
    if (fs::is_directory(path, ignored) &&
        std::ranges::none_of(written,
                             [&](const std::string& file) { return lies_in(file, path); })) {
      inputs.push_back(look_at(path));
    }
  }
}

/// What the run depended on; nothing where that cannot be known.
std::optional<std::vector<CacheInput>> inputs_of(const FileRecord::Files& files,
                                                 const std::vector<std::string>& arguments,
                                                 std::int64_t began_ns) {
  std::vector<CacheInput> inputs;
  for (const std::string& path : files.read) {
    if (path == "-") {
      return std::nullopt;
    }
    if (files.written.count(path) == 0) {
      inputs.push_back(look_at(path));
      if (inputs.back().changed_ns >= began_ns) {
        return std::nullopt;  // which bytes were read is not known
      }
    }
  }
  add_folders(arguments, files.written, inputs);
  return inputs;
}

std::optional<std::vector<CacheFile>> outputs_of(const FileRecord::Files& files) {
  std::vector<CacheFile> outputs;
  for (const std::string& path : files.written) {
    std::error_code ignored;
    if (path == "-") {
      continue;
    }
    if (!fs::is_regular_file(path, ignored)) {
      return std::nullopt;
    }
    try {
      outputs.push_back({path, std::string(FileText(path).view())});
    } catch (const Error&) {
      return std::nullopt;  // too large to keep, or gone
    }
  }
  return outputs;
}

void print(const std::string& out, const std::string& err) {
  std::fwrite(err.data(), 1, err.size(), standard_error());
  write_file("-", out);
}

ExitCode replay(const StoredResult& result) {
  try {
    for (const CacheFile& file : result.files) {
      const fs::path folder = fs::path(file.path).parent_path();
      if (!folder.empty()) {
        make_folder(folder.string());
      }
      write_file(file.path, file.bytes);
    }
    print(result.out, result.err);
  } catch (const Error& error) {
    fmt::print(standard_error(), "lockstep: {}\n", error.what());
    return error.code();
  }
  return static_cast<ExitCode>(result.exit_code);
}

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock of the file system's times
  return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

ExitCode run_and_store(ResultCache& cache, const std::string& key,
                       const std::vector<std::string>& arguments, bool* out_of_memory) {
  const std::int64_t began_ns = now_ns();
  StoredResult result;
  FileRecord::Files files;
  {
    const FileRecord record;
    const OutputCapture capture;
    result.exit_code = static_cast<int>(run_program(arguments, out_of_memory));
    result.out = capture.out();
    result.err = capture.err();
    files = record.files();
  }
  try {
    print(result.out, result.err);
  } catch (const Error& error) {
    fmt::print(standard_error(), "lockstep: {}\n", error.what());
    return error.code();
  }
  const auto code = static_cast<ExitCode>(result.exit_code);
  if (code == ExitCode::kDone || code == ExitCode::kCheckFailed) {
    const auto inputs = inputs_of(files, arguments, began_ns);
    auto outputs = outputs_of(files);
    if (inputs && outputs) {
      result.files = std::move(*outputs);
      cache.store(key, fmt::format("{}", fmt::join(arguments, " ")), *inputs, result);
    }
  }
  return code;
}

}  // namespace

std::optional<CacheSettings> cache_settings() {
  const char* folder = std::getenv("LOCKSTEP_CACHE");
  if (folder == nullptr || *folder == '\0') {
    return std::nullopt;
  }
  CacheSettings settings{.folder = folder};
  if (const char* size = std::getenv("LOCKSTEP_CACHE_SIZE")) {
    try {
      settings.most_bytes = parse_bytes(size).count();
    } catch (Error& error) {
      throw std::move(error).field("LOCKSTEP_CACHE_SIZE");
    }
  }
  return settings;
}

ExitCode run_program_cached(const std::vector<std::string>& arguments, bool* out_of_memory) {
  if (!is_pure(arguments)) {
    return run_program(arguments, out_of_memory);
  }
  try {
    const auto settings = cache_settings();
    if (settings) {
      ResultCache cache(settings->folder, settings->most_bytes);
      const std::string key = key_of(arguments);
      if (const auto found = cache.find(key)) {
        return replay(*found);
      }
      return run_and_store(cache, key, arguments, out_of_memory);
    }
  } catch (const Error& error) {
    fmt::print(standard_error(), "lockstep: {}\n", error.what());
    return error.code();
  }
  return run_program(arguments, out_of_memory);
}

}  // namespace lockstep
