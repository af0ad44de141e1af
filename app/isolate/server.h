#pragma once

namespace lockstep {

/// The life of a nursery's process: takes tasks from the socket, runs each in a child of its own,
/// answers; ends when the other side has gone, and then kills what it runs.
[[noreturn]] void serve_isolated_tasks(int socket);

}  // namespace lockstep
