#include "trace/parquet/module.h"

extern "C" {
extern const lockstep::ParquetModule lockstep_parquet_module;
const lockstep::ParquetModule lockstep_parquet_module = {
    lockstep::read_parquet, lockstep::rows_of_parquet, lockstep::to_parquet_bytes,
    lockstep::to_parquet_table};
}
