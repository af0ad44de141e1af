#include "app/sweep/journal.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"

namespace lockstep {
namespace {

constexpr std::string_view kSchema = "lockstep-sweep-journal/1";

}  // namespace

SweepJournal::SweepJournal(std::string path, const std::string& identity, std::int64_t points)
    : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    fail("cannot open");
  }
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      throw Error("another sweep writes here")
          .at(path_)
          .hint("wait for it, or choose another output folder");
    }
    read(identity, points);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepJournal::~SweepJournal() { ::close(descriptor_); }

void SweepJournal::read(const std::string& identity, std::int64_t points) {
  const FileText text(path_);
  const std::string_view view = text.view();
  const Json header{{"schema", kSchema}, {"identity", identity}, {"points", points}};
  const std::size_t first_end = view.find('\n');
  if (first_end == std::string_view::npos) {
    if (::ftruncate(descriptor_, 0) != 0) {
      fail("cannot cut");
    }
    append(header.dump());
    return;
  }
  if (Json::parse(view.substr(0, first_end), nullptr, false) != header) {
    throw Error("the folder holds rows of another grid, other inputs or another version")
        .at(path_)
        .hint("choose another output folder, or --restart to throw those rows away");
  }
  for (std::size_t at = first_end + 1; at < view.size();) {
    const std::size_t end = view.find('\n', at);
    const auto row = row_of_line(view.substr(at, end - at));
    if (row && row->point >= 0 && row->point < points) {
      rows_[row->point] = *row;
    } else {
      ++damaged_;
    }
    at = end == std::string_view::npos ? view.size() : end + 1;
  }
  if (view.back() != '\n') {
    append("");  // ends the torn line
  }
}

void SweepJournal::add(const SweepRow& row) {
  append(to_line(row));
  rows_[row.point] = row;
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
