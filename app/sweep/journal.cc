#include "app/sweep/journal.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kSchema = "lockstep-sweep-journal/2";
constexpr std::string_view kHeaderBegin = "{\"schema\":";
constexpr const char* kWayOut =
    "choose another output folder, or --restart to throw those rows away";

Json header_of(const SweepIdentity& identity, std::int64_t points) {
  Json files = Json::object();
  for (const auto& [file, digest] : identity.files) {
    files[file] = digest;
  }
  return {{"schema", kSchema},
          {"grid", identity.grid},
          {"points", points},
          {"program", identity.program},
          {"files", std::move(files)}};
}

/// Why these are not our rows; empty where they are, whatever their files.
std::string_view foreign(const Json& header, const Json& ours) {
  if (!header.is_object() || header.value("schema", "") != kSchema) {
    return "the folder holds rows of another version of lockstep, or no rows";
  }
  if (header.value("grid", Json()) != ours["grid"] ||
      header.value("points", Json()) != ours["points"]) {
    return "the folder holds rows of another grid: its command, flags, points or outputs were "
           "others";
  }
  if (header.value("program", Json()) != ours["program"]) {
    return "the folder holds rows of another build of lockstep, or of another lockstep-packet";
  }
  return {};
}

/// The files that are not what they were, those that came or went among them.
std::vector<std::string> changed_files(const Json& before, const SweepIdentity& identity) {
  std::vector<std::string> changed;
  for (const auto& [file, digest] : before.items()) {
    const auto now = identity.files.find(file);
    if (now == identity.files.end() || digest != now->second) {
      changed.push_back(file);
    }
  }
  for (const auto& [file, digest] : identity.files) {
    if (!before.contains(file)) {
      changed.push_back(file);
    }
  }
  return changed;
}

}  // namespace

SweepJournal::SweepJournal(std::string path, const SweepIdentity& identity, std::int64_t points,
                           bool restart)
    : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    fail("cannot open");
  }
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {  // ENOLCK, say: a network's file system without a lock server
        fail("cannot lock");
      }
      throw Error("another sweep writes here")
          .at(path_)
          .hint("wait for it, or choose another output folder");
    }
    struct stat info {};
    if (::fstat(descriptor_, &info) == 0 && !S_ISREG(info.st_mode)) {
      throw Error("the journal is no plain file")
          .at(path_)
          .hint("choose another output folder, or remove it");
    }
    if (restart && ::ftruncate(descriptor_, 0) != 0) {
      fail("cannot empty");
    }
    read(identity, points);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepJournal::~SweepJournal() { ::close(descriptor_); }

const SweepRow* SweepJournal::first_done() const {
  return first_done_ < 0 ? nullptr : &rows_.at(first_done_);
}

void SweepJournal::take(const SweepRow& row) {
  rows_[row.point] = row;
  if (row.ending == Ending::kDone && first_done_ < 0) {
    first_done_ = row.point;
  } else if (row.ending != Ending::kDone && first_done_ == row.point) {
    first_done_ = -1;
  }
}

void SweepJournal::read(const SweepIdentity& identity, std::int64_t points) {
  const FileText text(path_);
  const std::string_view view = text.view();
  const Json ours = header_of(identity, points);
  const std::size_t first_end = view.find('\n');
  if (first_end == std::string_view::npos) {
    if (!ours.dump().starts_with(view)) {
      throw Error("the file is no journal").at(path_).hint(kWayOut);
    }
    if (::ftruncate(descriptor_, 0) != 0) {
      fail("cannot cut");
    }
    append(ours.dump());
    return;
  }
  std::vector<Json> headers{Json::parse(view.substr(0, first_end), nullptr, false)};
  if (const std::string_view why = foreign(headers.front(), ours); !why.empty()) {
    throw Error(std::string(why)).at(path_).hint(kWayOut);
  }
  std::map<std::int64_t, std::size_t> header_of_point;
  for (std::size_t at = first_end + 1; at < view.size();) {
    const std::size_t end = view.find('\n', at);
    const std::string_view line = view.substr(at, end - at);
    const auto row = row_of_line(line);
    if (row && row->point >= 0 && row->point < points) {
      take(*row);
      header_of_point[row->point] = headers.size() - 1;
    } else if (Json header; line.starts_with(kHeaderBegin) && end != std::string_view::npos &&
                            foreign(header = Json::parse(line, nullptr, false), ours).empty()) {
      headers.push_back(std::move(header));
    } else {
      ++damaged_;
    }
    at = end == std::string_view::npos ? view.size() : end + 1;
  }
  drop_changed(identity, headers, header_of_point);
  if (view.back() != '\n') {
    append("");  // ends the torn line
  }
  if (headers.back() != ours) {
    append(ours.dump());
  }
}

/// Of the rows whose points name a file that is another one now.
void SweepJournal::drop_changed(const SweepIdentity& identity, const std::vector<Json>& headers,
                                const std::map<std::int64_t, std::size_t>& header_of) {
  std::vector<std::vector<std::string>> changed;
  changed.reserve(headers.size());
  for (const Json& header : headers) {
    changed.push_back(changed_files(header.value("files", Json::object()), identity));
  }
  for (const auto& [point, header] : header_of) {
    for (const std::string& file : changed[header]) {
      if (!identity.uses || !identity.uses(point, file)) {
        continue;
      }
      if (ended_well(rows_.at(point))) {
        throw Error(fmt::format("the folder holds rows that were computed with another '{}'",
                                printable(file)))
            .at(path_)
            .hint(kWayOut);
      }
      rows_.erase(point);
      break;
    }
  }
}

void SweepJournal::add(const SweepRow& row) {
  append(to_line(row));
  take(row);
}

void SweepJournal::append(std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written < 0 && errno != EINTR) {
      fail("cannot write");
    }
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

void SweepJournal::fail(const char* what) const {
  throw Error(fmt::format("{} the journal: {}", what, std::strerror(errno))).at(path_);
}

}  // namespace lockstep
