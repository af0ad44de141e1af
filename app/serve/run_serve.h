#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace lockstep {

struct ServeOptions {
  std::string socket;                 ///< path of a Unix socket
  std::int64_t port = -1;             ///< of TCP; -1: none, 0: any free one
  std::string address = "127.0.0.1";  ///< of TCP
  std::string token_file;             ///< its first line is the token
  std::string files;                  ///< folder that command lines may name files of
  std::string time_limit = "60s", memory_limit = "4GiB", body_limit = "16MiB", grace = "10s";
  int jobs = 2;          ///< commands at once
  int waiting = 32;      ///< requests that may wait for them
  int connections = 64;  ///< open at once
};

/// Serves the API until SIGINT or SIGTERM; then takes no more, and ends when what runs has ended,
/// or after the grace time. ERRORS: addresses and files that cannot be used; an address beyond
/// loopback without a token.
ExitCode run_serve(const ServeOptions& options);

}  // namespace lockstep
