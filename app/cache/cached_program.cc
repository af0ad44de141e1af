#include "app/cache/cached_program.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "app/cache/result_cache.h"
#include "app/program.h"
#include "app/program_identity.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/find_program.h"
#include "base/output_capture.h"
#include "base/own_program.h"
#include "base/units.h"

extern char** environ;

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Commands whose result follows from files and flags.
constexpr std::array<std::string_view, 8> kPure{"generate", "topology",   "simulate", "whatif",
                                                "compare",  "collective", "goodput",  "plan"};

/// Beginnings of the names of the environment that these read: ours, the steps of a BytePS trace
/// (app/simulate/byteps_trace.cc), and ns-3's defaults and logs (NS_GLOBAL_VALUE, NS_LOG, …).
constexpr std::array<std::string_view, 3> kSettings{"LOCKSTEP_", "BYTEPS_TRACE_", "NS_"};

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
    if (!text.starts_with("LOCKSTEP_CACHE") &&
        std::ranges::any_of(kSettings, [&](auto name) { return text.starts_with(name); })) {
      settings.emplace(text);
    }
  }
  for (const std::string& setting : settings) {
    digest.add(setting);
  }
  // What is asked for beside this program and on PATH: which files these names mean. The files
  // themselves are inputs of the results that use them.
  digest.add(own_program().parent_path().string());
  digest.add(find_program("lockstep-packet").string());
  if (std::ranges::find(arguments, "--json") == arguments.end()) {
    digest.add(terminal_form());  // tables are set for it
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

/// The answers to what was asked of the file system: they must be the same.
bool add_answers(const FileRecord::Files& files, std::vector<CacheInput>& inputs) {
  for (const auto& [path, there] : files.asked) {
    if (files.read.count(path) != 0) {
      continue;  // among the files
    }
    if (files.written.count(path) != 0) {
      return false;  // the next run will find what this one did not
    }
    inputs.push_back(look_at(path));
    if ((inputs.back().digest != kAbsent) != there) {
      return false;  // it came or went meanwhile
    }
  }
  for (const auto& [path, folder] : files.asked_folder) {
    inputs.push_back(look_for_folder(path));
  }
  for (const std::string& folder : files.listed) {
    if (std::ranges::any_of(files.written,
                            [&](const std::string& file) { return lies_in(file, folder); })) {
      return false;  // as above
    }
    inputs.push_back(look_at(folder));
  }
  if (files.place) {
    inputs.push_back(look_at_place());
  }
  return true;
}

/// What the run depended on; nothing where that cannot be known.
std::optional<std::vector<CacheInput>> inputs_of(const FileRecord::Files& files,
                                                 const std::vector<std::string>& arguments,
                                                 std::int64_t began_ns) {
  std::vector<CacheInput> inputs;
  for (const std::string& path : files.read) {
    std::error_code ignored;
    if (path == "-" || !fs::is_regular_file(path, ignored)) {
      return std::nullopt;  // a pipe is read once: what comes next is not known
    }
    if (files.written.count(path) == 0) {
      inputs.push_back(look_at(path));
      if (inputs.back().changed_ns >= began_ns) {
        return std::nullopt;  // which bytes were read is not known
      }
    }
  }
  if (!add_answers(files, inputs)) {
    return std::nullopt;
  }
  add_folders(arguments, files.written, inputs);
  const bool known =
      std::ranges::none_of(inputs, [](const CacheInput& input) { return input.digest.empty(); });
  return known ? std::optional(std::move(inputs)) : std::nullopt;
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

/// The cache that the environment names; none where it names none, or one that cannot be used: it
/// only saves time. ERRORS: those of cache_settings().
std::unique_ptr<ResultCache> open_cache() {
  const auto settings = cache_settings();
  if (!settings) {
    return nullptr;
  }
  try {
    return std::make_unique<ResultCache>(settings->folder, settings->most_bytes);
  } catch (const Error& error) {
    fmt::print(standard_error(), "lockstep: warning: LOCKSTEP_CACHE: {}; computed without\n",
               error.message());
    return nullptr;
  }
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
    if (const auto cache = open_cache()) {
      const std::string key = key_of(arguments);
      if (const auto found = cache->find(key)) {
        return replay(*found);
      }
      return run_and_store(*cache, key, arguments, out_of_memory);
    }
  } catch (const Error& error) {
    fmt::print(standard_error(), "lockstep: {}\n", error.what());
    return error.code();
  }
  return run_program(arguments, out_of_memory);
}

}  // namespace lockstep
