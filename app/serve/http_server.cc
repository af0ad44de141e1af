#include "app/serve/http_server.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <thread>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Parser = http::request_parser<http::string_body>;

constexpr std::uint32_t kMostHeader = 16 << 10;
constexpr std::size_t kMostBuffered = 128 << 10;  ///< beside the body; a chunk's header, say
constexpr std::size_t kMostDiscarded = 16 << 20;  ///< after the last answer of a connection
constexpr std::chrono::seconds kDiscardTime{2};
constexpr int kMostRefused = 64;  // at once; further connections are closed without a word

std::string text_of(beast::string_view view) { return {view.data(), view.size()}; }

/// What is wrong with a header, where that is for HTTP to say and not for its parser: which host is
/// meant must be clear, and where the body ends.
std::optional<ApiReply> refusal_of(const http::request_header<>& header) {
  const std::size_t hosts = header.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && header.version() >= 11)) {
    return api_error(400, hosts > 1 ? "the header names two hosts" : "the header names no host");
  }
  const std::size_t codings = header.count(http::field::transfer_encoding);
  if (codings > 1 ||
      (codings == 1 && !beast::iequals(header[http::field::transfer_encoding], "chunked"))) {
    return api_error(501, "no transfer coding but chunked is known here");
  }
  return std::nullopt;
}

bool waits_to_continue(const http::request_header<>& header) {
  return header.version() >= 11 && beast::iequals(header[http::field::expect], "100-continue");
}

/// HEAD is GET, whose answer loses its body (message_of).
ApiRequest request_of(http::request<http::string_body>&& message) {
  const auto header = [&](http::field name) { return text_of(message[name]); };
  return {.method = message.method() == http::verb::head ? "GET" : text_of(message.method_string()),
          .target = text_of(message.target()),
          .host = header(http::field::host),
          .origin = header(http::field::origin),
          .authorization = header(http::field::authorization),
          .content_type = header(http::field::content_type),
          .body = std::move(message.body())};
}

/// The answer to a request that could not be read; none where the connection is at fault.
std::optional<ApiReply> reply_to(const beast::error_code& problem) {
  if (problem == http::error::body_limit) {
    return api_error(413, "the body is too large");
  }
  if (problem == http::error::header_limit) {
    return api_error(431, "the header is too large");
  }
  if (problem == http::error::end_of_stream || problem == http::error::partial_message) {
    return std::nullopt;
  }
  if (problem.category() == beast::error_code(http::error::bad_method).category()) {
    return api_error(400, "malformed request: " + problem.message());
  }
  return std::nullopt;
}

/// What is kept of a request to write its answer.
struct Asked {
  unsigned version = 11;
  bool keep_alive = false;
  bool head = false;  ///< wants the header alone
};

http::response<http::string_body> message_of(ApiReply reply, const Asked& asked) {
  http::response<http::string_body> message(static_cast<http::status>(reply.status), asked.version);
  message.set(http::field::content_type, reply.content_type);
  message.set(http::field::cache_control, "no-store");
  message.set("X-Content-Type-Options", "nosniff");
  message.set("X-Frame-Options", "DENY");
  if (reply.status == 401) {
    message.set(http::field::www_authenticate, "Bearer");
  }
  if (!reply.allow.empty()) {
    message.set(http::field::allow, reply.allow);
  }
  message.keep_alive(asked.keep_alive);
  message.body() = std::move(reply.body);
  message.prepare_payload();
  if (asked.head) {
    message.body().clear();  // its length stays
  }
  return message;
}

}  // namespace

struct HttpServer::Implementation {
  Implementation(const HttpSettings& wanted, Handler answer)
      : settings(wanted),
        handler(std::move(answer)),
        workers(static_cast<std::size_t>(wanted.threads)) {}

  HttpSettings settings;
  Handler handler;
  // Before the context, which may hold the last ones; those that are only refused apart.
  std::atomic<int> connections{0}, refused{0};
  asio::io_context context{1};
  // While answers are worked out elsewhere, the loop has nothing to wait for, but must go on.
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  std::optional<asio::basic_socket_acceptor<asio::ip::tcp>> tcp;
  std::optional<asio::basic_socket_acceptor<asio::local::stream_protocol>> local;
  asio::thread_pool workers;
  std::thread loop;
  std::mutex mutex;
  std::condition_variable idle;
  int answering = 0;
  bool stopping = false;

  template <class Protocol>
  void accept(asio::basic_socket_acceptor<Protocol>& acceptor);
  void begin_answer();
  void end_answer();
  bool is_stopping();
};

