#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/gunzip.h"
#include "base/text.h"
#include "trace/log_line.h"
#include "trace/log_reader.h"

namespace lockstep {

namespace {

/// Whether a text has been written for a terminal.
bool is_coloured(std::string_view text) {
  text = text.substr(0, kSniffBytes);
  return text.find("\x1b[") != std::string_view::npos &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 9; });
}

}  // namespace

PhysicalLog read_log(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw Error("the text is in UTF-16")
        .at(file)
        .expected("UTF-8")
        .hint("iconv -f UTF-16 -t UTF-8");
  }
  std::string plain;
  if (is_coloured(text)) {
    plain = without_colours(text);
    text = plain;
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
