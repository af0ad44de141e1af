#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep {

using Variables = std::map<std::string, double>;

/// Where an expression stands, for its errors.
struct ExpressionPlace {
  std::string file;
  std::size_t line = 0;
  std::string field;
};

/// The value of an expression over `variables`, such as "heads * head_dim" or "ceil_div(ffn, 2)".
///
///   1 2.5 1e9 name ( )    numbers, variables, groups
///   + - * / // %          // rounds down; % has the sign of its right side, as in Python
///   == != < <= > >=       1 where they hold, else 0; not chained
///   min(a, b, …) max(a, b, …) ceil_div(a, b) round_up(a, multiple) if(condition, then, else)
///
/// Both sides of `if` are read, only the chosen one is evaluated. Complexity: linear in the text.
/// ERRORS: Error naming place and column: syntax, an unknown variable or function (with the nearest
/// known one), division by zero, a value beyond 2^53 (whole numbers are exact up to there), nesting
/// deeper than 64, a text longer than 4096.
double evaluate(std::string_view text, const Variables& variables, const ExpressionPlace& place);

/// The same, a whole number in [low, high]. ERRORS: also a fraction ("3.5 is no whole number").
std::int64_t evaluate_whole(std::string_view text, const Variables& variables,
                            const ExpressionPlace& place, std::int64_t low, std::int64_t high);

/// Whether a variable may be called so: letters, digits and _, no digit first, no function's name.
bool is_variable_name(std::string_view name);

}  // namespace lockstep
