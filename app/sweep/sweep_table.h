#pragma once

#include <cstdint>
#include <map>

#include "app/sweep/grid.h"
#include "app/sweep/row.h"
#include "trace/column_table.h"

namespace lockstep {

/// The rows by point: point, the grid's flags, ending, exit_code, reason, then the outputs in the
/// order in which the points have them first. A column of outputs is whole numbers, numbers, truths
/// or, where its cells differ in kind, texts; so is a flag's. Nothing in it depends on who computed
/// a row, when, or how long that took.
ColumnTable sweep_table(const Grid& grid, const std::map<std::int64_t, SweepRow>& rows);

/// The columns as an array of objects: `name` and `cells`, null where one is empty.
Json columns_json(const ColumnTable& table);

}  // namespace lockstep
