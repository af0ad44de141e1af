#include "generator/compute/profile_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// All profiles in the folder and below, by name.
std::vector<std::string> profiles_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code problem;
  FileRecord::note_listed(folder);
  fs::recursive_directory_iterator at(folder, problem);
  for (const fs::recursive_directory_iterator end; !problem && at != end; at.increment(problem)) {
    if (std::error_code unknown; at->is_directory(unknown)) {
      FileRecord::note_listed(at->path().string());
    } else if (at->path().string().ends_with(".profile.json")) {
      files.push_back(at->path().string());
    }
  }
  if (problem) {
    throw Error("the folder cannot be read: " + problem.message()).at(folder);
  }
  if (files.empty()) {
    throw Error("there is no profile in it").at(folder).expected("files named *.profile.json");
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

OperatorProfile read_profile_files(const std::string& names) {
  OperatorProfile all;
  std::string first;
  const bool whole = path_exists(names);  // commas are its own
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = whole ? names.size() : std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) {
      throw Error("an empty name").field("--profile").expected("files and folders, with commas");
    }
    for (const std::string& file :
         is_folder(name) ? profiles_below(name) : std::vector<std::string>{name}) {
      const FileText text(file);
      OperatorProfile one = read_profile_json(text.view(), file);
      if (first.empty()) {
        first = file;
        all = std::move(one);
        continue;
      }
      if (one.gpu != all.gpu) {
        throw Error(fmt::format("measured on '{}', {} on '{}'", printable(one.gpu),
                                printable(first), printable(all.gpu)))
            .at(file)
            .field("gpu")
            .expected("profiles of one GPU");
      }
      all.times.insert(one.times.begin(), one.times.end());
    }
  }
  return all;
}

}  // namespace lockstep
