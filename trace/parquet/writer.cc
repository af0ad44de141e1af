#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "trace/parquet/arrow_values.h"
#include "trace/parquet/module.h"
#include "trace/trace_columns.h"

namespace lockstep {
namespace {

/// The narrowest of the integer types that holds all values and is not narrower than `Narrow`.
template <class Narrow, class... Wider, class T>
std::shared_ptr<arrow::Array> whole(const std::vector<T>& values) {
  using Value = typename arrow::CTypeTraits<Narrow>::CType;
  if constexpr (sizeof...(Wider) > 0) {
    if (!std::all_of(values.begin(), values.end(),
                     [](T value) { return std::in_range<Value>(value); })) {
      return whole<Wider...>(values);
    }
  }
  typename arrow::CTypeTraits<Narrow>::BuilderType builder;
  require(builder.Reserve(static_cast<std::int64_t>(values.size())));
  for (const T value : values) {
    builder.UnsafeAppend(static_cast<Value>(value));
  }
  return take(builder.Finish());
}

std::shared_ptr<arrow::Array> seconds(const std::vector<float>& values) {
  arrow::FloatBuilder builder;
  require(builder.AppendValues(values));
  return take(builder.Finish());
}

std::shared_ptr<arrow::Array> names(const std::vector<TraceOp>& types) {
  arrow::StringBuilder entries;
  for (const std::string_view name : trace_op_names()) {
    require(entries.Append(name));
  }
  arrow::Int8Builder codes;
  require(codes.Reserve(static_cast<std::int64_t>(types.size())));
  for (const TraceOp type : types) {
    codes.UnsafeAppend(static_cast<std::int8_t>(type));
  }
  const auto type = arrow::dictionary(arrow::int8(), arrow::utf8());
  return take(
      arrow::DictionaryArray::FromArrays(type, take(codes.Finish()), take(entries.Finish())));
}

std::shared_ptr<arrow::Array> texts(const std::vector<std::string>& values) {
  arrow::StringDictionaryBuilder builder;
  for (const std::string& value : values) {
    require(builder.Append(value));
  }
  return take(builder.Finish());
}

/// Parquet's encoders do not look whether there was memory for their tables of values (in Arrow 26
/// a table that is not there is written to). Those of a column take less than this: at most 1 MiB
/// of different values, each with an entry of 24 B in a table that is half empty, and its half as
/// it grows.
void require_room_for_encoders() {
  constexpr std::int64_t kRoom = 16 << 20;
  std::uint8_t* room = nullptr;
  require(arrow::default_memory_pool()->Allocate(kRoom, &room));
  arrow::default_memory_pool()->Free(room, kRoom);
}

}  // namespace

std::string to_parquet_bytes(const Trace& trace) {
  using arrow::ArrayVector;
  // In the order of kTraceColumns.
  ArrayVector arrays = {
      whole<std::int8_t, std::int16_t, std::int32_t>(trace.dp_rank),
      whole<std::int8_t, std::int16_t, std::int32_t>(trace.stage),
      whole<std::int16_t, std::int32_t>(trace.rank),
      whole<std::int64_t>(trace.step),
      names(trace.optype),
      seconds(trace.start_s),
      seconds(trace.duration_s),
      whole<std::int32_t>(trace.seq_id),
      whole<std::int8_t, std::int16_t, std::int32_t>(trace.mc),
      whole<std::int8_t, std::int16_t, std::int32_t>(trace.mb_id),
      whole<std::int16_t, std::int32_t>(trace.gmc),
  };
  std::vector<std::string_view> columns(kTraceColumns.begin(), kTraceColumns.end());
  if (!trace.extra.bytes.empty()) {
    const TraceExtra& extra = trace.extra;
    const auto more = trace_extra_columns(extra);
    columns.insert(columns.end(), more.begin(), more.end());
    arrays.insert(
        arrays.end(),
        {whole<std::int64_t>(extra.bytes), texts(extra.group), whole<std::int32_t>(extra.tp_rank),
         whole<std::int32_t>(extra.cp_rank), whole<std::int32_t>(extra.ep_rank)});
    if (!extra.alone_s.empty()) {
      arrays.push_back(seconds(extra.alone_s));
      if (!extra.undisturbed_s.empty()) {
        arrays.push_back(seconds(extra.undisturbed_s));
      }
    }
  }
  arrow::FieldVector fields;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    fields.push_back(arrow::field(std::string(columns[i]), arrays[i]->type()));
  }
  return parquet_bytes(*arrow::Table::Make(arrow::schema(fields), arrays));
}

std::string parquet_bytes(const arrow::Table& table) {
  require_room_for_encoders();
  const auto sink = take(arrow::io::BufferOutputStream::Create());
  const auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::SNAPPY)->build();
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  constexpr std::int64_t kRowsPerGroup = 1 << 20;
  require(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), sink, kRowsPerGroup,
                                     properties, arrow_properties));
  return take(sink->Finish())->ToString();
}

}  // namespace lockstep
