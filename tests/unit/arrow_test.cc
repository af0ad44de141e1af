// Arrow C++ and Parquet as the build found them: headers and libraries belong together.
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

namespace {

std::shared_ptr<arrow::Table> small_table() {
  arrow::Int64Builder step;
  arrow::DoubleBuilder duration;
  EXPECT_TRUE(step.AppendValues({0, 1, 2}).ok());
  EXPECT_TRUE(duration.AppendValues({0.25, 0.5, 1e-12}).ok());
  return arrow::Table::Make(arrow::schema({arrow::field("step", arrow::int64()),
                                           arrow::field("duration_s", arrow::float64())}),
                            {step.Finish().ValueOrDie(), duration.Finish().ValueOrDie()});
}

TEST(Arrow, ParquetTableComesBackAsItWent) {
  const std::shared_ptr<arrow::Table> table = small_table();
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  ASSERT_TRUE(
      parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, /*chunk_size=*/2)
          .ok());
  const std::shared_ptr<arrow::Buffer> file = sink->Finish().ValueOrDie();
  ASSERT_GT(file->size(), 8);
  EXPECT_EQ(file->ToString().substr(0, 4), "PAR1");

  auto reader = parquet::arrow::OpenFile(std::make_shared<arrow::io::BufferReader>(file),
                                         arrow::default_memory_pool());
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_TRUE((*reader)->ReadTable().ValueOrDie()->Equals(*table));
}

}  // namespace
