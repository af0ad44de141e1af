#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include "base/input_limit.h"
#include "base/produce_in_order.h"
#include "base/text.h"
#include "trace/parquet/module.h"
#include "trace/trace_columns.h"

namespace lockstep {
namespace {

using ArrowType = arrow::Type;

/// Arrow's answer, or our Error with its message.
template <class T>
T take(arrow::Result<T> result, const std::string& file) {
  if (!result.ok()) {
    throw Error(printable(result.status().message(), 300)).at(file).expected("a Parquet file");
  }
  return std::move(result).ValueUnsafe();
}

void require(const arrow::Status& status, const std::string& file) {
  if (!status.ok()) {
    throw Error(printable(status.message(), 300)).at(file).expected("a Parquet file");
  }
}

class BatchReader {
 public:
  BatchReader(const std::string& file, std::size_t first_row, TraceRepairs& repairs)
      : file_(file), first_row_(first_row), repairs_(repairs) {}

  Trace read(const arrow::RecordBatch& batch) {
    for (std::size_t c = 0; c < kTraceColumns.size(); ++c) {
      const auto array = batch.GetColumnByName(std::string(kTraceColumns[c]));
      LOCKSTEP_CHECK(array != nullptr, "a column that was there");
      if (!may_be_absent(kTraceColumns[c])) {
        require_no_nulls(*array, kTraceColumns[c]);
      }
    }
    const auto column = [&batch](TraceColumn c) {
      return batch.GetColumnByName(std::string(kTraceColumns[c]));
    };
    Trace rows;
    rows.dp_rank = whole<std::int32_t>(*column(kDpRankColumn), kTraceColumns[kDpRankColumn]);
    rows.stage = whole<std::int32_t>(*column(kStageColumn), kTraceColumns[kStageColumn]);
    rows.rank = whole<std::int32_t>(*column(kRankColumn), kTraceColumns[kRankColumn]);
    rows.step = whole<std::int64_t>(*column(kStepColumn), kTraceColumns[kStepColumn]);
    rows.optype = op_types(*column(kOptypeColumn));
    rows.start_s = seconds(*column(kStartColumn), kTraceColumns[kStartColumn]);
    rows.duration_s = seconds(*column(kDurationColumn), kTraceColumns[kDurationColumn]);
    rows.seq_id = whole<std::int32_t>(*column(kSeqIdColumn), kTraceColumns[kSeqIdColumn]);
    rows.mc = whole<std::int32_t>(*column(kMcColumn), kTraceColumns[kMcColumn]);
    rows.mb_id = whole<std::int32_t>(*column(kMbIdColumn), kTraceColumns[kMbIdColumn]);
    rows.gmc = whole<std::int32_t>(*column(kGmcColumn), kTraceColumns[kGmcColumn]);
    const std::array<std::vector<std::int32_t>*, kTraceRankColumns.size()> ranks = {
        &rows.extra.tp_rank, &rows.extra.cp_rank, &rows.extra.ep_rank};
    for (std::size_t c = 0; c < ranks.size(); ++c) {
      if (const auto array = batch.GetColumnByName(std::string(kTraceRankColumns[c]))) {
        require_no_nulls(*array, kTraceRankColumns[c]);
        *ranks[c] = whole<std::int32_t>(*array, kTraceRankColumns[c]);
      }
    }
    const std::array<std::vector<float>*, kTraceTimeColumns.size()> times = {
        &rows.extra.alone_s, &rows.extra.undisturbed_s};
    for (std::size_t c = 0; c < times.size(); ++c) {
      if (const auto array = batch.GetColumnByName(std::string(kTraceTimeColumns[c]))) {
        require_no_nulls(*array, kTraceTimeColumns[c]);
        *times[c] = seconds(*array, kTraceTimeColumns[c]);
      }
    }
    return rows;
  }

 private:
  void require_no_nulls(const arrow::Array& array, std::string_view column) const {
    if (array.null_count() == 0) {
      return;
    }
    std::int64_t row = 0;
    while (row < array.length() && !array.IsNull(row)) {
      ++row;
    }
    throw Error(fmt::format("row {}: the value is missing (null)",
                            first_row_ + static_cast<std::size_t>(row) + 1))
        .at(file_)
        .field(column);
  }

  Error wrong_type(const arrow::Array& array, std::string_view column, const char* expected) const {
    return Error(fmt::format("the column is of type {}", array.type()->ToString()))
        .at(file_)
        .field(column)
        .expected(expected);
  }

  Error unknown_optype_at(std::string_view name, std::size_t row) const {
    return unknown_optype(name).at(fmt::format("{}: row {}", file_, first_row_ + row + 1));
  }

