#pragma once

namespace lockstep {

/// Names of files that are being written and are to go if the process is ended by a signal: at most
/// 256 at a time, the rest stay where they are. Lock-free.

/// Returns the entry, -1 if there is no room. `name` must live until forget_temporary_file().
int note_temporary_file(const char* name);
void forget_temporary_file(int entry);

/// Removes those that this process has noted. Safe in signal handlers.
void remove_temporary_files();

/// From now on SIGINT, SIGTERM, SIGHUP and SIGXCPU (unless ignored) remove them before they end the
/// process as they always do. For main().
void leave_no_temporary_files();

}  // namespace lockstep
