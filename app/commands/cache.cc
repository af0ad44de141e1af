#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "app/cache/cached_program.h"
#include "app/cache/result_cache.h"
#include "app/command.h"
#include "app/flag_value.h"
#include "base/atomic_file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"

namespace lockstep {
namespace {

struct CacheFlags {
  std::string folder, size;
  bool json = false;
};

CacheSettings settings_of(const CacheFlags& flags) {
  CacheSettings settings = cache_settings().value_or(CacheSettings{});
  if (!flags.folder.empty()) {
    settings.folder = flags.folder;
  }
  if (settings.folder.empty()) {
    throw Error("no cache is named").expected("--dir FOLDER, or LOCKSTEP_CACHE in the environment");
  }
  // Looking makes none.
  if (std::error_code ignored;
      !std::filesystem::exists(settings.folder + "/results.sqlite", ignored)) {
    throw Error("there is no cache: nothing was kept here").at(settings.folder);
  }
  return settings;
}

/// What can be looked into.
void check_store(const ResultCache& cache) {
  if (!cache.problem().empty()) {
    throw Error("the cache was no store that can be read: " + cache.problem())
        .at(cache.path())
        .hint("it has been moved aside, with '.damaged' behind its name");
  }
}

ExitCode list(const CacheFlags& flags) {
  const CacheSettings settings = settings_of(flags);
  ResultCache cache(settings.folder, settings.most_bytes);
  check_store(cache);
  const std::vector<CacheEntry> entries = cache.list();
  const std::int64_t bytes = cache.used_bytes();
  Json rows = Json::array();
  std::string text;
  for (const CacheEntry& entry : entries) {
    rows.push_back({{"id", entry.id},
                    {"command", entry.command},
                    {"bytes", entry.bytes},
                    {"created_unix", entry.created},
                    {"used_unix", entry.used}});
    text += fmt::format("{:>10}  {:%Y-%m-%d %H:%M}  lockstep {}\n", to_text(Bytes(entry.bytes)),
                        fmt::localtime(static_cast<std::time_t>(entry.used)),
                        printable(entry.command, 200));
  }
  text += fmt::format("{} results, {} of at most {}, in {}\n", entries.size(),
                      to_text(Bytes(bytes)), to_text(Bytes(settings.most_bytes)), cache.path());
  write_file("-", flags.json ? to_text(Json{{"schema", "lockstep-cache/1"},
                                            {"path", cache.path()},
                                            {"bytes", bytes},
                                            {"most_bytes", settings.most_bytes},
                                            {"results", std::move(rows)}})
                             : text);
  return ExitCode::kDone;
}

ExitCode collect(const CacheFlags& flags) {
  CacheSettings settings = settings_of(flags);
  if (!flags.size.empty()) {
    settings.most_bytes = flag_value("--size", flags.size, parse_bytes).count();
  }
  ResultCache cache(settings.folder, settings.most_bytes);
  check_store(cache);
  const std::int64_t gone = cache.shrink(settings.most_bytes);
  write_file("-", flags.json
                      ? to_text(Json{{"schema", "lockstep-cache-gc/1"},
                                     {"removed", gone},
                                     {"results", cache.list().size()}})
                      : fmt::format("{} results removed, {} stay\n", gone, cache.list().size()));
  return ExitCode::kDone;
}

ExitCode verify(const CacheFlags& flags) {
  const CacheSettings settings = settings_of(flags);
  ResultCache cache(settings.folder, settings.most_bytes);
  const CacheCheck check = cache.verify();
  write_file("-", flags.json ? to_text(Json{{"schema", "lockstep-cache-verify/1"},
                                            {"results", check.entries},
                                            {"damaged", check.damaged},
                                            {"store", check.store}})
                             : fmt::format("{} results, {} damaged and removed; the store: {}{}\n",
                                           check.entries, check.damaged, check.store,
                                           check.broken ? "; moved aside" : ""));
  return check.damaged == 0 && check.store == "ok" ? ExitCode::kDone : ExitCode::kCheckFailed;
}

CommandBody define(CLI::App& app) {
  app.require_subcommand(1);
  auto flags = std::make_shared<CacheFlags>();
  std::vector<std::pair<CLI::App*, ExitCode (*)(const CacheFlags&)>> bodies;
  const auto add = [&](const char* name, const char* summary, auto body) {
    CLI::App* sub = app.add_subcommand(name, summary);
    sub->add_option("--dir", flags->folder, "The cache's folder; LOCKSTEP_CACHE unless given");
    sub->add_flag("--json", flags->json, "Print one JSON document");
    bodies.emplace_back(sub, body);
    return sub;
  };
  add("ls", "The results that are kept, the last used first", list);
  add("gc", "Removes the longest unused until the rest fits", collect)
      ->add_option("--size", flags->size, "Size to keep; LOCKSTEP_CACHE_SIZE (1GiB) unless given");
  add("verify", "Checks every result's sum and the store; damaged ones are removed", verify);
  return [flags, bodies] {
    for (const auto& [sub, body] : bodies) {
      if (sub->parsed()) {
        return body(*flags);
      }
    }
    return ExitCode::kDone;
  };
}

}  // namespace

extern const Command kCacheCommand;
const Command kCacheCommand{"cache", "The results that are kept for the next time",
                            R"(Examples:
  LOCKSTEP_CACHE=~/.cache/lockstep lockstep simulate --workload workloads/samples/gpt-tiny-8gpu-tp8.txt --topology Spectrum-X:g=8
  lockstep cache ls --dir ~/.cache/lockstep
  lockstep cache gc --size 100MiB --dir ~/.cache/lockstep
  lockstep cache verify --dir ~/.cache/lockstep
)",
                            define};

}  // namespace lockstep
