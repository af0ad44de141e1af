#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "app/serve/api.h"

namespace lockstep {

struct HttpSettings {
  std::string socket;                 ///< path of a Unix socket; empty: TCP
  std::string address = "127.0.0.1";  ///< of TCP
  std::uint16_t port = 0;             ///< 0: any free one
  std::int64_t most_body = std::int64_t{16} << 20;
  int most_connections = 64;
  int threads = 4;                      ///< that call the handler
  std::chrono::seconds idle_limit{30};  ///< for a request to arrive, or an answer to leave
};

/// Listens for HTTP/1.1 and answers each request with what the handler returns; requests of
/// different connections at the same time. A request too large, too slow or malformed gets an
/// error or loses its connection; nothing that arrives ends the server.
class HttpServer {
 public:
  using Handler = std::function<ApiReply(const ApiRequest&)>;

  /// Listens when it is made. ERRORS: Error where the address cannot be used.
  HttpServer(const HttpSettings& settings, Handler handler);
  /// Takes no more connections, lets what is being answered end, for at most `grace`.
  void stop(std::chrono::milliseconds grace);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// What to tell people: "http://127.0.0.1:8080/" or the socket's path.
  std::string where() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Reads one request from the bytes of a connection and answers it as the server would, for tests:
/// the status of the answer, 0 where the request is not complete.
int answer_bytes(std::string_view bytes, std::int64_t most_body,
                 const HttpServer::Handler& handler);

}  // namespace lockstep