namespace {

/// One connection: reads, has it answered, writes, and again.
template <class Protocol, class Server>
class Connection : public std::enable_shared_from_this<Connection<Protocol, Server>> {
 public:
  /// `open`: the count of those of its kind.
  Connection(asio::basic_stream_socket<Protocol> socket, Server& server, std::atomic<int>& open)
      : stream_(std::move(socket)), server_(server), open_(open) {
    ++open_;
  }
  ~Connection() { --open_; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    parser_.emplace();
    parser_->body_limit(static_cast<std::uint64_t>(server_.settings.most_body));
    parser_->header_limit(kMostHeader);
    stream_.expires_after(server_.settings.idle_limit);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code problem, std::size_t) {
          self->header_arrived(problem);
        });
  }

  /// Instead of read(), where there are too many.
  void refuse() { write(api_error(503, "too many connections are open; try again later"), {}); }

 private:
  /// A client that waits to be told so sends its body then: not one that is too large, which the
  /// parser has refused by its length.
  void header_arrived(beast::error_code problem) {
    if (problem) {
      give_up(problem);
    } else if (auto refused = refusal_of(parser_->get().base())) {
      write(std::move(*refused), {});
    } else if (waits_to_continue(parser_->get().base()) && !parser_->is_done()) {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      asio::async_write(stream_, asio::const_buffer(kContinue.data(), kContinue.size()),
                        [self = this->shared_from_this()](beast::error_code unsent, std::size_t) {
                          if (!unsent) {
                            self->read_body();
                          }
                        });
    } else {
      read_body();
    }
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code problem, std::size_t) {
                       self->arrived(problem);
                     });
  }

  void give_up(const beast::error_code& problem) {
    if (auto reply = reply_to(problem)) {
      write(std::move(*reply), {});
    }
  }

  void arrived(beast::error_code problem) {
    if (problem) {
      give_up(problem);
      return;
    }
    stream_.expires_never();
    auto message = parser_->release();
    Asked asked{.version = message.version(),
                .keep_alive = message.keep_alive(),
                .head = message.method() == http::verb::head};
    server_.begin_answer();
    asio::post(server_.workers, [self = this->shared_from_this(), asked,
                                 request = request_of(std::move(message))]() mutable {
      request.gone = [handle = self->stream_.socket().native_handle()] {
        pollfd hung_up{handle, POLLRDHUP, 0};
        return ::poll(&hung_up, 1, 0) > 0;
      };
      ApiReply reply;
      try {
        reply = self->server_.handler(request);
      } catch (const std::exception& error) {
        reply = api_error(500, error.what());
      }
      // The loop alone holds the connection from here on, so that it ends on the loop's thread.
      const auto loop = self->stream_.get_executor();
      asio::post(loop, [self = std::move(self), asked, reply = std::move(reply)]() mutable {
        self->answering_ = true;
        asked.keep_alive = asked.keep_alive && !self->server_.is_stopping();
        self->write(std::move(reply), asked);
      });
    });
  }

  void write(ApiReply reply, const Asked& asked) {
    response_ = message_of(std::move(reply), asked);
    stream_.expires_after(server_.settings.idle_limit);
    http::async_write(stream_, response_,
                      [self = this->shared_from_this(), keep_alive = asked.keep_alive](
                          beast::error_code problem, std::size_t) {
                        if (std::exchange(self->answering_, false)) {
                          self->server_.end_answer();
                        }
                        if (!problem && keep_alive) {
                          self->read();
                        } else {
                          self->part();
                        }
                      });
  }

  /// What the client still sends is read and thrown away, for a while: to close a connection that
  /// holds unread bytes resets it, and the client may lose the answer (413, say) over that.
  void part() {
    beast::error_code ignored;
    stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    stream_.expires_after(kDiscardTime);
    buffer_.clear();
    discard();
  }

  void discard() {
    stream_.async_read_some(
        buffer_.prepare(1 << 16),
        [self = this->shared_from_this()](beast::error_code problem, std::size_t size) {
          self->discarded_ += size;
          if (!problem && self->discarded_ < kMostDiscarded) {
            self->discard();
          }
        });
  }

  beast::basic_stream<Protocol> stream_;
  Server& server_;
  std::atomic<int>& open_;
  beast::flat_buffer buffer_{kMostBuffered};
  std::optional<Parser> parser_;
  http::response<http::string_body> response_;
  bool answering_ = false;
  std::size_t discarded_ = 0;
};

}  // namespace

template <class Protocol>
void HttpServer::Implementation::accept(asio::basic_socket_acceptor<Protocol>& acceptor) {
  acceptor.async_accept(
      [this, &acceptor](beast::error_code problem, asio::basic_stream_socket<Protocol> socket) {
        if (problem == asio::error::operation_aborted || !acceptor.is_open()) {
          return;
        }
        using Accepted = Connection<Protocol, Implementation>;
        if (!problem && connections < settings.most_connections) {
          std::make_shared<Accepted>(std::move(socket), *this, connections)->read();
        } else if (!problem && refused < kMostRefused) {
          std::make_shared<Accepted>(std::move(socket), *this, refused)->refuse();
        }
        if (problem) {  // too many open files, say: not at once again
          auto timer = std::make_shared<asio::steady_timer>(context, std::chrono::milliseconds(50));
          timer->async_wait([this, &acceptor, timer](beast::error_code) { accept(acceptor); });
          return;
        }
        accept(acceptor);
      });
}