  [[noreturn]] void no_whole_number(std::int64_t row, double value, std::string_view column) const {
    throw Error(fmt::format("row {}: {} is no such value",
                            first_row_ + static_cast<std::size_t>(row) + 1, value))
        .at(file_)
        .field(column)
        .expected("a whole number");
  }

  template <class To, class Array>
  std::vector<To> copy(const arrow::Array& array, std::string_view column) {
    const auto& typed = static_cast<const Array&>(array);
    const auto* values = typed.raw_values();
    const auto count = static_cast<std::size_t>(array.length());
    std::vector<To> out(count);
    bool fits = true;
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<To>(values[i]);
      fits = fits && std::in_range<To>(values[i]);
    }
    take_nulls_as_absent(array, out);
    for (std::int64_t i = 0; !fits && i < array.length(); ++i) {
      if (array.IsValid(i) && !std::in_range<To>(values[i])) {
        no_whole_number(i, static_cast<double>(values[i]), column);
      }
    }
    return out;
  }

  /// Of a column of floating-point numbers, as a table has that once lacked values.
  template <class To, class Array>
  std::vector<To> whole_floats(const arrow::Array& array, std::string_view column) {
    const auto* values = static_cast<const Array&>(array).raw_values();
    std::vector<To> out(static_cast<std::size_t>(array.length()));
    for (std::int64_t i = 0; i < array.length(); ++i) {
      const auto value = static_cast<double>(values[i]);
      if (array.IsNull(i)) {
        continue;
      }
      if (std::isnan(value) && may_be_absent(column)) {
        out[static_cast<std::size_t>(i)] = -1;
        ++repairs_.absent;
        continue;
      }
      const auto whole = whole_number<To>(value);
      if (!whole) {
        no_whole_number(i, value, column);
      }
      out[static_cast<std::size_t>(i)] = *whole;
      ++repairs_.floats;
    }
    take_nulls_as_absent(array, out);
    return out;
  }

  /// PRECONDITION: there are none, or the column may_be_absent.
  template <class To>
  void take_nulls_as_absent(const arrow::Array& array, std::vector<To>& out) {
    if (array.null_count() == 0) {
      return;
    }
    for (std::int64_t i = 0; i < array.length(); ++i) {
      if (array.IsNull(i)) {
        out[static_cast<std::size_t>(i)] = -1;
        ++repairs_.absent;
      }
    }
  }

  template <class To>
  std::vector<To> whole(const arrow::Array& array, std::string_view column) {
    switch (array.type_id()) {
      case ArrowType::INT8:
        return copy<To, arrow::Int8Array>(array, column);
      case ArrowType::INT16:
        return copy<To, arrow::Int16Array>(array, column);
      case ArrowType::INT32:
        return copy<To, arrow::Int32Array>(array, column);
      case ArrowType::INT64:
        return copy<To, arrow::Int64Array>(array, column);
      case ArrowType::UINT8:
        return copy<To, arrow::UInt8Array>(array, column);
      case ArrowType::UINT16:
        return copy<To, arrow::UInt16Array>(array, column);
      case ArrowType::UINT32:
        return copy<To, arrow::UInt32Array>(array, column);
      case ArrowType::UINT64:
        return copy<To, arrow::UInt64Array>(array, column);
      case ArrowType::FLOAT:
        return whole_floats<To, arrow::FloatArray>(array, column);
      case ArrowType::DOUBLE:
        return whole_floats<To, arrow::DoubleArray>(array, column);
      case ArrowType::NA: {
        std::vector<To> out(static_cast<std::size_t>(array.length()));
        take_nulls_as_absent(array, out);
        return out;
      }
      default:
        throw wrong_type(array, column, "a column of whole numbers");
    }
  }

  std::vector<float> seconds(const arrow::Array& array, std::string_view column) {
    const auto count = static_cast<std::size_t>(array.length());
    if (array.type_id() == ArrowType::FLOAT) {
      const float* values = static_cast<const arrow::FloatArray&>(array).raw_values();
      return {values, values + count};
    }
    if (array.type_id() == ArrowType::DOUBLE) {
      const double* values = static_cast<const arrow::DoubleArray&>(array).raw_values();
      std::vector<float> out(count);
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<float>(values[i]);
        repairs_.narrowed += static_cast<double>(out[i]) != values[i] ? 1 : 0;
      }
      return out;
    }
    throw wrong_type(array, column, "float or double, seconds");
  }

