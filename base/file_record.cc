#include "base/file_record.h"

#include <atomic>
#include <filesystem>

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

void FileRecord::note_listed(const std::string& folder) {
  if (FileRecord* record = current) {
    const std::scoped_lock lock(record->mutex_);
    record->files_.listed.insert(folder.empty() ? "." : folder);
  }
}

bool path_exists(const std::string& path) {
  std::error_code problem;
  const bool there = std::filesystem::exists(path, problem);
  if (FileRecord* record = current) {
    const std::scoped_lock lock(record->mutex_);
    record->files_.asked.try_emplace(path, there);
  }
  return there;
}

bool is_folder(const std::string& path) {
  std::error_code problem;
  const bool folder = std::filesystem::is_directory(path, problem);
  if (FileRecord* record = current) {
    const std::scoped_lock lock(record->mutex_);
    record->files_.asked_folder.try_emplace(path, folder);
  }
  return folder;
}

std::string absolute_path(const std::string& path) {
  const std::filesystem::path given(path);
  FileRecord* record = current;
  if (record != nullptr && given.is_relative()) {
    const std::scoped_lock lock(record->mutex_);
    record->files_.place = true;
  }
  return std::filesystem::absolute(given).string();
}

}  // namespace lockstep
