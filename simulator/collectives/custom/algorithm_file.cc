#include "simulator/collectives/custom/algorithm_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "simulator/collectives/check.h"
#include "simulator/collectives/custom/msccl_schedule.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr double kMostProofBits = 16e9;
constexpr std::int64_t kMostProofTransfers = 50'000'000;

Schedule sized(const NamedSchedule& named, const std::string& file,
               const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = named.schedule;
  if (schedule.ranks != shape.ranks) {
    throw Error("the algorithm is for " + std::to_string(schedule.ranks) +
                " ranks, the group has " + std::to_string(shape.ranks))
        .at(file);
  }
  const bool rooted = request.op == CommType::kBroadcast || request.op == CommType::kReduce;
  if (rooted && request.root != schedule.root) {
    throw Error("the algorithm's root is rank " + std::to_string(schedule.root))
        .at(file)
        .field("root");
  }
  const std::int64_t parts = request.op == CommType::kAllToAll   ? shape.ranks
                             : request.op == CommType::kSendRecv ? 1
                                                                 : schedule.chunks;
  schedule.chunk_bytes = request.op == CommType::kBarrier
                             ? Bytes(1)
                             : part_size(request.bytes, parts, CollectiveFlavour::kDefault);
  // check_schedule() keeps a bit for each place, chunk and rank, and every transfer.
  const double bits = static_cast<double>(schedule.places()) * schedule.chunks * schedule.ranks;
  if (bits > kMostProofBits || schedule.transfer_count() > kMostProofTransfers) {
    throw Error("the algorithm is too large to be proved right")
        .at(file)
        .expected("places x chunks x ranks up to 16e9, and 50 million transfers");
  }
  if (const std::string problem = check_schedule(schedule); !problem.empty()) {
    throw Error("the algorithm is wrong: " + problem).at(file);
  }
  return schedule;
}

}  // namespace

const std::string& UserAlgorithm::name() const {
  return std::visit([](const auto& w) -> const std::string& { return w.name; }, what);
}

CommType UserAlgorithm::op() const {
  const auto* program = std::get_if<MscclProgram>(&what);
  return program != nullptr ? program->op : std::get<NamedSchedule>(what).schedule.op;
}

Schedule UserAlgorithm::build(const CollectiveRequest& request, const GroupShape& shape) const {
  if (request.op != op()) {
    throw Error("the algorithm is for " + std::string(name_of(op())) + ", not for " +
                std::string(name_of(request.op)))
        .at(file);
  }
  if (!request.sizes.empty()) {
    throw Error("an algorithm from a file cannot give ranks different sizes").at(file);
  }
  const auto* program = std::get_if<MscclProgram>(&what);
  return program != nullptr ? msccl_schedule(*program, file, request, shape)
                            : sized(std::get<NamedSchedule>(what), file, request, shape);
}

UserAlgorithm parse_algorithm(std::string_view text, const std::string& file) {
  const std::string_view content = trim(text);
  if (content.starts_with('<')) {
    return {file, parse_msccl_xml(text, file)};
  }
  if (content.starts_with('{')) {
    return {file, parse_schedule_json(text, file)};
  }
  throw Error("is no algorithm")
      .at(file, 1)
      .expected("MSCCL's XML, which starts with '<', or our JSON, which starts with '{'");
}

UserAlgorithm read_algorithm_file(const std::string& path) {
  const FileText file(path, Bytes(std::int64_t{1} << 30));
  return parse_algorithm(file.view(), path);
}

}  // namespace lockstep
