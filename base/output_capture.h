#pragma once

#include <cstdio>
#include <string>

namespace lockstep {

/// The streams that the calling thread's results and messages go to: the process's own, or those of
/// the OutputCapture that lives on this thread. What is written to the file "-" goes to the first.
std::FILE* standard_output();
std::FILE* standard_error();

/// While it lives, what the thread that made it writes to standard output and standard error is
/// kept in memory instead: so a whole command can run inside a program that has those streams for
/// itself. Threads that the command starts keep the process's streams. Captures nest; each is to be
/// destroyed by the thread that made it.
/// ERRORS: Error where the streams cannot be made.
class OutputCapture {
 public:
  OutputCapture();
  ~OutputCapture();
  OutputCapture(const OutputCapture&) = delete;
  OutputCapture& operator=(const OutputCapture&) = delete;

  std::string out() const { return out_.text(); }
  std::string err() const { return err_.text(); }

 private:
  friend std::FILE* standard_output();
  friend std::FILE* standard_error();

  struct Stream {
    Stream();
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    std::string text() const;

    char* bytes = nullptr;
    std::size_t size = 0;
    std::FILE* file = nullptr;
  };

  Stream out_, err_;
  OutputCapture* outer_;
};

}  // namespace lockstep
