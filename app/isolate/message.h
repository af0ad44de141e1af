#pragma once

#include <string>
#include <string_view>

#include "app/isolate/task.h"

namespace lockstep {

// What a nursery and its process say to each other: eight bytes of length, then CBOR.

std::string to_message(const IsolatedTask& task);
std::string to_message(const IsolatedResult& result);
IsolatedTask task_of_message(std::string_view message);
IsolatedResult result_of_message(std::string_view message);

/// Blocks until all is sent (has arrived). False where the other side has gone.
bool send_message(int socket, std::string_view message);
bool receive_message(int socket, std::string& message);

/// Waits until a message begins to arrive, or the other side has gone; false if neither happens
/// within the limit (0: none).
bool wait_for_message(int socket, Time limit);

}  // namespace lockstep
