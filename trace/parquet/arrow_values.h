#pragma once

#include <string>
#include <utility>

#include <arrow/api.h>

#include "base/error.h"

namespace lockstep {

// What the writers of the module share. Arrow's failures become Errors.

inline void require(const arrow::Status& status) {
  if (!status.ok()) {
    throw Error("Arrow cannot write Parquet: " + status.message());
  }
}

template <class T>
T take(arrow::Result<T> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

/// The bytes of a Parquet file, compressed with Snappy, that gives the table's Arrow types back.
std::string parquet_bytes(const arrow::Table& table);

}  // namespace lockstep
