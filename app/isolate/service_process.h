#pragma once

#include <mutex>
#include <string>
#include <sys/types.h>
#include <vector>

namespace lockstep {

/// A process of `lockstep --service …` (services.h) and the socket to speak to it. It is started by
/// exec, not forked: so it may be made from a process with threads, whose locks a forked copy would
/// inherit as they happen to be, and begins without this process's memory. Signals from a terminal
/// pass it by. It ends with this object, or when this process ends in any way.
class ServiceProcess {
 public:
  /// `program`: the lockstep to start; empty: lockstep_to_start(). ERRORS: Error (kMissingPart) if
  /// it cannot be started.
  ServiceProcess(std::string program, std::vector<std::string> service);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  /// Until restart().
  int socket() const { return socket_; }
  /// Nothing more is said to it: it ends what it does, and then itself. From any thread.
  void hang_up();
  /// Ends it whatever it does.
  void kill();
  /// Starts another, once this one has ended: after hang_up() or kill(), or by itself.
  void restart();

 private:
  void start();
  void end();

  std::string program_;
  std::vector<std::string> service_;
  std::mutex socket_changes_;
  pid_t process_ = -1;
  int socket_ = -1;
};

}  // namespace lockstep
