#pragma once

/// CLI11 by name alone. Its header costs five seconds a file to compile: headers include this one,
/// and <CLI/CLI.hpp> only the files that declare flags.
namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI
