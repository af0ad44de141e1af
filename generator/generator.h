#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "generator/argparse.h"
#include "generator/block_writer.h"

namespace lockstep {

/// What a generator is asked for.
struct GenerateRequest {
  std::vector<std::string> words;  ///< its command line
  std::string folder = ".";        ///< file names among the words are relative to it
  bool script_compat = false;      ///< `words` are those of AICB's script
};

/// A workload about to be written. All checks are done: write() fails only where writing does.
struct GeneratedWorkload {
  std::string file_name;  ///< AICB's own, without folders
  std::function<void(BlockWriter&)> write;
  Warnings warnings;
};

/// One of AICB's workload generators: one file in generator/frameworks.
struct Generator {
  std::string_view name;
  std::string_view summary;  ///< one line
  std::string_view format;   ///< of what it writes: simai, csv, vidur
  const ArgTable& (*flags)();
  /// ERRORS: Error about a flag or a file.
  GeneratedWorkload (*generate)(const GenerateRequest& request);
};

/// All generators, by file name.
std::span<const Generator* const> generators();
/// ERRORS: no such generator, with the nearest.
const Generator& generator_named(std::string_view name);

/// `name` below `folder`, unless it is absolute or "-".
std::string path_in(const std::string& folder, const std::string& name);

/// A whole workload as text, for tests and small workloads.
std::string to_text(const GeneratedWorkload& workload);

}  // namespace lockstep
