#pragma once

#include <string>

#include "trace/log_reader.h"

namespace lockstep::testing {

/// A small log that is written by hand, of tests/fuzz/corpus.
inline PhysicalLog corpus(const std::string& name) {
  return read_logs(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/" + name).at(0);
}

inline const std::string& name_of(const PhysicalLog& log, const OpRow& row) {
  return log.names.at(static_cast<std::size_t>(row.name));
}

}  // namespace lockstep::testing
