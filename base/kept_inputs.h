#pragma once

#include <string>

struct stat;

namespace lockstep {

// What a command has read it does not replace: `--report in.txt` of a command that reads in.txt
// would leave the report alone. Files are compared, not names: links to one file are that file.

/// From now on files that are read are noted (FileText) and refused as outputs (AtomicFile); what
/// was noted before is forgotten. For the beginning of a command.
void keep_inputs();

/// For the classes that open files: this one is read, or was written by this process, which may
/// write it again whether or not it has read it back.
void note_input(const std::string& path, const struct stat& info);
void note_own_output(const struct stat& info);

/// A file that the process goes on from, such as a journal, and is about to write anew.
void release_input(const std::string& path);
/// One that it goes on with from now on, and that nothing else may replace.
void hold_input(const std::string& path);

/// Before a file of that name is replaced. ERRORS: Error where it is one that was read.
void refuse_input(const std::string& path);
/// As well where this process has written it: for the last of a command's outputs.
void refuse_own_output(const std::string& path);

}  // namespace lockstep
