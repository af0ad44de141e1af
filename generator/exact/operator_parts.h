#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "generator/exact/operators.h"

namespace lockstep {

/// What the operators of modules are made from.

std::int64_t ceil_div(std::int64_t a, std::int64_t b);
double product_of(std::initializer_list<std::int64_t> factors);

/// rows x in -> rows x out, `groups` of them, with both gradients; `operand` bytes an element. The
/// weight's gradient is accumulated in the gradients' precision: read and written. In fp8 the input
/// and the output's gradient are cast first, each in one kernel of its own (NVIDIA Transformer
/// Engine, cast_transpose); weights, cast once a step, are free.
ModuleOperators linear(const std::string& name, std::int64_t rows, std::int64_t in,
                       std::int64_t out, const RankSizes& sizes, int operand,
                       std::int64_t groups = 1);

/// A matrix product with another number of rows and columns of its output.
Operator product_of_size(const Operator& whole, std::int64_t m, std::int64_t n,
                         const RankSizes& sizes);

/// One operator bound by memory.
Operator memory_bound(std::string name, double bytes, bool backward, int element_bytes,
                      MemoryWork work = MemoryWork::kStream);

/// Bound by memory both ways, with so many bytes each.
ModuleOperators elementwise(const std::string& name, double forward, double backward,
                            int element_bytes, MemoryWork work = MemoryWork::kStream);

/// Whether an activation computes a tangent for each element, as GELU does: no gated one (of half
/// of what it reads) and no ReLU, squared or not, by its name.
bool computes_tangents(const Module& activation);

}  // namespace lockstep
