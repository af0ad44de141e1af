#pragma once

#include <string>

namespace lockstep {

/// From now on this process reads files (FileText) below `own` and `readable` alone, and writes
/// them (AtomicFile) below `own` alone, whatever names them: a flag, or an input that names another
/// file. For processes that work for strangers. Both are absolute paths; `own` is also the working
/// directory; an empty `readable` is none. Standard input and output stay. Symbolic links below
/// `readable` lead where who keeps that folder wants them to; nothing that Lockstep does makes one.
/// Once, before there are threads.
void confine_files(std::string own, std::string readable);

/// ERRORS: Error where the file is outside of what confine_files() left; never without it.
void check_readable(const std::string& path);
void check_writable(const std::string& path);

}  // namespace lockstep
