#pragma once

#include <string>
#include <string_view>

#include "app/sweep/journal.h"

namespace lockstep {

/// Before its first point each rank is asked whether it sees what rank 0 does: a machine that has
/// other files, or another build, would give other rows than one process does.
///
/// The letter that asks; `keeps`: points leave files in `output`, so that the journal there has to
/// be seen, too.
std::string letter_of_question(const SweepIdentity& identity, const std::string& output,
                               bool keeps);
bool is_question(std::string_view letter);

/// Looks, again and again for some seconds where anything differs: what was written a moment ago
/// may come late over a network's file system. Complexity: reads the files.
std::string letter_of_answer(std::string_view question);
bool is_answer(std::string_view letter);
/// ERRORS: rank `from` sees other files, or is of another build: which, and on what machine.
void check_answer(std::string_view answer, int from);

}  // namespace lockstep
