#pragma once

#include <cstdint>

namespace lockstep {

/// What a condition of a script says. kTakenNo: it depends on files, and counts as no. kUnknown: it
/// depends on a value that is not known.
enum class ShellAnswer : std::uint8_t { kNo, kYes, kTakenNo, kUnknown };

constexpr ShellAnswer shell_answer(bool yes) { return yes ? ShellAnswer::kYes : ShellAnswer::kNo; }

constexpr ShellAnswer shell_not(ShellAnswer a) {
  return a == ShellAnswer::kYes ? ShellAnswer::kNo : a == ShellAnswer::kNo ? ShellAnswer::kYes : a;
}

constexpr ShellAnswer shell_and(ShellAnswer a, ShellAnswer b) {
  const auto either_is = [&](ShellAnswer c) { return a == c || b == c; };
  return either_is(ShellAnswer::kNo)        ? ShellAnswer::kNo
         : either_is(ShellAnswer::kTakenNo) ? ShellAnswer::kTakenNo
         : either_is(ShellAnswer::kUnknown) ? ShellAnswer::kUnknown
                                            : ShellAnswer::kYes;
}

constexpr ShellAnswer shell_or(ShellAnswer a, ShellAnswer b) {
  const auto either_is = [&](ShellAnswer c) { return a == c || b == c; };
  return either_is(ShellAnswer::kYes)       ? ShellAnswer::kYes
         : either_is(ShellAnswer::kUnknown) ? ShellAnswer::kUnknown
         : either_is(ShellAnswer::kTakenNo) ? ShellAnswer::kTakenNo
                                            : ShellAnswer::kNo;
}

}  // namespace lockstep
