#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/warnings.h"
#include "trace/trace.h"

namespace lockstep {

/// What readers do with rows as they come: chunks of some 10^4 to 10^6 rows, in the file's order.
using TraceChunk = std::function<void(Trace&&)>;

/// Reads a trace by its name: .parquet or .csv. The columns are found by name; any
/// order of columns and of rows, and further columns, are fine.
///
/// Times of 64 bits are rounded to 32, with a warning that counts those that
/// change. No other value is mended.
/// ERRORS: unreadable file, missing columns (all named), nulls, values of the wrong type or range
/// (the first, with its row), unknown optypes; check_rows. For .parquet where Arrow is
/// missing: Error with ExitCode::kMissingPart.
Trace read_trace(const std::string& path, Warnings* warnings = nullptr);

/// The same, chunk by chunk; rows are checked. For traces that do not fit into memory as a whole.
void read_trace(const std::string& path, const TraceChunk& chunk, Warnings* warnings = nullptr);

/// How many rows the file has, if it says so without being read (.parquet).
/// ERRORS: those of read_trace that show before the rows.
std::optional<std::int64_t> told_rows(const std::string& path);

/// The readers themselves, over text (of a .csv) and the bytes of a .parquet; `file` is for
/// messages.
void read_trace_csv(std::string_view text, const std::string& file, const TraceChunk& chunk,
                    Warnings* warnings = nullptr);
void read_trace_parquet(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
                        Warnings* warnings = nullptr);

/// Writes a trace by its name, .parquet or .csv; read_trace gives it back equal.
/// ERRORS: those of AtomicFile; unknown ending; .parquet where Arrow is missing.
void write_trace(const Trace& trace, const std::string& path);

/// Whether Parquet can be read and written here.
bool has_parquet();
/// ERRORS: Error with ExitCode::kMissingPart that says why not.
void require_parquet();

}  // namespace lockstep
