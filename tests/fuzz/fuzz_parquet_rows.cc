// Bytes that say what a Parquet file holds and how it is laid out, so that what is tried is a file
// that Arrow can open: types of the columns, values, nulls, pages, encodings, and at last some
// bytes of the file that are changed. Whole numbers that are read are those that were written.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

#include "base/error.h"
#include "trace/parquet/module.h"
#include "trace/trace_columns.h"

namespace lockstep {
namespace {

/// The input, byte by byte; zeros behind its end.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
  int byte() { return next_ == end_ ? 0 : *next_++; }
  int below(int count) { return byte() % count; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }

 private:
  const std::uint8_t *next_, *end_;
};

void require(const arrow::Status& status) { LOCKSTEP_CHECK(status.ok(), "Arrow builds arrays"); }

template <class T>
T take(arrow::Result<T> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

/// Mostly small, some at the ends of types.
std::int64_t whole_value(Choices& choices) {
  constexpr std::int64_t kEnds[] = {-1,
                                    -2,
                                    127,
                                    255,
                                    32768,
                                    kMaxTraceRank,
                                    std::numeric_limits<std::int32_t>::max(),
                                    std::int64_t{1} << 32,
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min()};
  const int what = choices.byte();
  return what < 246 ? what % 16 : kEnds[what - 246];
}

double seconds_value(Choices& choices) {
  constexpr double kOdd[] = {-1,
                             1e30,
                             1e300,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN(),
                             0.1,
                             1e-40};
  const int what = choices.byte();
  return what < 249 ? 0.25 * what : kOdd[what - 249];
}

/// A column as it was written.
struct Written {
  std::shared_ptr<arrow::Array> array;
  std::vector<std::int64_t> values;  ///< empty unless all are whole numbers
};

template <class Type>
Written whole_column(Choices& choices, int rows, bool nulls, bool halves) {
  using Value = typename Type::c_type;
  typename arrow::TypeTraits<Type>::BuilderType builder;
  Written column;
  bool known = true;
  for (int i = 0; i < rows; ++i) {
    if (nulls && choices.below(4) == 0) {
      require(builder.AppendNull());
      column.values.push_back(-1);
      continue;
    }
    const std::int64_t value = whole_value(choices);
    if constexpr (std::is_floating_point_v<Value>) {
      known = known && !halves && std::abs(value) < (1 << 24);
      require(builder.Append(static_cast<Value>(value) / (halves ? Value{2} : Value{1})));
    } else {
      require(builder.Append(static_cast<Value>(value)));
    }
    column.values.push_back(value);
    if constexpr (std::is_integral_v<Value>) {
      known = known && std::in_range<Value>(value);
    }
  }
  if (!known) {
    column.values.clear();
  }
  column.array = take(builder.Finish());
  return column;
}

Written whole_column(Choices& choices, int rows, int type, bool nulls) {
  switch (type) {
    case 0:
      return whole_column<arrow::Int8Type>(choices, rows, nulls, false);
    case 1:
      return whole_column<arrow::Int16Type>(choices, rows, nulls, false);
    case 2:
      return whole_column<arrow::Int64Type>(choices, rows, nulls, false);
    case 3:
      return whole_column<arrow::UInt8Type>(choices, rows, nulls, false);
    case 4:
      return whole_column<arrow::UInt16Type>(choices, rows, nulls, false);
    case 5:
      return whole_column<arrow::UInt32Type>(choices, rows, nulls, false);
    case 6:
      return whole_column<arrow::UInt64Type>(choices, rows, nulls, false);
    case 7:
      return whole_column<arrow::FloatType>(choices, rows, nulls, false);
    case 8:
      return whole_column<arrow::DoubleType>(choices, rows, nulls, false);
    case 9:
      return whole_column<arrow::DoubleType>(choices, rows, nulls, true);
    case 10:
      return {std::make_shared<arrow::NullArray>(rows), {}};
    case 11:
      return {take(arrow::MakeArrayOfNull(arrow::list(arrow::int32()), rows)), {}};
    case 12:
      return {
          take(arrow::MakeArrayOfNull(arrow::struct_({arrow::field("x", arrow::int32())}), rows)),
          {}};
    case 13:
      return {take(arrow::MakeArrayFromScalar(arrow::BooleanScalar(true), rows)), {}};
    default:
      return whole_column<arrow::Int32Type>(choices, rows, nulls, false);
  }
}

template <class Type>
std::shared_ptr<arrow::Array> seconds_column(Choices& choices, int rows, bool nulls) {
  typename arrow::TypeTraits<Type>::BuilderType builder;
  for (int i = 0; i < rows; ++i) {
    const double value = seconds_value(choices);
    require(nulls && choices.below(4) == 0
                ? builder.AppendNull()
                : builder.Append(static_cast<typename Type::c_type>(value)));
  }
  return take(builder.Finish());
}

template <class Builder>
std::shared_ptr<arrow::Array> names_column(Choices& choices, int rows, bool nulls) {
  Builder builder;
  for (int i = 0; i < rows; ++i) {
    const auto what = static_cast<std::size_t>(choices.byte());
    if (nulls && what % 4 == 0) {
      require(builder.AppendNull());
    } else {
      require(builder.Append(what < 252 ? trace_op_names()[what % kTraceOpCount]
                                        : std::string_view("sideways-compute")));
    }
  }
  return take(builder.Finish());
}

std::shared_ptr<arrow::Array> optypes(Choices& choices, int rows, int type, bool nulls) {
  switch (type) {
    case 0:
      return names_column<arrow::LargeStringBuilder>(choices, rows, nulls);
    case 1:
      return names_column<arrow::StringDictionaryBuilder>(choices, rows, nulls);
    case 2:
      return names_column<arrow::BinaryBuilder>(choices, rows, nulls);
    case 3:
      return whole_column<arrow::Int64Type>(choices, rows, nulls, false).array;
    default:
      return names_column<arrow::StringBuilder>(choices, rows, nulls);
  }
}

/// Nothing where an encoding is not for its column's type.
std::string file_of(const arrow::Table& table, Choices& choices) {
  using parquet::Compression;
  using parquet::Encoding;
  constexpr Compression::type kPacked[] = {Compression::UNCOMPRESSED, Compression::SNAPPY,
                                           Compression::GZIP, Compression::ZSTD};
  constexpr Encoding::type kEncodings[] = {Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED,
                                           Encoding::BYTE_STREAM_SPLIT, Encoding::DELTA_BYTE_ARRAY,
                                           Encoding::DELTA_LENGTH_BYTE_ARRAY};
  parquet::WriterProperties::Builder layout;
  layout.compression(kPacked[choices.below(4)]);
  layout.data_page_version(choices.below(2) == 0 ? parquet::ParquetDataPageVersion::V1
                                                 : parquet::ParquetDataPageVersion::V2);
  layout.data_pagesize(choices.below(2) == 0 ? 1 << 20 : 1);
  layout.write_batch_size(choices.below(2) == 0 ? 1024 : 2);
  layout.dictionary_pagesize_limit(choices.below(2) == 0 ? 1 << 20 : 1);
  for (const auto& field : table.schema()->fields()) {
    if (const int what = choices.below(8); what >= 3) {
      layout.disable_dictionary(field->name());
      layout.encoding(field->name(), kEncodings[what - 3]);
    }
  }
  parquet::ArrowWriterProperties::Builder arrow_layout;
  if (choices.below(2) == 0) {
    arrow_layout.store_schema();
  }
  const int most = choices.byte();
  const auto sink = take(arrow::io::BufferOutputStream::Create());
  try {
    const arrow::Status written =
        parquet::arrow::WriteTable(table, arrow::system_memory_pool(), sink,
                                   most == 0 ? 1024 : most, layout.build(), arrow_layout.build());
    return written.ok() ? take(sink->Finish())->ToString() : std::string();
  } catch (const parquet::ParquetException&) {
    return {};
  }
}

/// Whether what was read of a column is what was written.
template <class T>
void compare(const std::vector<T>& read, const Written& written) {
  if (written.values.empty()) {
    return;
  }
  LOCKSTEP_CHECK(std::ranges::equal(read, written.values), "a column of another value");
}

void try_file(Choices choices) {
  const int rows = choices.below(40), missing = choices.byte(), twice = choices.byte();
  std::vector<std::string> names(kTraceColumns.begin(), kTraceColumns.end());
  if (choices.below(2) == 1) {
    names.insert(names.end(), kTraceRankColumns.begin(), kTraceRankColumns.end());
  }
  std::vector<Written> columns;
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const int type = choices.byte();
    const bool nulls = type % 8 == 7;
    Written column;
    if (c == kOptypeColumn) {
      column.array = optypes(choices, rows, type % 32, nulls);
    } else if (c == kStartColumn || c == kDurationColumn) {
      column.array = type % 32 == 1   ? seconds_column<arrow::DoubleType>(choices, rows, nulls)
                     : type % 32 == 2 ? whole_column(choices, rows, 2, nulls).array
                                      : seconds_column<arrow::FloatType>(choices, rows, nulls);
    } else {
      column = whole_column(choices, rows, type % 32, nulls);
    }
    fields.push_back(arrow::field(missing == 255 - static_cast<int>(c) ? "other"
                                  : twice == 255 - static_cast<int>(c) ? "rank"
                                                                       : names[c],
                                  column.array->type()));
    arrays.push_back(column.array);
    columns.push_back(std::move(column));
  }
  std::string file = file_of(*arrow::Table::Make(arrow::schema(fields), arrays, rows), choices);
  if (file.empty()) {
    return;
  }
  const bool changed = choices.left() >= 4;
  while (choices.left() >= 4) {  // the bytes from an end on, which is the one with the schema
    const int high = choices.byte(), low = choices.byte(), flip = choices.byte();
    const auto place = static_cast<std::size_t>(high << 8 | low) % file.size();
    char& byte = file[choices.below(4) == 0 ? place : file.size() - 1 - place];
    byte = static_cast<char>(byte ^ flip);
  }
  Trace all;
  read_parquet(
      file, "fuzz.parquet",
      [&](Trace&& some) {
        check_rows(some, "fuzz.parquet", all.size());
        append_rows(all, std::move(some));
      },
      nullptr);
  if (changed) {
    return;
  }
  LOCKSTEP_CHECK(all.size() == static_cast<std::size_t>(rows), "all rows come");
  compare(all.dp_rank, columns[kDpRankColumn]);
  compare(all.stage, columns[kStageColumn]);
  compare(all.rank, columns[kRankColumn]);
  compare(all.step, columns[kStepColumn]);
  compare(all.seq_id, columns[kSeqIdColumn]);
  compare(all.mc, columns[kMcColumn]);
  compare(all.mb_id, columns[kMbIdColumn]);
  compare(all.gmc, columns[kGmcColumn]);
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    lockstep::try_file(lockstep::Choices(data, size));
  } catch (const lockstep::Error&) {
    return 0;
  }
  return 0;
}
