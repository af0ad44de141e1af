#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Characters a line of standard output has room for: the terminal's, from 60 to 200; 80 where it
/// is none.
std::size_t terminal_width();

/// Whether standard output is a terminal.
bool on_terminal();

/// Whether standard output may be coloured: it is a terminal that is not "dumb", and NO_COLOR is
/// not set (no-color.org).
bool colour_wanted();

/// All that for_terminal() looks at, as a word: of a terminal its width and whether it has colours;
/// empty elsewhere.
std::string terminal_form();

/// A table for people: on a terminal its lines are fitted() (app/fitted.h) to the width, and its
/// first line and the heads of its columns stand out. The same text elsewhere.
std::string for_terminal(const std::string& text);
/// The text with colours, wherever it goes.
std::string coloured(const std::string& text);

/// Until it ends, what is written to standard error is dropped: --quiet. An Error is printed after.
/// Ranks that a command starts are given what was standard error before: unsilenced_error().
class Silence {
 public:
  explicit Silence(bool on);
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int kept_ = -1;
};
int unsilenced_error();  ///< the file descriptor that errors go to

}  // namespace lockstep