void HttpServer::Implementation::begin_answer() {
  const std::scoped_lock lock(mutex);
  ++answering;
}

void HttpServer::Implementation::end_answer() {
  const std::scoped_lock lock(mutex);
  if (--answering == 0) {
    idle.notify_all();
  }
}

bool HttpServer::Implementation::is_stopping() {
  const std::scoped_lock lock(mutex);
  return stopping;
}

namespace {

Error no_threads(const std::string& reason) {
  return Error(fmt::format("cannot start threads: {}", reason));
}

}  // namespace

HttpServer::HttpServer(const HttpSettings& settings, Handler handler) try
    : implementation_(std::make_unique<Implementation>(settings, std::move(handler))) {
  Implementation& server = *implementation_;
  try {
    if (!settings.socket.empty()) {
      std::error_code ignored;
      if (std::filesystem::is_socket(settings.socket, ignored)) {
        beast::error_code refused;
        asio::local::stream_protocol::socket(server.context)
            .connect(asio::local::stream_protocol::endpoint(settings.socket), refused);
        if (!refused) {
          throw Error("another server listens there").at(settings.socket);
        }
        std::filesystem::remove(settings.socket, ignored);  // left by one that was killed
      }
      const mode_t before = ::umask(0077);  // for its owner alone
      try {
        server.local.emplace(server.context,
                             asio::local::stream_protocol::endpoint(settings.socket));
      } catch (...) {
        ::umask(before);
        throw;
      }
      ::umask(before);
      server.accept(*server.local);
    } else {
      server.tcp.emplace(
          server.context,
          asio::ip::tcp::endpoint(asio::ip::make_address(settings.address), settings.port));
      server.accept(*server.tcp);
    }
  } catch (const boost::system::system_error& error) {
    throw Error(fmt::format("cannot listen: {}", error.code().message()))
        .at(settings.socket.empty() ? fmt::format("{}:{}", settings.address, settings.port)
                                    : settings.socket);
  }
  server.loop = std::thread([&server] { server.context.run(); });
} catch (const boost::system::system_error& error) {
  throw no_threads(error.code().message());
} catch (const std::system_error& error) {
  throw no_threads(error.code().message());
}

void HttpServer::stop(std::chrono::milliseconds grace) {
  Implementation& server = *implementation_;
  asio::post(server.context, [&server] {
    beast::error_code ignored;
    if (server.tcp) {
      server.tcp->close(ignored);
    }
    if (server.local) {
      server.local->close(ignored);
    }
  });
  std::unique_lock lock(server.mutex);
  server.stopping = true;
  server.idle.wait_for(lock, grace, [&server] { return server.answering == 0; });
}

HttpServer::~HttpServer() {
  Implementation& server = *implementation_;
  server.context.stop();
  if (server.loop.joinable()) {
    server.loop.join();
  }
  server.workers.stop();
  server.workers.join();
  if (!server.settings.socket.empty()) {
    std::error_code ignored;
    std::filesystem::remove(server.settings.socket, ignored);
  }
}

std::string HttpServer::where() const {
  const Implementation& server = *implementation_;
  if (!server.settings.socket.empty()) {
    return server.settings.socket;
  }
  const auto endpoint = server.tcp->local_endpoint();
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("http://[{}]:{}/", address, endpoint.port())
                                    : fmt::format("http://{}:{}/", address, endpoint.port());
}

int answer_bytes(std::string_view bytes, std::int64_t most_body,
                 const HttpServer::Handler& handler) {
  Parser parser;
  parser.body_limit(static_cast<std::uint64_t>(most_body));
  parser.header_limit(kMostHeader);
  parser.eager(true);
  beast::error_code problem;
  while (!bytes.empty() && !parser.is_done() && !problem) {
    const std::size_t used = parser.put(asio::const_buffer(bytes.data(), bytes.size()), problem);
    if (used == 0 && !problem) {
      break;
    }
    bytes.remove_prefix(used);
  }
  if (problem == http::error::need_more || (!problem && !parser.is_done())) {
    return 0;
  }
  if (problem) {
    const auto reply = reply_to(problem);
    return reply ? static_cast<int>(reply->status) : 0;
  }
  if (const auto refused = refusal_of(parser.get().base())) {
    return refused->status;
  }
  const ApiReply reply = handler(request_of(parser.release()));
  return static_cast<int>(message_of(reply, {}).result_int());
}

}  // namespace lockstep
