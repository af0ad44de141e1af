#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/warnings.h"
#include "trace/column_table.h"
#include "trace/read_trace.h"
#include "trace/trace.h"

namespace lockstep {

/// What the loadable module liblockstep-parquet.so offers. Apache Arrow, which it needs, is large
/// and comes from outside the distribution; so nothing else is linked with it, and a program
/// without it can do all but Parquet.
struct ParquetModule {
  void (*read)(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
               Warnings* warnings);
  std::int64_t (*rows)(std::string_view bytes, const std::string& file);
  std::string (*write)(const Trace& trace);              ///< the bytes of a file
  std::string (*write_table)(const ColumnTable& table);  ///< the bytes of a file
};

/// The name of the one object the module exports, with C linkage.
inline constexpr const char* kParquetModuleSymbol = "lockstep_parquet_module";

/// Loads the module: from the folder of the program, ../lib/lockstep beside that, or where it was
/// built. Loaded once.
/// ERRORS: Error with ExitCode::kMissingPart that says why it cannot be loaded.
const ParquetModule& parquet_module();

// Within the module alone:
void read_parquet(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
                  Warnings* warnings);
std::int64_t rows_of_parquet(std::string_view bytes, const std::string& file);
std::string to_parquet_bytes(const Trace& trace);
std::string to_parquet_table(const ColumnTable& table);

}  // namespace lockstep
