// Texts of a Parquet trace in the forms that writers other than ours give them.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "base/warnings.h"
#include "trace/parquet/module.h"
#include "trace/trace_columns.h"

namespace lockstep {
namespace {

constexpr std::array<TraceOp, 4> kOps = {TraceOp::kForwardCompute, TraceOp::kBackwardCompute,
                                         TraceOp::kGc, TraceOp::kForwardCompute};

std::shared_ptr<arrow::Array> names_of_ops(const std::shared_ptr<arrow::DataType>& type) {
  arrow::StringBuilder builder;
  for (const TraceOp op : kOps) {
    EXPECT_TRUE(builder.Append(to_text(op)).ok());
  }
  std::shared_ptr<arrow::Array> names = builder.Finish().ValueOrDie();
  if (type->id() == arrow::Type::BINARY) {
    return names->View(type).ValueOrDie();
  }
  return names;
}

/// A trace whose rows differ by their optype alone, which is of the given type and encoding.
std::string parquet_file(const std::shared_ptr<arrow::DataType>& type,
                         parquet::Encoding::type encoding) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (std::size_t c = 0; c < kTraceColumns.size(); ++c) {
    if (c == kOptypeColumn) {
      columns.push_back(names_of_ops(type));
    } else if (c == kStartColumn || c == kDurationColumn) {
      columns.push_back(
          arrow::MakeArrayFromScalar(arrow::FloatScalar(0.5F), kOps.size()).ValueOrDie());
    } else {
      columns.push_back(
          arrow::MakeArrayFromScalar(arrow::Int32Scalar(0), kOps.size()).ValueOrDie());
    }
    fields.push_back(arrow::field(std::string(kTraceColumns[c]), columns.back()->type()));
  }
  const auto properties = parquet::WriterProperties::Builder()
                              .disable_dictionary("optype")
                              ->encoding("optype", encoding)
                              ->build();
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  EXPECT_TRUE(parquet::arrow::WriteTable(*arrow::Table::Make(arrow::schema(fields), columns),
                                         arrow::default_memory_pool(), sink, 1024, properties)
                  .ok());
  return sink->Finish().ValueOrDie()->ToString();
}

TEST(TraceParquet, TextsOfEveryEncodingAreRead) {
  for (const auto& type : {arrow::utf8(), arrow::binary()}) {
    for (const auto encoding :
         {parquet::Encoding::PLAIN, parquet::Encoding::DELTA_LENGTH_BYTE_ARRAY,
          parquet::Encoding::DELTA_BYTE_ARRAY}) {
      std::vector<TraceOp> ops;
      read_parquet(
          parquet_file(type, encoding), "t.parquet",
          [&](Trace&& rows) { ops.insert(ops.end(), rows.optype.begin(), rows.optype.end()); },
          nullptr);
      EXPECT_EQ(ops, std::vector<TraceOp>(kOps.begin(), kOps.end()))
          << type->ToString() << ", " << parquet::EncodingToString(encoding);
    }
  }
}

}  // namespace
}  // namespace lockstep
