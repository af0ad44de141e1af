#pragma once

#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "base/error.h"
#include "generator/argparse.h"

namespace lockstep {

/// A wrong command line told in our own words: the first unknown word with the nearest known one,
/// else what CLI11 found. `root` is the application that threw `problem` from parse().
Error usage_error(const CLI::App& root, const CLI::ParseError& problem);

/// A word that is neither a flag of the command nor of what it describes (a job, a generator, a
/// template), with the nearest flag of either.
Error usage_error(const CLI::App& command, const UnknownFlag& problem);

/// Refuses NaN and infinity where the command chosen takes a number, and whole numbers of more than
/// 64 bits: CLI11 finds NaN in any range and takes the largest number for a larger one.
void check_numbers(const CLI::App& root);

/// Whole numbers of flags are decimal from now on: CLI11 takes 010 for 8 and 0x10 for 16.
void read_numbers_as_decimal(CLI::App& app);

/// ERRORS: "-" where it cannot be: twice for standard input, or for what another process writes.
void check_streams(const CLI::App& root);

/// ERRORS: a long flag with one dash, "-workload", which would be -w with "orkload".
void check_dashes(const CLI::App& root, const std::vector<std::string>& arguments);

/// Of the chosen command's flags that say where to write: an empty name, as an unset variable of a
/// shell makes it, would be no output and no message (or, for "--report=", the next word).
/// ERRORS: Error naming the flag.
void check_output_names(const CLI::App& root, const std::vector<std::string>& arguments);

/// The innermost subcommand the command line chose so far; `root` itself if none.
const CLI::App& chosen(const CLI::App& root);

/// "lockstep topology check": the application's name with those of its parents before it.
std::string full_name(const CLI::App& app);

/// What --help prints of the command chosen.
std::string root_help(const CLI::App& app);

}  // namespace lockstep
