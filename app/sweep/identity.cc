#include "app/sweep/identity.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/program_identity.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/find_program.h"
#include "base/module_path.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void add_value(Digest& digest, const FlagValue& value) {
  digest.add(fmt::format("{}", value.size()));
  for (const std::string& word : value) {
    digest.add(word);
  }
}

std::string digest_of_grid(const Grid& grid) {
  Digest digest;
  digest.add(grid.command);
  for (const auto& [flag, value] : grid.flags) {
    add_value(digest.add(flag), value);
  }
  for (const GridAxis& axis : grid.axes) {
    digest.add(fmt::format("{} {}", axis.flags.size(), axis.values.size()));
    for (const std::string& flag : axis.flags) {
      digest.add(flag);
    }
    for (const auto& place : axis.values) {
      for (const FlagValue& value : place) {
        add_value(digest, value);
      }
    }
  }
  for (const std::int64_t cell : grid.cells) {
    digest.add({reinterpret_cast<const char*>(&cell), sizeof cell});
  }
  for (const std::string& output : grid.outputs) {
    digest.add(output);
  }
  return digest.hex();
}

/// In place of its bytes.
std::string size_and_time(const fs::path& path) {
  std::error_code ignored;
  return fmt::format("{} {}", fs::file_size(path, ignored),
                     fs::last_write_time(path, ignored).time_since_epoch().count());
}

/// A file's bytes; its size and time where it cannot be read.
std::string digest_of_file(const fs::path& path) {
  try {
    return digest_of(FileText(path.string()).view());
  } catch (const Error&) {
    return size_and_time(path);
  }
}

/// Names and bytes of all files below; beyond so many bytes their sizes and times instead.
std::string digest_of_folder(const fs::path& folder, const fs::path& without) {
  constexpr std::uintmax_t kMostRead = std::uintmax_t{1} << 30;
  std::vector<fs::path> files;
  std::error_code problem;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                      problem);
  for (const fs::recursive_directory_iterator end; !problem && at != end; at.increment(problem)) {
    std::error_code ignored;
    if (fs::equivalent(at->path(), without, ignored)) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(ignored)) {
      files.push_back(at->path());
    }
  }
  std::ranges::sort(files);
  Digest digest;
  std::uintmax_t read = 0;
  for (const fs::path& file : files) {
    std::error_code ignored;
    read += fs::file_size(file, ignored);
    digest.add(file.lexically_relative(folder).string());
    digest.add(read <= kMostRead ? digest_of_file(file) : size_and_time(file));
  }
  return digest.hex();
}

/// What a word may name: all of it, or what stands behind its first '='.
std::vector<std::string> names_in(const std::string& word) {
  const std::size_t equals = word.find('=');
  return equals == std::string::npos ? std::vector<std::string>{word}
                                     : std::vector<std::string>{word, word.substr(equals + 1)};
}

}  // namespace

std::string digest_of_programs() {
  Digest digest;
  digest.add(program_identity());
  const fs::path packet = find_program("lockstep-packet");
  digest.add(packet.empty() ? "" : digest_of_file(packet));
  for (const std::string& place : module_places("liblockstep-parquet.so", "")) {
    digest.add(digest_of_file(place));
  }
  return digest.hex();
}

std::string digest_of_named(const std::string& name, const std::string& output) {
  std::error_code ignored;
  return fs::is_regular_file(name, ignored) ? digest_of_file(name)
         : fs::is_directory(name, ignored)  ? digest_of_folder(name, output)
                                            : "";
}

SweepIdentity identity_of(const Grid& grid, const std::string& output) {
  SweepIdentity identity{
      .grid = digest_of_grid(grid), .program = digest_of_programs(), .files = {}, .uses = {}};
  grid.for_each_value([&](const std::string& flag, const FlagValue& value) {
    if (names_output(grid, flag)) {
      return;
    }
    for (const std::string& word : value) {
      for (const std::string& name : names_in(word)) {
        if (name.empty() || identity.files.contains(name)) {
          continue;
        }
        if (std::string digest = digest_of_named(name, output); !digest.empty()) {
          identity.files[name] = std::move(digest);
        }
      }
    }
  });
  identity.uses = [&grid](std::int64_t point, const std::string& file) {
    const GridPoint words = grid.point(point);
    return std::ranges::any_of(words.inputs, [&](const auto& input) {
      return std::ranges::any_of(input.second, [&](const std::string& word) {
        return std::ranges::count(names_in(word), file) > 0;
      });
    });
  };
  return identity;
}

}  // namespace lockstep
