#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trace/physical_log.h"

namespace lockstep {

/// A reader of one kind of log: one file in trace/readers.
struct LogReader {
  std::string_view name;     ///< "nccl-tests"
  std::string_view summary;  ///< one line
  /// Whether a file that begins like this is of this kind. `head` is the first kSniffBytes of the
  /// text, or all of it where that is shorter or told no reader anything.
  bool (*sniff)(std::string_view head, std::string_view file_name);
  /// Fills in the rows. What it cannot understand it counts in log.warnings; a file of which
  /// nothing can be used is an Error.
  void (*read)(std::string_view text, PhysicalLog& log);
};

inline constexpr std::size_t kSniffBytes = std::size_t{256} << 10;

/// All readers, by file name.
std::span<const LogReader* const> log_readers();

/// Reads what a log holds, by its content: packed files (.gz) are unpacked, each file of a .tar.gz
/// is a log; of a trace folder of BytePS each rank's comm.json. ERRORS: unreadable file; a kind of
/// file that no reader knows, with the kinds that are known; the reader's own.
std::vector<PhysicalLog> read_logs(const std::string& path);

/// The same of a text. `file`: for messages, and for what its name tells ("…-n2g8…").
PhysicalLog read_log(std::string_view text, const std::string& file);

}  // namespace lockstep
