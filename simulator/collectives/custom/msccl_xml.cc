#include "simulator/collectives/custom/msccl_xml.h"

#include <algorithm>
#include <array>
#include <exception>
#include <expat.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int32_t kMostChunks = 1 << 20, kMostGpus = 4096, kMostChannels = 1024;

/// The attributes of one element; every one must be asked for.
class Attributes {
 public:
  Attributes(const char** list, std::string element, std::string file, std::size_t line)
      : element_(std::move(element)), file_(std::move(file)), line_(line) {
    for (; *list != nullptr; list += 2) {
      values_[list[0]] = list[1];
    }
  }

  std::string text(const std::string& name) {
    asked_.insert(name);
    const auto found = values_.find(name);
    if (found == values_.end()) {
      throw Error("<" + element_ + "> has no " + name).at(file_, line_);
    }
    return found->second;
  }
  std::int32_t integer(const std::string& name, std::int32_t low, std::int32_t high,
                       std::optional<std::int32_t> absent = std::nullopt) {
    asked_.insert(name);
    if (absent && values_.find(name) == values_.end()) {
      return *absent;
    }
    const std::string value = text(name);
    const auto number = to_int(value);
    if (!number || *number < low || *number > high) {
      throw Error("'" + printable(value) + "' is out of range")
          .at(file_, line_)
          .field(name)
          .expected("a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    }
    return static_cast<std::int32_t>(*number);
  }
  template <std::size_t N>
  std::size_t choice(const std::string& name, const std::array<std::string_view, N>& words) {
    const std::string value = text(name);
    const auto found = std::ranges::find(words, value);
    if (found == words.end()) {
      throw Error("unknown " + name + " '" + printable(value) + "'")
          .at(file_, line_)
          .expected(join(words, ", "));
    }
    return static_cast<std::size_t>(found - words.begin());
  }
  /// Allowed, and of no effect here.
  void ignore(const std::string& name) { asked_.insert(name); }
  void end() const {
    for (const auto& [name, value] : values_) {
      if (!asked_.contains(name)) {
        throw Error("<" + element_ + "> has an unknown attribute '" + printable(name) + "'")
            .at(file_, line_);
      }
    }
  }

 private:
  std::string element_, file_;
  std::size_t line_;
  std::map<std::string, std::string> values_;
  std::set<std::string> asked_;
};

/// Builds the program as the parser meets its elements.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  MscclProgram read(std::string_view text) {
    parser_.reset(XML_ParserCreate(nullptr));
    LOCKSTEP_CHECK(parser_ != nullptr, "an XML parser can be made");
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), on_start, on_end);
    XML_SetStartDoctypeDeclHandler(parser_.get(), on_doctype);
    constexpr std::size_t kBlock = std::size_t{1} << 20;  // expat takes ints
    bool fine = true;
    for (std::size_t begin = 0; fine && (begin == 0 || begin < text.size()); begin += kBlock) {
      const std::string_view block = text.substr(begin, kBlock);
      fine = XML_Parse(parser_.get(), block.data(), static_cast<int>(block.size()),
                       begin + kBlock >= text.size() ? 1 : 0) == XML_STATUS_OK;
    }
    if (problem_) {
      std::rethrow_exception(problem_);
    }
    if (!fine) {
      throw Error(std::string("not well-formed XML: ") +
                  XML_ErrorString(XML_GetErrorCode(parser_.get())))
          .at(file_, line(), XML_GetCurrentColumnNumber(parser_.get()) + 1);
    }
    finish();
    return std::move(program_);
  }

 private:
  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  static void on_start(void* self, const char* name, const char** attributes) {
    static_cast<Reader*>(self)->guarded([&](Reader& r) { r.start(name, attributes); });
  }
  static void on_end(void* self, const char*) {
    static_cast<Reader*>(self)->guarded([](Reader& r) { --r.depth_; });
  }
  static void on_doctype(void* self, const char*, const char*, const char*, int) {
    static_cast<Reader*>(self)->guarded(
        [](Reader& r) { throw r.error("a document type declaration has no place here"); });
  }
  /// No exception may pass through the C library.
  template <class F>
  void guarded(F&& f) {
    if (problem_) {
      return;
    }
    try {
      f(*this);
    } catch (...) {
      problem_ = std::current_exception();
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  std::size_t line() const { return XML_GetCurrentLineNumber(parser_.get()); }
  Error error(std::string message) const { return Error(std::move(message)).at(file_, line()); }

  void start(const std::string& name, const char** list) {
    static constexpr std::array<std::string_view, 4> kElements = {"algo", "gpu", "tb", "step"};
    if (depth_ >= kElements.size() || name != kElements[depth_]) {
      throw error("<" + printable(name) + "> has no place here")
          .expected(depth_ < kElements.size() ? "<" + std::string(kElements[depth_]) + ">"
                                              : std::string("no element"));
    }
    Attributes attributes(list, name, file_, line());
    switch (depth_++) {
      case 0:
        algo(attributes);
        break;
      case 1:
        gpu(attributes);
        break;
      case 2:
        block(attributes);
        break;
      default:
        step(attributes);
    }
    attributes.end();
  }

  void algo(Attributes& a) {
    static constexpr std::array<std::string_view, 7> kOps = {
        "allreduce", "allgather", "reduce_scatter", "reducescatter",
        "alltoall",  "broadcast", "reduce"};
    static constexpr std::array kTypes = {CommType::kAllReduce,     CommType::kAllGather,
                                          CommType::kReduceScatter, CommType::kReduceScatter,
                                          CommType::kAllToAll,      CommType::kBroadcast,
                                          CommType::kReduce};
    program_.name = a.text("name");
    program_.op = kTypes[a.choice("coll", kOps)];
    program_.chunks = a.integer("nchunksperloop", 1, kMostChunks);
    program_.in_place = a.integer("inplace", 0, 1, 0) == 1;
    channels_ = a.integer("nchannels", 1, kMostChannels);
    gpus_ = a.integer("ngpus", 2, kMostGpus);
    for (const char* name : {"proto", "redop", "minBytes", "maxBytes", "outofplace", "nthreads"}) {
      a.ignore(name);
    }
  }

  void check_id(std::int32_t id, std::size_t next, const char* what) const {
    if (id != static_cast<std::int32_t>(next)) {
      throw error(std::string(what) + " " + std::to_string(id) + " comes where " +
                  std::to_string(next) + " is expected")
          .hint("ids count up from 0 in the order of the file");
    }
  }

  void gpu(Attributes& a) {
    check_id(a.integer("id", 0, gpus_ - 1), program_.gpus.size(), "gpu");
    MscclGpu gpu;
    gpu.input = a.integer("i_chunks", 0, kMostChunks);
    gpu.output = a.integer("o_chunks", 0, kMostChunks);
    gpu.scratch = a.integer("s_chunks", 0, kMostChunks, 0);
    gpu.line = line();
    program_.gpus.push_back(std::move(gpu));
  }

  void block(Attributes& a) {
    MscclGpu& gpu = program_.gpus.back();
    check_id(a.integer("id", 0, kMostChunks), gpu.blocks.size(), "tb");
    MscclBlock block;
    block.send_to = a.integer("send", -1, gpus_ - 1);
    block.receive_from = a.integer("recv", -1, gpus_ - 1);
    block.channel = a.integer("chan", 0, channels_ - 1);
    block.line = line();
    const auto self = static_cast<std::int32_t>(program_.gpus.size()) - 1;
    if (block.send_to == self || block.receive_from == self) {
      throw error("a block talks to its own GPU");
    }
    for (const MscclBlock& other : gpu.blocks) {
      const bool same_send = block.send_to >= 0 && other.send_to == block.send_to;
      const bool same_receive = block.receive_from >= 0 && other.receive_from == block.receive_from;
      if (other.channel == block.channel && (same_send || same_receive)) {
        throw error("two blocks of GPU " + std::to_string(self) +
                    " have the same peer on channel " + std::to_string(block.channel));
      }
    }
    gpu.blocks.push_back(std::move(block));
  }

  MscclRange range(Attributes& a, const char* buffer, const char* offset, std::int32_t count,
                   bool used) {
    static constexpr std::array<std::string_view, 3> kBuffers = {"i", "o", "s"};
    const MscclGpu& gpu = program_.gpus.back();
    MscclRange range;
    range.buffer = static_cast<MscclRange::Buffer>(a.choice(buffer, kBuffers));
    const std::array sizes = {gpu.input, gpu.output, gpu.scratch};
    const std::int32_t size = sizes[static_cast<std::size_t>(range.buffer)];
    range.offset = a.integer(offset, -1, kMostChunks);
    if (used && (range.offset < 0 || range.offset + count > size)) {
      throw error("chunks " + std::to_string(range.offset) + " … " +
                  std::to_string(range.offset + count - 1) + " are outside a buffer of " +
                  std::to_string(size))
          .field(offset);
    }
    return range;
  }

  void step(Attributes& a) {
    static constexpr std::array<std::string_view, 9> kTypes = {"s",    "r",   "rcs", "rrs", "rrc",
                                                               "rrcs", "cpy", "re",  "nop"};
    MscclBlock& block = program_.gpus.back().blocks.back();
    check_id(a.integer("s", 0, kMostChunks), block.steps.size(), "step");
    const std::string_view type = kTypes[a.choice("type", kTypes)];
    MscclStep step;
    step.local = type == "cpy" || type == "re";
    step.receives = type.starts_with('r') && type != "re";
    step.reduces = type == "re" || type.starts_with("rr");
    step.copies = type == "r" || type == "rcs" || type == "rrc" || type == "rrcs" || step.local;
    step.sends = type == "s" || type == "rcs" || type == "rrs" || type == "rrcs";
    const bool idle = type == "nop";
    step.count = a.integer("cnt", idle ? 0 : 1, kMostChunks, idle ? 0 : 1);
    const bool reads = type == "s" || step.reduces || step.local;
    step.source = range(a, "srcbuf", "srcoff", step.count, reads);
    step.destination = range(a, "dstbuf", "dstoff", step.count, step.copies);
    step.after_block = a.integer("depid", -1, kMostChunks, -1);
    step.after_step = a.integer("deps", -1, kMostChunks, -1);
    a.ignore("hasdep");
    step.line = line();
    if ((step.receives && block.receive_from < 0) || (step.sends && block.send_to < 0)) {
      throw error("step of type " + std::string(type) + " in a block without that peer");
    }
    block.steps.push_back(step);
  }

  /// What only the whole file can tell.
  void finish() {
    if (static_cast<std::int32_t>(program_.gpus.size()) != gpus_) {
      throw Error("ngpus is " + std::to_string(gpus_) + ", but there are " +
                  std::to_string(program_.gpus.size()) + " <gpu>")
          .at(file_);
    }
    for (const MscclGpu& gpu : program_.gpus) {
      for (const MscclBlock& block : gpu.blocks) {
        for (const MscclStep& step : block.steps) {
          check_dependency(gpu, step);
        }
      }
    }
  }
  void check_dependency(const MscclGpu& gpu, const MscclStep& step) const {
    if (step.after_block < 0) {
      return;
    }
    const auto b = static_cast<std::size_t>(step.after_block);
    if (b >= gpu.blocks.size() || step.after_step < 0 ||
        static_cast<std::size_t>(step.after_step) >= gpu.blocks[b].steps.size()) {
      throw Error("depends on step " + std::to_string(step.after_step) + " of block " +
                  std::to_string(step.after_block) + ", which is not there")
          .at(file_, step.line)
          .field("depid");
    }
  }

  std::string file_;
  std::unique_ptr<XML_ParserStruct, Free> parser_;
  MscclProgram program_;
  std::int32_t gpus_ = 0, channels_ = 0;
  std::size_t depth_ = 0;
  std::exception_ptr problem_;
};

}  // namespace

MscclProgram parse_msccl_xml(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

}  // namespace lockstep
