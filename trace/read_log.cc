#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
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

constexpr double kMostSeconds = 9.2e6;  // of 2^63 ps

Error too_long(const char* what, double seconds) {
  return Error(fmt::format("{} of {:g} s", what, seconds))
      .expected("at most 106 days, as far as picoseconds go in 64 bits")
      .hint("a damaged number, or another unit than the format's");
}

/// Takes out collectives that took less than a picosecond, the unit of all times here: their rates
/// may be no numbers.
void drop_no_times(PhysicalLog& log) {
  const auto dropped = std::erase_if(
      log.comms, [](const CommRow& row) { return row.time_s > 0 && row.time_s < 1e-12; });
  for (std::size_t i = 0; i < dropped; ++i) {
    log.warnings.add("collectives of less than a picosecond were passed over");
  }
}

/// ERRORS: a time, or the dates of a log's operations together, that no run has. Dates alone may be
/// large: some count from 1970.
void check_times(const PhysicalLog& log) {
  const auto possible = [](double seconds) { return std::abs(seconds) <= kMostSeconds; };
  for (std::size_t i = 0; i < log.comms.size(); ++i) {
    const CommRow& row = log.comms[i];
    if (!possible(row.time_s)) {
      throw too_long("a collective", row.time_s)
          .at(log.file, static_cast<std::size_t>(std::max<std::int64_t>(row.line, 0)))
          .field(row.line > 0 ? "time" : fmt::format("collective {}: time", i));
    }
  }
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    if (!possible(log.steps[i].time_s)) {
      throw too_long("a step", log.steps[i].time_s)
          .at(log.file)
          .field(fmt::format("step {}: time", log.steps[i].step));
    }
  }
  if (log.ops.empty()) {
    return;
  }
  const auto field = [&](const OpRow& row, const char* what) {
    const auto name = static_cast<std::size_t>(row.name);
    return fmt::format("operation {}{}: {}", &row - log.ops.data(),
                       name < log.names.size() ? " (" + printable(log.names[name]) + ")" : "",
                       what);
  };
  const auto [first, last] = std::ranges::minmax_element(log.ops, {}, &OpRow::begin_s);
  for (const OpRow& row : log.ops) {
    if (!possible(row.duration_s)) {
      throw too_long("an operation", row.duration_s).at(log.file).field(field(row, "duration"));
    }
  }
  if (!possible(last->begin_s - first->begin_s)) {
    const OpRow& wild = std::abs(first->begin_s) > std::abs(last->begin_s) ? *first : *last;
    throw too_long("operations over a time", last->begin_s - first->begin_s)
        .at(log.file)
        .field(field(wild, "begin"));
  }
}

/// Whose kind of log a text is that begins like this; nullptr: nobody's.
const LogReader* reader_of(std::string_view head, const std::string& name) {
  for (const LogReader* reader : log_readers()) {
    if (reader->sniff(head, name)) {
      return reader;
    }
  }
  return nullptr;
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
  const LogReader* reader = reader_of(text.substr(0, kSniffBytes), name);
  if (reader == nullptr && text.size() > kSniffBytes) {
    reader = reader_of(text, name);  // what a job prints before it begins may be long
  }
  if (reader == nullptr) {
    std::string known;
    for (const LogReader* each : log_readers()) {
      known += (known.empty() ? "" : ", ") + std::string(each->name);
    }
    throw Error("this is no kind of log that is known here").at(file).expected(known);
  }
  log.format = reader->name;
  try {
    reader->read(text, log);
  } catch (Error& error) {
    error.locate(file);
    throw;
  }
  check_times(log);
  drop_no_times(log);
  return log;
}

namespace {

/// Refuses what is packed in a way that is not unpacked here.
void check_packing(std::string_view text, const std::string& path) {
  struct Packing {
    std::string_view begin, name, hint;
  };
  constexpr Packing kPackings[] = {
      {"BZh", "bzip2", "bunzip2 unpacks it"},
      {std::string_view("\xFD"
                        "7zXZ",
                        5),
       "xz", "unxz unpacks it"},
      {"\x28\xB5\x2F\xFD", "zstd", "unzstd unpacks it"},
      {"PK\x03\x04", "zip", "unzip unpacks it"},
  };
  for (const Packing& packing : kPackings) {
    if (text.starts_with(packing.begin)) {
      throw Error(fmt::format("the file is packed by {}", packing.name))
          .at(path)
          .expected("plain text, .gz or .tar.gz")
          .hint(std::string(packing.hint));
    }
  }
}

/// The logs of BytePS's trace folder: <folder>/<local rank>/comm.json. ERRORS: there are none.
std::vector<std::string> logs_of_folder(const std::string& path) {
  std::map<std::int64_t, std::string> ranks;
  std::error_code ignored;
  FileRecord::note_listed(path);
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const auto rank = to_int(entry.path().filename().string());
    const std::filesystem::path file = entry.path() / "comm.json";
    if (rank && std::filesystem::is_regular_file(file, ignored)) {
      ranks[*rank] = file.string();
    }
  }
  if (ranks.empty()) {
    throw Error("this is a folder")
        .at(path)
        .expected("logs, or a trace folder of BytePS (0/comm.json …)");
  }
  std::vector<std::string> files;
  files.reserve(ranks.size());
  for (auto& [rank, file] : ranks) {
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::vector<PhysicalLog> read_logs(const std::string& path) {
  if (is_folder(path)) {
    std::vector<PhysicalLog> logs;
    for (const std::string& file : logs_of_folder(path)) {
      for (PhysicalLog& log : read_logs(file)) {
        logs.push_back(std::move(log));
      }
    }
    return logs;
  }
  const UnpackedText file(path);
  const std::string_view text = file.view();
  check_packing(text, path);
  std::vector<PhysicalLog> logs;
  if (!is_tar(text)) {
    logs.push_back(read_log(text, path));
    return logs;
  }
  for (const TarMember& member : tar_members(text, path)) {
    const std::string name = path + ":" + member.name;
    check_packing(member.text, name);
    logs.push_back(is_gzip(member.text) ? read_log(gunzip(member.text, name), name)
                                        : read_log(member.text, name));
  }
  if (logs.empty()) {
    throw Error("the archive holds no files").at(path);
  }
  return logs;
}

}  // namespace lockstep
