#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/gunzip.h"
#include "base/text.h"
#include "trace/log_reader.h"

namespace lockstep {

PhysicalLog read_log(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  if (trim(text.substr(0, kSniffBytes)).empty()) {
    throw Error("the file is empty").at(file).expected("a log of a run");
  }
  PhysicalLog log;
  log.file = file;
  const std::string name = std::filesystem::path(file).filename().string();
  std::string known;
  for (const LogReader* reader : log_readers()) {
    if (reader->sniff(text.substr(0, kSniffBytes), name)) {
      log.format = reader->name;
      try {
        reader->read(text, log);
      } catch (Error& error) {
        error.locate(file);
        throw;
      }
      return log;
    }
    known += (known.empty() ? "" : ", ") + std::string(reader->name);
  }
  throw Error("this is no kind of log that is known here").at(file).expected(known);
}

std::vector<PhysicalLog> read_logs(const std::string& path) {
  const FileText file(path);
  std::string unpacked;
  std::string_view text = file.view();
  if (is_gzip(text)) {
    unpacked = gunzip(text, path);
    text = unpacked;
  }
  std::vector<PhysicalLog> logs;
  if (!is_tar(text)) {
    logs.push_back(read_log(text, path));
    return logs;
  }
  for (const TarMember& member : tar_members(text, path)) {
    logs.push_back(read_log(member.text, path + ":" + member.name));
  }
  if (logs.empty()) {
    throw Error("the archive holds no files").at(path);
  }
  return logs;
}

}  // namespace lockstep
