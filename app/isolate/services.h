#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// What a ServiceProcess is, if this process is one: `lockstep --service tasks`, which runs
/// commands apart (server.h), or `lockstep --service live BYTES FOLDER READABLE`, which holds the
/// live page's model (live_process.h) in so much memory; then it does not return. Standard input is
/// the socket to who started it; where that is no socket, these are arguments like any others.
void serve_if_asked(const std::vector<std::string>& arguments);

}  // namespace lockstep
