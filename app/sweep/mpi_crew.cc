// The module liblockstep-mpi.so: letters over Boost.MPI.
#include <list>
#include <utility>
#include <vector>

#include <boost/mpi.hpp>

#include "app/sweep/crew.h"

namespace lockstep {
namespace {

namespace mpi = boost::mpi;

class MpiCrew final : public Crew {
 public:
  ~MpiCrew() override {
    for (Sending& sending : sending_) {
      sending.request.wait();
    }
  }

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }

  void send(int to, std::string text) override {
    std::erase_if(sending_, [](Sending& sending) { return sending.request.test().has_value(); });
    Sending& sending = sending_.emplace_back();
    sending.text = std::move(text);
    sending.request =
        world_.isend(to, kTag, sending.text.data(), static_cast<int>(sending.text.size()));
  }

  std::optional<CrewMessage> receive() override {
    const auto waiting = world_.iprobe(mpi::any_source, kTag);
    if (!waiting) {
      return std::nullopt;
    }
    CrewMessage message{
        waiting->source(),
        std::string(static_cast<std::size_t>(waiting->count<char>().value_or(0)), '\0')};
    world_.recv(message.from, kTag, message.text.data(), static_cast<int>(message.text.size()));
    return message;
  }

 private:
  static constexpr int kTag = 1;
  struct Sending {
    std::string text;
    mpi::request request;
  };

  // Not to abort on exceptions: the coordinator stops its workers and says what is wrong itself.
  mpi::environment environment_{mpi::threading::funneled, false};
  mpi::communicator world_;
  std::list<Sending> sending_;
};

std::unique_ptr<Crew> join() { return std::make_unique<MpiCrew>(); }

}  // namespace
}  // namespace lockstep

extern "C" {
extern const lockstep::MpiModule lockstep_mpi_module;
const lockstep::MpiModule lockstep_mpi_module = {lockstep::join};
}
