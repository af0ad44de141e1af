#include "base/kept_inputs.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

using FileId = std::pair<dev_t, ino_t>;

struct KeptFiles {
  std::atomic<bool> on{false};
  std::mutex mutex;
  std::map<FileId, std::string> read;  // by which name
  std::set<FileId> own;
};

KeptFiles& files() {
  static KeptFiles files;
  return files;
}

FileId id_of(const struct stat& info) { return {info.st_dev, info.st_ino}; }

bool regular_file(const std::string& path, struct stat& info) {
  const int known = path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info);
  return known == 0 && S_ISREG(info.st_mode);
}

}  // namespace

void keep_inputs() {
  KeptFiles& known = files();
  const std::scoped_lock lock(known.mutex);
  known.read.clear();
  known.own.clear();
  known.on = true;
}

void note_input(const std::string& path, const struct stat& info) {
  KeptFiles& known = files();
  if (!known.on || !S_ISREG(info.st_mode)) {
    return;
  }
  std::string name = path == "-" ? path : std::filesystem::absolute(path).string();
  const std::scoped_lock lock(known.mutex);
  if (!known.own.contains(id_of(info))) {
    known.read.insert_or_assign(id_of(info), std::move(name));
  }
}

void note_own_output(const struct stat& info) {
  KeptFiles& known = files();
  if (known.on && S_ISREG(info.st_mode)) {
    const std::scoped_lock lock(known.mutex);
    known.own.insert(id_of(info));
    known.read.erase(id_of(info));  // a number given anew
  }
}

void release_input(const std::string& path) {
  struct stat info {};
  KeptFiles& known = files();
  if (known.on && regular_file(path, info)) {
    const std::scoped_lock lock(known.mutex);
    known.read.erase(id_of(info));
  }
}

void hold_input(const std::string& path) {
  struct stat info {};
  KeptFiles& known = files();
  if (known.on && regular_file(path, info)) {
    const std::scoped_lock lock(known.mutex);
    known.own.erase(id_of(info));
    known.read.insert_or_assign(id_of(info), std::filesystem::absolute(path).string());
  }
}

void refuse_input(const std::string& path) {
  struct stat info {};
  KeptFiles& known = files();
  if (!known.on || path == "-" || !regular_file(path, info)) {
    return;
  }
  const FileId id = id_of(info);
  const std::scoped_lock lock(known.mutex);
  const auto found = known.read.find(id);
  // Once a file has gone another one may have its number.
  if (found == known.read.end() || !regular_file(found->second, info) || id_of(info) != id) {
    return;
  }
  throw Error("is also an input: it would be lost").at(path).hint("write to another file");
}

void refuse_own_output(const std::string& path) {
  struct stat info {};
  KeptFiles& known = files();
  if (!known.on || path == "-" || !regular_file(path, info)) {
    return;
  }
  const std::scoped_lock lock(known.mutex);
  if (known.own.contains(id_of(info))) {
    throw Error("is also another output of this command").at(path).hint("write to another file");
  }
}

}  // namespace lockstep
