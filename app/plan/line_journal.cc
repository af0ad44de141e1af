#include "app/plan/line_journal.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_fence.h"
#include "base/kept_inputs.h"

namespace lockstep {

std::map<std::string, Json> read_line_journal(std::string_view text, const std::string& file,
                                              const JournalKind& kind, std::string_view problem) {
  std::map<std::string, Json> known;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      break;  // cut off while it was written
    }
    const std::string_view words = text.substr(0, end);
    text.remove_prefix(end + 1);
    try {
      Json json = parse_json(words, file);
      const JsonView line(json, file);
      if (number > 1) {
        kind.check(line);
        std::string key = line[kind.key].string();
        known.insert_or_assign(std::move(key), std::move(json));
      } else if (line["schema"].string() != kind.schema) {
        throw Error("this is no journal of such a search")
            .expected(fmt::format("schema {}", kind.schema));
      } else if (line["problem"].string() != problem) {
        throw Error("what it keeps is of another problem").hint("--resume with a file of its own");
      }
    } catch (Error& error) {
      error.locate(file, number);
      error.add_context(fmt::format("in line {} of the journal", number));
      throw;
    }
  }
  return known;
}

LineJournal::LineJournal(std::string path, const JournalKind& kind, std::string problem)
    : path_(std::move(path)), kind_(kind) {
  if (path_.empty()) {
    return;
  }
  const std::string first = Json{{"schema", kind.schema}, {"problem", problem}}.dump();
  std::error_code unknown;  // told when it is opened
  if (std::filesystem::exists(path_, unknown)) {
    const FileText text(path_);
    const std::string_view all = text.view();
    known_ = read_line_journal(all, path_, kind, problem);
    if (all.find('\n') == std::string_view::npos && !first.starts_with(all)) {
      throw Error("this is no journal of such a search")  // one line without its end
          .at(path_)
          .hint("--resume with a file of its own");
    }
    if (!all.empty() && all.back() != '\n') {  // take the unfinished end off
      release_input(path_);
      write_file(path_, all.substr(0, all.rfind('\n') + 1));
    }
    if (all.find('\n') != std::string_view::npos) {
      hold_input(path_);
      return;
    }
  }
  append(first);
  hold_input(path_);
}

std::optional<Json> LineJournal::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void LineJournal::add(const std::string& key, Json line) {
  line[std::string(kind_.key)] = key;
  const std::lock_guard lock(mutex_);
  if (!path_.empty()) {
    append(line.dump());
  }
  known_.insert_or_assign(key, std::move(line));
}

void LineJournal::append(const std::string& line) const {
  const std::string text = line + "\n";
  refuse_writing_outside(path_);
  errno = 0;
  std::FILE* file = std::fopen(path_.c_str(), "ab");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int problem = errno;
  if (file != nullptr && std::fclose(file) != 0 && good) {
    good = false;
    problem = errno;
  }
  if (!good) {
    throw Error(fmt::format("cannot write: {}", std::strerror(problem))).at(path_);
  }
}

}  // namespace lockstep
