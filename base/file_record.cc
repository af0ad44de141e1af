#include "base/file_record.h"

#include <atomic>

#include "base/error.h"

namespace lockstep {
namespace {

std::atomic<FileRecord*> current{nullptr};

}  // namespace

FileRecord::FileRecord() {
  FileRecord* none = nullptr;
  LOCKSTEP_CHECK(current.compare_exchange_strong(none, this), "two records of files at once");
}

FileRecord::~FileRecord() { current = nullptr; }

FileRecord::Files FileRecord::files() const {
  const std::scoped_lock lock(mutex_);
  return files_;
}

void FileRecord::note_read(const std::string& path) {
  if (FileRecord* record = current) {
    const std::scoped_lock lock(record->mutex_);
    record->files_.read.insert(path);
  }
}

void FileRecord::note_written(const std::string& path) {
  if (FileRecord* record = current) {
    const std::scoped_lock lock(record->mutex_);
    record->files_.written.insert(path);
  }
}

}  // namespace lockstep
