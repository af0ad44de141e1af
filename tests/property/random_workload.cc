#include "tests/property/random_workload.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "workloads/simai_names.h"

namespace lockstep::testing {
namespace {

bool coin(Rng& rng) { return rng.below(2) == 0; }

/// Small, middling and huge ones alike.
std::int64_t magnitude(Rng& rng, std::int64_t limit) {
  const std::int64_t high = std::int64_t{1} << rng.between(0, 62);
  return rng.between(0, std::min(high, limit));
}

template <class Items>
void shuffle(Rng& rng, Items& items) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[rng.below(i)]);
  }
}

LayerPhase random_phase(Rng& rng, GroupKind plain) {
  static constexpr std::array kComms{CommType::kNone,      CommType::kAllReduce,
                                     CommType::kAllGather, CommType::kReduceScatter,
                                     CommType::kAllToAll,  CommType::kBroadcast};
  const std::array groups{plain, GroupKind::kEp, GroupKind::kDpEp};
  LayerPhase phase;
  phase.compute = Time::ns(magnitude(rng, std::int64_t{9'000'000'000'000'000}));
  phase.bytes = Bytes(magnitude(rng, INT64_MAX));
  phase.comm = kComms[rng.below(kComms.size())];
  phase.group = phase.comm == CommType::kNone ? plain : groups[rng.below(groups.size())];
  return phase;
}

std::string random_word(Rng& rng) {
  static constexpr std::string_view kLetters = "abcXYZ019_:.-*/#\"\\\xC3\xA9";
  std::string word = "w";
  for (std::uint64_t n = rng.below(8); n > 0; --n) {
    const std::size_t i = rng.below(kLetters.size() - 1);
    word += i >= kLetters.size() - 2 ? std::string(kLetters.substr(kLetters.size() - 2))
                                     : std::string(1, kLetters[i]);
  }
  return word;
}

std::vector<std::int32_t> random_layers(Rng& rng, std::size_t layers) {
  std::vector<std::int32_t> ids;
  for (std::uint64_t n = rng.below(4); n > 0; --n) {
    ids.push_back(static_cast<std::int32_t>(rng.below(layers)));
  }
  return ids;
}

SimaiHeader random_header(Rng& rng, const LayerTable& table) {
  SimaiHeader header;
  for (int key = 0; key <= static_cast<int>(SimaiKey::kCheckpointInitiates); ++key) {
    header.fields.push_back({static_cast<SimaiKey>(key), ""});
  }
  header.fields.push_back({coin(rng) ? SimaiKey::kPpComm : SimaiKey::kPpCommNoColon, ""});
  for (std::uint64_t n = rng.below(3); n > 0; --n) {
    header.fields.push_back({SimaiKey::kOther, random_word(rng)});
  }
  shuffle(rng, header.fields);
  header.pp_comm_float =
      coin(rng) &&
      table.pp_comm_bytes == static_cast<double>(static_cast<std::int64_t>(table.pp_comm_bytes));
  return header;
}

void number_names(Rng& rng, LayerTable& table) {
  std::vector<std::string> pool;
  for (int i = 0; i < 6; ++i) {
    pool.push_back(random_word(rng) + std::to_string(i));
  }
  for (Layer& layer : table.layers) {
    const std::string& name = pool[rng.below(pool.size())];
    const auto found = std::find(table.names.begin(), table.names.end(), name);
    layer.name = static_cast<std::int32_t>(found - table.names.begin());
    if (found == table.names.end()) {
      table.names.push_back(name);
    }
  }
}

/// Programs of a job under construction: each rank's list grows in step with the others'.
class OpJobBuilder {
 public:
  OpJobBuilder(Rng& rng, std::int32_t gpus) : rng_(rng), gpus_(gpus) {
    // One program for all ranks, or one a rank.
    if (coin(rng)) {
      OpProgram program;
      program.ranks = {{0, gpus, 1}};
      table_.programs.push_back(program);
    } else {
      for (std::int32_t rank = 0; rank < gpus; ++rank) {
        OpProgram program;
        program.ranks = {{rank, rank + 1, 1}};
        table_.programs.push_back(program);
      }
    }
    for (OpProgram& program : table_.programs) {
      program.streams = {"compute", "a \"quoted\" stream"};
      if (coin(rng)) {
        std::swap(program.streams[0], program.streams[1]);
      }
    }
    add_family("tp", 2);
    add_family("dp", gpus);
  }

  void add_step() {
    switch (rng_.below(3)) {
      case 0:
        for (OpProgram& program : table_.programs) {
          Op op;
          op.compute = Time::ps(magnitude(rng_, INT64_MAX));
          push(program, op);
        }
        break;
      case 1: {
        Op op;
        op.comm = coin(rng_) ? CommType::kAllReduce : CommType::kBarrier;
        op.group = static_cast<std::int32_t>(rng_.below(table_.groups.size()));
        op.bytes = Bytes(magnitude(rng_, INT64_MAX));
        for (OpProgram& program : table_.programs) {
          push(program, op);
        }
        break;
      }
      default:
        add_message();
    }
  }

  OpTable take() { return std::move(table_); }

 private:
  void add_family(std::string name, std::int32_t size) {
    GroupFamily family;
    family.name = std::move(name);
    for (std::int32_t first = 0; first < gpus_; first += size) {
      std::vector<std::int32_t> members;
      for (std::int32_t rank = first; rank < std::min(first + size, gpus_); ++rank) {
        members.push_back(rank);
      }
      shuffle(rng_, members);
      family.members.push_back(std::move(members));
    }
    shuffle(rng_, family.members);
    table_.groups.push_back(std::move(family));
  }

  void add_message() {
    if (table_.programs.size() < 2) {
      return;
    }
    const std::size_t from = rng_.below(table_.programs.size());
    const std::size_t to =
        (from + 1 + rng_.below(table_.programs.size() - 1)) % table_.programs.size();
    Op op;
    op.comm = CommType::kSendRecv;
    op.bytes = Bytes(magnitude(rng_, 1'000'000'000'000));
    op.send = true;
    op.peer = static_cast<std::int32_t>(to);
    push(table_.programs[from], op);
    op.send = false;
    op.peer = static_cast<std::int32_t>(from);
    push(table_.programs[to], op);
  }

  void push(OpProgram& program, Op op) {
    op.name = coin(rng_) ? random_word(rng_) : "";
    op.stream = static_cast<std::int32_t>(rng_.below(2));
    for (std::uint64_t n = program.ops.empty() ? 0 : rng_.below(3); n > 0; --n) {
      op.after.push_back(static_cast<std::int32_t>(rng_.below(program.ops.size())));
    }
    op.type = static_cast<OpType>(rng_.below(kOpTypes));
    op.microbatch = static_cast<std::int32_t>(rng_.between(-1, 5));
    op.chunk = static_cast<std::int32_t>(rng_.between(-1, 2));
    program.ops.push_back(std::move(op));
  }

  Rng& rng_;
  std::int32_t gpus_;
  OpTable table_;
};

}  // namespace

WorkloadJob random_layer_job(Rng& rng) {
  LayerTable table;
  table.policy = simai_policies()[rng.below(simai_policies().size())];
  table.layers.resize(1 + rng.below(30));
  number_names(rng, table);
  for (Layer& layer : table.layers) {
    layer.dependency =
        coin(rng) ? -1 : static_cast<std::int32_t>(rng.between(INT32_MIN, INT32_MAX));
    layer.forward = random_phase(rng, GroupKind::kTp);
    layer.input_grad = random_phase(rng, GroupKind::kTp);
    layer.weight_grad = random_phase(rng, GroupKind::kDp);
    layer.update = Time::ns(rng.between(0, 1000));
    if (table.policy == kCustomizedPolicy) {
      table.layer_policies.emplace_back(simai_policies()[rng.below(simai_policies().size())]);
    }
  }
  table.pp_comm_bytes = coin(rng) ? static_cast<double>(magnitude(rng, std::int64_t{1} << 53))
                                  : rng.uniform() * static_cast<double>(magnitude(rng, 1 << 30));
  table.mode = rng.between(0, 1);
  table.checkpoints = random_layers(rng, table.layers.size());
  table.checkpoint_initiates = random_layers(rng, table.layers.size());
  table.header = random_header(rng, table);
  WorkloadJob job;
  job.parallel = {.gpus = 1 + magnitude(rng, kMaxGpus - 1),
                  .tp = 1 + magnitude(rng, kMaxGpus - 1),
                  .ep = rng.between(1, 64),
                  .pp = rng.between(1, 64),
                  .vpp = rng.between(0, 8),
                  .ga = rng.between(0, 4096)};
  job.work = std::move(table);
  return job;
}

WorkloadJob random_op_job(Rng& rng) {
  const auto gpus = static_cast<std::int32_t>(rng.between(1, 9));
  OpJobBuilder builder(rng, gpus);
  for (std::uint64_t n = rng.below(20); n > 0; --n) {
    builder.add_step();
  }
  WorkloadJob job;
  job.parallel.gpus = gpus;
  do {
    job.parallel.cp = rng.between(1, 4);
  } while (gpus % job.parallel.cp != 0);
  job.work = builder.take();
  return job;
}

}  // namespace lockstep::testing
