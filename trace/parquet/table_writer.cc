#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include <arrow/api.h>
#include <parquet/arrow/writer.h>

#include "trace/column_table.h"
#include "trace/parquet/arrow_values.h"
#include "trace/parquet/module.h"

namespace lockstep {
namespace {

template <class T>
std::shared_ptr<arrow::Array> array_of(const ColumnTable::Cells<T>& cells) {
  using Type = std::conditional_t<
      std::is_same_v<T, std::string>, arrow::StringType,
      std::conditional_t<
          std::is_same_v<T, bool>, arrow::BooleanType,
          std::conditional_t<std::is_same_v<T, double>, arrow::DoubleType, arrow::Int64Type>>>;
  typename arrow::TypeTraits<Type>::BuilderType builder;
  for (const std::optional<T>& cell : cells) {
    require(cell ? builder.Append(*cell) : builder.AppendNull());
  }
  return take(builder.Finish());
}

}  // namespace

std::string to_parquet_table(const ColumnTable& table) {
  arrow::ArrayVector arrays;
  arrow::FieldVector fields;
  for (const ColumnTable::Column& column : table.columns) {
    arrays.push_back(std::visit([](const auto& cells) { return array_of(cells); }, column.cells));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  return parquet_bytes(*arrow::Table::Make(arrow::schema(fields), arrays));
}

}  // namespace lockstep