  /// The types a dictionary's entries stand for; -1 where none is meant.
  template <class Strings>
  static std::vector<int> names(const Strings& strings) {
    std::vector<int> out;
    for (std::int64_t i = 0; i < strings.length(); ++i) {
      const auto type = strings.IsNull(i) ? std::nullopt : trace_op_named(strings.GetView(i));
      out.push_back(type ? static_cast<int>(*type) : -1);
    }
    return out;
  }

  template <class Strings>
  std::vector<TraceOp> coded(const arrow::DictionaryArray& array, const Strings& entries) {
    const std::vector<int> types = names(entries);
    std::vector<TraceOp> out(static_cast<std::size_t>(array.length()));
    const std::vector<std::int64_t> codes =
        whole<std::int64_t>(*array.indices(), kTraceColumns[kOptypeColumn]);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto code = static_cast<std::size_t>(codes[i]);
      if (code >= types.size()) {
        throw Error("an optype that is not in the dictionary").at(file_).field("optype");
      }
      if (types[code] < 0) {
        throw unknown_optype_at(
            entries.IsNull(codes[i]) ? std::string_view("null") : entries.GetView(codes[i]), i);
      }
      out[i] = static_cast<TraceOp>(types[code]);
    }
    return out;
  }

  template <class Strings>
  std::vector<TraceOp> plain(const Strings& strings) const {
    std::vector<TraceOp> out(static_cast<std::size_t>(strings.length()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::string_view name = strings.GetView(static_cast<std::int64_t>(i));
      const auto type = trace_op_named(name);
      if (!type) {
        throw unknown_optype_at(name, i);
      }
      out[i] = *type;
    }
    return out;
  }

  // Bytes that nothing says to be text are text all the same, as some writers leave that out.
  static bool is_text(const arrow::Array& array) {
    return array.type_id() == ArrowType::STRING || array.type_id() == ArrowType::BINARY;
  }
  static bool is_large_text(const arrow::Array& array) {
    return array.type_id() == ArrowType::LARGE_STRING || array.type_id() == ArrowType::LARGE_BINARY;
  }

  std::vector<TraceOp> op_types(const arrow::Array& array) {
    if (is_text(array)) {
      return plain(static_cast<const arrow::BinaryArray&>(array));
    }
    if (is_large_text(array)) {
      return plain(static_cast<const arrow::LargeBinaryArray&>(array));
    }
    if (array.type_id() == ArrowType::DICTIONARY) {
      const auto& coded_array = static_cast<const arrow::DictionaryArray&>(array);
      const auto& entries = *coded_array.dictionary();
      if (is_text(entries)) {
        return coded(coded_array, static_cast<const arrow::BinaryArray&>(entries));
      }
      if (is_large_text(entries)) {
        return coded(coded_array, static_cast<const arrow::LargeBinaryArray&>(entries));
      }
    }
    throw wrong_type(array, kTraceColumns[kOptypeColumn], "text");
  }

  const std::string& file_;
  std::size_t first_row_;
  TraceRepairs& repairs_;
};

/// Whether Arrow can take a column of text as codes, which is faster: not of the delta encodings,
/// which other writers use.
bool has_codes(const parquet::FileMetaData& file, const std::vector<int>& groups, int column) {
  return std::ranges::none_of(groups, [&](int group) {
    const auto encodings = file.RowGroup(group)->ColumnChunk(column)->encodings();
    return std::ranges::any_of(encodings, [](parquet::Encoding::type encoding) {
      return encoding == parquet::Encoding::DELTA_LENGTH_BYTE_ARRAY ||
             encoding == parquet::Encoding::DELTA_BYTE_ARRAY;
    });
  });
}

/// Reads parts of one file; several threads may, each with its own.
class FileReader {
 public:
  explicit FileReader(std::string_view bytes, const std::string& file,
                      std::shared_ptr<parquet::FileMetaData> metadata = nullptr)
      : file_(file),
        // Arrow's own allocator takes memory by huge pages, and clears them all.
        parquet_(parquet::ParquetFileReader::Open(
            std::make_shared<arrow::io::BufferReader>(
                std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<std::int64_t>(bytes.size()))),
            parquet::ReaderProperties(arrow::system_memory_pool()), std::move(metadata))) {}

  std::shared_ptr<parquet::FileMetaData> metadata() const { return parquet_->metadata(); }

  /// Reads the columns of some row groups, once. `take` gets the rows of each batch, checked;
  /// `row`: how many rows of the file came before.
  template <class Take>
  void read(const std::vector<int>& groups, const std::vector<int>& wanted, std::size_t row,
            TraceRepairs& repairs, Take&& take_rows) {
    constexpr std::int64_t kBatchRows = 1 << 17;
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_read_dictionary(wanted[kOptypeColumn],
                                   has_codes(*metadata(), groups, wanted[kOptypeColumn]));
    properties.set_batch_size(kBatchRows);
    properties.set_pre_buffer(false);
    const std::unique_ptr<parquet::arrow::FileReader> reader =
        take(parquet::arrow::FileReader::Make(arrow::system_memory_pool(), std::move(parquet_),
                                              properties),
             file_);
    const auto batches = take(reader->GetRecordBatchReader(groups, wanted), file_);
    for (;;) {
      std::shared_ptr<arrow::RecordBatch> batch;
      require(batches->ReadNext(&batch), file_);
      if (batch == nullptr) {
        return;
      }
      require(batch->Validate(), file_);
      Trace rows = BatchReader(file_, row, repairs).read(*batch);
      check_rows(rows, file_, row);
      row += rows.size();
      take_rows(std::move(rows));
    }
  }

 private:
  const std::string& file_;
  std::unique_ptr<parquet::ParquetFileReader> parquet_;
};

