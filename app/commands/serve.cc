#include <memory>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/serve/run_serve.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep serve --port 8080
  lockstep serve --socket /run/user/1000/lockstep.sock --jobs 8
  lockstep serve --port 8080 --address 0.0.0.0 --token-file token

Then: a page with sliders at http://127.0.0.1:8080/, and
  curl -H 'Content-Type: application/json' http://127.0.0.1:8080/api/v1/run \
      -d '{"arguments": ["collective", "--op", "allreduce", "--size", "1GiB", "--topology", "Spectrum-X:g=64", "--json"]}'
)";

CommandBody define(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  app.add_option("--port", options->port, "TCP port; 0: any free one")->check(CLI::Range(0, 65535));
  app.add_option("--socket", options->socket, "Path of a Unix socket, for its owner alone");
  app.add_option("--address", options->address,
                 "Address to listen on; beyond loopback a token is needed")
      ->capture_default_str();
  app.add_option("--token-file", options->token_file,
                 "File whose first line every request must carry: 'Authorization: Bearer TOKEN'");
  app.add_option("--files", options->files,
                 "Folder whose files commands may read; none unless given");
  app.add_option("--jobs", options->jobs, "Commands that run at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--waiting", options->waiting, "Requests that may wait for them")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--connections", options->connections, "Connections that may be open at once")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--time-limit", options->time_limit, "Of one command")->capture_default_str();
  app.add_option("--memory-limit", options->memory_limit, "Of each process of a command")
      ->capture_default_str();
  app.add_option("--body-limit", options->body_limit, "Of a request's body")->capture_default_str();
  app.add_option("--grace", options->grace, "For what runs when the server is told to stop")
      ->capture_default_str();
  return [options] { return run_serve(*options); };
}

}  // namespace

extern const Command kServeCommand;
const Command kServeCommand{"serve", "The commands as a JSON API, and a page with sliders",
                            kExamples, define};

}  // namespace lockstep
