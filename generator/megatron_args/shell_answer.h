#pragma once

#include <cstdint>

namespace lockstep {

/// What a condition of a script says. kTakenNo: it depends on files, and counts as no. kTakenYes: a
/// program says it, which is taken to succeed. kUnknown: it depends on a value that is not known.
enum class ShellAnswer : std::uint8_t { kNo, kYes, kTakenNo, kTakenYes, kUnknown };

constexpr ShellAnswer shell_answer(bool yes) { return yes ? ShellAnswer::kYes : ShellAnswer::kNo; }

constexpr bool is_yes(ShellAnswer a) {
  return a == ShellAnswer::kYes || a == ShellAnswer::kTakenYes;
}
constexpr bool is_taken(ShellAnswer a) {
  return a == ShellAnswer::kTakenNo || a == ShellAnswer::kTakenYes;
}

constexpr ShellAnswer shell_not(ShellAnswer a) {
  return a == ShellAnswer::kYes        ? ShellAnswer::kNo
         : a == ShellAnswer::kNo       ? ShellAnswer::kYes
         : a == ShellAnswer::kTakenYes ? ShellAnswer::kTakenNo
                                       : a;  // no file is there: neither a test nor its opposite
}

constexpr ShellAnswer shell_and(ShellAnswer a, ShellAnswer b) {
  const auto either_is = [&](ShellAnswer c) { return a == c || b == c; };
  return either_is(ShellAnswer::kNo)         ? ShellAnswer::kNo
         : either_is(ShellAnswer::kTakenNo)  ? ShellAnswer::kTakenNo
         : either_is(ShellAnswer::kUnknown)  ? ShellAnswer::kUnknown
         : either_is(ShellAnswer::kTakenYes) ? ShellAnswer::kTakenYes
                                             : ShellAnswer::kYes;
}

constexpr ShellAnswer shell_or(ShellAnswer a, ShellAnswer b) {
  const auto either_is = [&](ShellAnswer c) { return a == c || b == c; };
  return either_is(ShellAnswer::kYes)        ? ShellAnswer::kYes
         : either_is(ShellAnswer::kTakenYes) ? ShellAnswer::kTakenYes
         : either_is(ShellAnswer::kUnknown)  ? ShellAnswer::kUnknown
         : either_is(ShellAnswer::kTakenNo)  ? ShellAnswer::kTakenNo
                                             : ShellAnswer::kNo;
}

}  // namespace lockstep
