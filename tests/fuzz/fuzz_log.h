#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "trace/log_reader.h"

namespace lockstep::testing {

/// Any bytes, given to the reader of this name and to the one that knows them by their content,
/// give rows that hold what they promise, or one Error.
inline int fuzz_log(std::string_view reader_name, const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const PhysicalLog& log) {
    for (const CommRow& row : log.comms) {
      LOCKSTEP_CHECK(static_cast<std::size_t>(row.setting) < log.settings.size(), "a setting");
      LOCKSTEP_CHECK(static_cast<std::size_t>(row.name) < log.names.size(), "a name");
      LOCKSTEP_CHECK(row.group < 0 || static_cast<std::size_t>(row.group) < log.groups.size(),
                     "a group");
      LOCKSTEP_CHECK(std::isfinite(row.time_s) && row.time_s >= 0 && row.ranks >= 0, "a time");
      LOCKSTEP_CHECK(row.bytes >= Bytes(), "a size");
    }
    for (const OpRow& row : log.ops) {
      LOCKSTEP_CHECK(static_cast<std::size_t>(row.name) < log.names.size(), "a name");
      LOCKSTEP_CHECK(row.group < 0 || static_cast<std::size_t>(row.group) < log.groups.size(),
                     "a group");
      LOCKSTEP_CHECK(
          std::isfinite(row.begin_s) && std::isfinite(row.duration_s) && row.duration_s >= 0,
          "a time");
    }
    for (const StepRow& row : log.steps) {
      LOCKSTEP_CHECK(std::isfinite(row.time_s) && row.time_s >= 0, "a step's time");
    }
  };
  bool found = false;
  for (const LogReader* reader : log_readers()) {
    if (reader->name != reader_name) {
      continue;
    }
    found = true;
    try {
      PhysicalLog log;
      log.file = "fuzz-n2g4.txt";
      reader->read(text, log);
      check(log);
    } catch (const Error&) {
      continue;
    }
  }
  LOCKSTEP_CHECK(found, "the reader's name");
  try {
    check(read_log(text, "fuzz"));
  } catch (const Error&) {
    return 0;
  }
  return 0;
}

}  // namespace lockstep::testing
