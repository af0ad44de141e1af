#pragma once

#include <string>
#include <vector>

namespace lockstep {

// A process that runs the command lines of strangers (lockstep serve) opens no other files for them
// than those of a few folders, whatever names them: a word of the command line, or a file that a
// word names. Links count as what they lead to.

/// From now on FileText reads below `readable` and `writable` alone, and AtomicFile writes below
/// `writable` alone, and folders are made there alone (make_folder). Paths of files stand for these
/// files; empty ones for nothing. Once in a process, before it has threads. PRECONDITION: absolute
/// paths.
void fence_files(const std::vector<std::string>& readable,
                 const std::vector<std::string>& writable);

/// For what opens files and makes folders. ERRORS: Error where the file lies outside.
void refuse_reading_outside(const std::string& path);
void refuse_writing_outside(const std::string& path);

}  // namespace lockstep