/// Row groups on several threads; their rows come in the file's order all the same.
void read_in_parallel(std::string_view bytes, const std::string& file,
                      const std::shared_ptr<parquet::FileMetaData>& metadata,
                      const std::vector<int>& wanted, const TraceChunk& chunk,
                      TraceRepairs& repairs) {
  constexpr std::size_t kMostThreads = 8, kAhead = 4;  // batches
  const auto groups = static_cast<std::size_t>(metadata->num_row_groups());
  std::vector<std::size_t> first_row(groups + 1, 0);
  for (std::size_t g = 0; g < groups; ++g) {
    first_row[g + 1] = first_row[g] + static_cast<std::size_t>(
                                          metadata->RowGroup(static_cast<int>(g))->num_rows());
  }
  std::vector<TraceRepairs> own(groups);
  produce_in_order<Trace>(
      groups, std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads), kAhead,
      [&](std::size_t g, auto&& emit) {
        FileReader(bytes, file, metadata)
            .read({static_cast<int>(g)}, wanted, first_row[g], own[g], emit);
      },
      chunk);
  for (const TraceRepairs& each : own) {
    repairs.narrowed += each.narrowed;
    repairs.floats += each.floats;
    repairs.absent += each.absent;
  }
}

void read(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
          Warnings* warnings) {
  FileReader reader(bytes, file);
  const auto metadata = reader.metadata();
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(metadata->schema()->num_columns()));
  for (int i = 0; i < metadata->schema()->num_columns(); ++i) {
    names.push_back(metadata->schema()->Column(i)->path()->ToDotString());
  }
  // What is repeated takes no room in the file: a million rows may come from a few bytes. Rows may
  // take more than a file: 300 million operations of a trace are 13 GB, and not too many.
  constexpr std::int64_t kRowBytes = 11 * sizeof(std::int32_t);
  const Bytes most(4 * std::min(input_limit().count(), std::int64_t{1} << 60));
  if (metadata->num_rows() > most.count() / kRowBytes) {
    throw input_too_large(file, "the rows of the file take", most);
  }
  const auto columns = find_trace_columns(names, file);
  std::vector<int> wanted(columns.begin(), columns.end());  // those of kTraceColumns first
  for (const int column : find_trace_rank_columns(names, file)) {
    if (column >= 0) {
      wanted.push_back(column);
    }
  }
  for (const int column : find_trace_time_columns(names, file)) {
    if (column >= 0) {
      wanted.push_back(column);
    }
  }
  constexpr std::int64_t kWorthThreads = 4'000'000;  // rows
  TraceRepairs repairs;
  if (metadata->num_rows() >= kWorthThreads) {
    read_in_parallel(bytes, file, metadata, wanted, chunk, repairs);
  } else {
    std::vector<int> groups(static_cast<std::size_t>(metadata->num_row_groups()));
    std::iota(groups.begin(), groups.end(), 0);
    reader.read(groups, wanted, 0, repairs, chunk);
  }
  report_repairs(repairs, file, warnings);
}

}  // namespace

std::int64_t rows_of_parquet(std::string_view bytes, const std::string& file) {
  try {
    return FileReader(bytes, file).metadata()->num_rows();
  } catch (const parquet::ParquetException& problem) {
    throw Error(printable(problem.what(), 300)).at(file).expected("a Parquet file");
  }
}

void read_parquet(std::string_view bytes, const std::string& file, const TraceChunk& chunk,
                  Warnings* warnings) {
  try {
    read(bytes, file, chunk, warnings);
  } catch (const parquet::ParquetException& problem) {
    throw Error(printable(problem.what(), 300)).at(file).expected("a Parquet file");
  }
}

}  // namespace lockstep
