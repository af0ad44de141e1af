#include "generator/exact/pass_ops.h"

#include <algorithm>
#include <utility>

namespace lockstep {

StageStream stream_of(const PassComm& transfer) {
  if (transfer.comm == CommType::kSendRecv) {
    return transfer.group == RankGroup::kTp ? (transfer.send ? kTpSendStream : kTpReceiveStream)
           : transfer.send                  ? kCpSendStream
                                            : kCpReceiveStream;
  }
  switch (transfer.group) {
    case RankGroup::kCp:
      return kCpStream;
    case RankGroup::kEp:
    case RankGroup::kExpertTp:
      return kEpStream;
    default:
      return kTpStream;
  }
}

Op op_of(const FoldedStep& step, std::string name, Families& families) {
  Op op;
  op.name = std::move(name);
  const PassComm& transfer = step.transfer;
  op.comm = transfer.comm;
  if (transfer.comm == CommType::kNone) {
    op.stream = kComputeStream;
    op.compute = step.compute;
    op.host = step.host;
    return op;
  }
  op.stream = stream_of(transfer);
  op.group = families.of(transfer.group);
  op.bytes = transfer.bytes;
  if (transfer.comm == CommType::kSendRecv) {
    op.send = transfer.send;
    op.peer = transfer.send ? 1 : -1;
  }
  return op;
}

std::vector<std::int32_t> joined(std::vector<std::int32_t> a, const std::vector<std::int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::ranges::sort(a);
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

}  // namespace lockstep
