#include "app/step_score/published_steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "app/step_score/csv_table.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/missing_path.h"
#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/stage_plan.h"
#include "generator/model/zoo.h"

namespace lockstep {
namespace {

/// Of an operator in PyTorch's eager mode with Megatron-LM of 2021: calibrated on the odd rows of
/// vTrain's one-node table, where small kernels leave the GPU waiting (docs/models.md).
constexpr Time kEagerLaunch = Time::us(125);

Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocabulary,
          std::int64_t positions) {
  return find_model("gpt", {{"layers", static_cast<double>(layers)},
                            {"hidden", static_cast<double>(hidden)},
                            {"heads", static_cast<double>(heads)},
                            {"vocabulary", static_cast<double>(vocabulary)},
                            {"positions", static_cast<double>(positions)}});
}

void as_megatron_2021(Job& job) {
  job.precision = Precision::kFp16;
  job.flash_attention = false;
  job.dropout = true;
  job.host_launch = kEagerLaunch;
}

void as_megatron_core(Job& job) {
  job.sequence_parallel = job.tp > 1;
  job.sharding = job.dp() > 1 ? Sharding::kZero1 : Sharding::kNone;
}

/// Servers of eight with a NIC a GPU; racks of 64 GPUs in one NVLink domain. Spines have ports for
/// the largest (app), as the cores of three tiers would.
std::string cluster(const std::string& gpu, std::int64_t gpus, int nic_gbps) {
  struct Servers {
    std::string_view gpu;
    int nvlink_gbps, size;
  };
  constexpr std::array<Servers, 8> kServers{{{"A100", 2400, 8},
                                             {"A100-40GB", 2400, 8},
                                             {"H100", 3600, 8},
                                             {"H200", 3600, 8},
                                             {"B200", 7200, 8},
                                             {"B300", 7200, 8},
                                             {"GB200", 7200, 64},
                                             {"GB300", 7200, 64}}};
  const auto* servers =
      std::ranges::find_if(kServers, [&](const Servers& each) { return each.gpu == gpu; });
  LOCKSTEP_CHECK(servers != kServers.end(), "a GPU with a server");
  const std::int64_t size = servers->size > 8 && gpus % servers->size != 0 ? 8 : servers->size;
  return fmt::format("Spectrum-X:g={},gps={},gt={},nvbw={}Gbps,bw={}Gbps,apbw={}Gbps,app=4096",
                     (gpus + size - 1) / size * size, size, gpu.substr(0, gpu.find('-')),
                     servers->nvlink_gbps, nic_gbps, nic_gbps);
}

class Reader {
 public:
  explicit Reader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  PublishedSteps read() {
    vtrain("vtrain_a100_single_node_steps.csv", "vTrain, one node", "A100-40GB", false);
    vtrain("vtrain_a100_multi_node_steps.csv", "vTrain, several nodes", "A100", true);
    korthikanti("megatron_seqsel_table5.csv");
    training("training-steps.csv");
    if (!any_ && !is_folder(folder_.string())) {
      throw Error("there is no such folder")
          .at(folder_.string())
          .expected("a folder of tables of published steps")
          .hint(hint_of_missing(folder_.string()));
    }
    if (!any_) {
      throw Error("none of the tables of published steps is in this folder").at(folder_.string());
    }
    return std::move(out_);
  }

 private:
  std::optional<CsvTable> open(const std::string& name) {
    const std::filesystem::path path = folder_ / name;
    if (!path_exists(path.string())) {
      return std::nullopt;
    }
    any_ = true;
    const FileText text(path.string());
    return CsvTable(text.view(), path.string());
  }

  void skip(const std::string& source, const std::string& why) {
    ++out_.skipped[fmt::format("{}: {}", source, why)];
  }

  void add(std::string source, const std::string& file, std::size_t row, Job job, int nic_gbps,
           double measured_s) {
    const std::string topology = cluster(job.gpu_type, job.gpus, nic_gbps);
    out_.steps.push_back({std::move(source), file, static_cast<std::int64_t>(row) + 1,
                          std::move(job), topology, measured_s});
  }

  /// Megatron-LM's GPT; the larger models ran with recomputation (section 5).
  void vtrain(const std::string& file, const std::string& source, const std::string& gpu,
              bool recompute) {
    const std::optional<CsvTable> table = open(file);
    for (std::size_t row = 0; table && row < table->rows(); ++row) {
      const auto at = [&](const char* column) {
        return std::max<std::int64_t>(1, table->whole(row, column).value_or(0));
      };
      Job job;
      job.seq = at("sequence length");
      job.model = gpt(at("# layers"), at("hidden size"), at("attention heads"), 51200, job.seq);
      job.gpu_type = gpu;
      job.gpus = at("# GPUs");
      job.global_batch = at("global batch");
      job.micro_batch = at("micro batch");
      job.tp = at("tensor parallelism");
      job.pp = at("pipeline parallelism");
      job.recompute = recompute ? Recompute::kFull : Recompute::kNone;
      as_megatron_2021(job);
      add(source, file, row, std::move(job), 200,
          table->number(row, "iteration time (ms)").value_or(0) / 1e3);
    }
  }

  /// The models are those of the paper's table 3; a DGX A100 has a NIC of 200 Gb/s a GPU.
  void korthikanti(const std::string& file) {
    struct Sizes {
      std::string_view name;
      std::int64_t layers, hidden, heads;
    };
    constexpr std::array<Sizes, 4> kModels{{{"megatron-22B", 48, 6144, 64},
                                            {"gpt3-175B", 96, 12288, 96},
                                            {"turing-530B", 105, 20480, 128},
                                            {"megatron-1T", 128, 25600, 160}}};
    const std::optional<CsvTable> table = open(file);
    for (std::size_t row = 0; table && row < table->rows(); ++row) {
      const std::string source = "Korthikanti table 5";
      const auto* model = std::ranges::find_if(
          kModels, [&](const Sizes& each) { return each.name == table->text(row, "model"); });
      if (model == kModels.end()) {
        skip(source, "no such model in the paper's table 3");
        continue;
      }
      const auto at = [&](const char* column) {
        return std::max<std::int64_t>(1, table->whole(row, column).value_or(0));
      };
      Job job;
      job.seq = 2048;
      job.model = gpt(model->layers, model->hidden, model->heads, 51200, job.seq);
      job.gpu_type = "A100";
      job.recompute =
          table->text(row, "recompute") == "full" ? Recompute::kFull : Recompute::kSelective;
      job.sequence_parallel = table->text(row, "seq_par") == "1";
      job.gpus = at("gpus");
      job.tp = at("tp");
      job.pp = at("pp");
      job.vpp = at("vpp");
      job.global_batch = at("global_batch");
      job.micro_batch = at("micro_batch");
      as_megatron_2021(job);
      add(source, file, row, std::move(job), 200, table->number(row, "measured_s").value_or(0));
    }
  }

  static std::string source_of(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSources{
        {{"Narayanan", "SC'21 table 1"},
         {"Megatron-Bridge", "Megatron-Bridge"},
         {"dgxc-benchmarking", "dgxc"},
         {"llm-foundry", "llm-foundry (FSDP)"},
         {"bigscience", "BLOOM prequel"},
         {"Megatron-Turing", "MT-NLG"},
         {"Korthikanti", ""}}};  // its own table has more
    for (const auto& [part, name] : kSources) {
      if (text.find(part) != text.npos) {
        return std::string(name);
      }
    }
    const std::size_t version = text.find("training_results_v");
    return version == text.npos ? std::string()
                                : fmt::format("MLPerf {}", text.substr(version + 18, 3));
  }

  static std::string gpu_of(const std::string& text) {
    const std::string name = to_lower(text);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kGpus{
        {{"gb300", "GB300"},
         {"gb200", "GB200"},
         {"b300", "B300"},
         {"b200", "B200"},
         {"h200", "H200"},
         {"h100", "H100"},
         {"a100_40", "A100-40GB"},
         {"a100", "A100"}}};
    for (const auto& [part, gpu] : kGpus) {
      if (name.find(part) != name.npos && find_gpu_spec(gpu) != nullptr) {
        return std::string(gpu);
      }
    }
    return {};
  }

  static std::optional<Model> model_of(const CsvTable& table, std::size_t row) {
    const std::string name = to_lower(table.text(row, "model"));
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    struct Known {
      std::string_view family, size, zoo;
    };
    constexpr std::array<Known, 13> kKnown{{{"llama", "405b", "llama3.1-405b"},
                                            {"llama2", "70b", "llama2-70b"},
                                            {"llama", "70b", "llama3-70b"},
                                            {"llama3", "8b", "llama3-8b"},
                                            {"deepseek", "v3", "deepseek-v3"},
                                            {"qwen3", "235b", "qwen3-235b-a22b"},
                                            {"qwen3", "30b_a3b", "qwen3-30b-a3b"},
                                            {"mixtral", "8x7b", "mixtral-8x7b"},
                                            {"llama4", "maverick", "llama4-maverick"},
                                            {"gpt oss", "120b", "gpt-oss-120b"},
                                            {"kimi", "k2", "kimi-k2"},
                                            {"nemotron4", "15b", "nemotron4-15b"},
                                            {"nemotron4", "340b", "nemotron4-340b"}}};
    for (const Known& each : kKnown) {
      if (has(each.family) && has(each.size)) {
        return find_model(each.zoo);
      }
    }
    const auto layers = table.whole(row, "layers"), hidden = table.whole(row, "hidden");
    const auto heads = table.whole(row, "heads"), seq = table.whole(row, "seq");
    if (!layers || !hidden || !heads || !seq || *heads < 1 || *hidden % *heads != 0 ||
        !(has("gpt") || has("mpt") || has("mt-nlg"))) {
      return std::nullopt;
    }
    return gpt(*layers, *hidden, *heads, table.whole(row, "vocab").value_or(51200), *seq);
  }

  /// false: no precision that is modelled. Megatron-Bridge's recipes say FP8 for FP8-CS.
  static bool set_precision(std::string text, const std::string& source, Job& job) {
    text = to_lower(text);
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    if (has("nvfp4")) {
      return false;
    }
    if (has("fp8")) {
      job.precision = Precision::kFp8;
      job.fp8_recipe = has("mx")                                  ? Fp8Recipe::kMxfp8
                       : has("cs") || source == "Megatron-Bridge" ? Fp8Recipe::kTensorwise
                                                                  : Fp8Recipe::kDelayed;
      return true;
    }
    job.precision = text == "fp16" ? Precision::kFp16 : Precision::kBf16;
    return has("bf16") || has("fp16");
  }

  void training(const std::string& file) {
    const std::optional<CsvTable> table = open(file);
    for (std::size_t row = 0; table && row < table->rows(); ++row) {
      const std::string source = source_of(table->text(row, "source"));
      if (source.empty()) {
        continue;
      }
      std::string why = training_row(*table, row, source, file);
      if (!why.empty()) {
        skip(source, why);
      }
    }
  }

  /// "GPT 181B" has 12 layers hidden^2 + vocabulary hidden parameters, within 3 %.
  static bool contradicts_its_name(const CsvTable& table, std::size_t row) {
    const std::string& name = table.text(row, "model");
    const std::size_t at = name.find(' ');
    double billions = 0;
    if (at == name.npos ||
        std::from_chars(name.data() + at + 1, name.data() + name.size(), billions).ec !=
            std::errc()) {
      return false;
    }
    const auto layers = static_cast<double>(table.whole(row, "layers").value_or(0));
    const auto hidden = static_cast<double>(table.whole(row, "hidden").value_or(0));
    const auto vocabulary = static_cast<double>(table.whole(row, "vocab").value_or(51200));
    return std::abs((12 * layers * hidden + vocabulary) * hidden / (1e9 * billions) - 1) > 0.03;
  }

  /// Megatron-Bridge's column of Megatron-FSDP's group size, kept in the note.
  static bool fsdp(const CsvTable& table, std::size_t row) {
    const std::string& note = table.text(row, "note");
    const std::size_t at = note.find("FSDP column: ");
    return at != note.npos && at + 13 < note.size() && note[at + 13] != '0';
  }

  /// Empty, or why the row is passed over.
  std::string training_row(const CsvTable& table, std::size_t row, const std::string& source,
                           const std::string& file) {
    const std::optional<double> measured = table.number(row, "time_per_iter_s");
    std::optional<Model> model = model_of(table, row);
    Job job;
    job.gpu_type = gpu_of(table.text(row, "gpu"));
    if (!measured || *measured <= 0) {
      return "no time";
    }
    if (!model) {
      return "a model that is not known";
    }
    if (job.gpu_type.empty()) {
      return "a GPU that is not known";
    }
    const auto gpus = table.whole(row, "n_gpus"), batch = table.whole(row, "gbs");
    const auto seq = table.whole(row, "seq");
    if (!gpus || !batch || !seq) {
      return "GPUs, batch or sequence is missing";
    }
    const auto degree = [&](const char* column) {
      return std::max<std::int64_t>(1, table.whole(row, column).value_or(1));
    };
    job.model = std::move(*model);
    job.gpus = *gpus;
    job.global_batch = *batch;
    job.seq = *seq;
    job.micro_batch = degree("mbs");
    job.tp = degree("tp");
    job.pp = degree("pp");
    job.vpp = job.pp > 1 ? degree("vpp") : 1;  // recipes keep it where it is without effect
    job.cp = degree("cp");
    job.ep = degree("ep");
    job.expert_tp = job.ep > 1 ? 1 : 0;  // Megatron-Core: experts are not cut
    if (job.gpus % (job.tp * job.pp * job.cp) != 0) {
      return "the degrees do not divide the GPUs";
    }
    if (table.text(row, "source").find("LoRA") != std::string::npos) {
      return "low-rank adapters, which are not modelled";
    }
    if (source == "BLOOM prequel" && contradicts_its_name(table, row)) {
      return "layers and width are not of the size in its name";
    }
    if (source.starts_with("MLPerf 5") && job.pp > 1) {
      job.vpp = 8;  // the submission's config files (INTERLEAVED_PIPELINE)
    }
    if (source == "Megatron-Bridge" && layer_count(job.model) + 2 == job.pp * job.vpp) {
      // Its recipe of 405B counts embedding and head as layers (account_for_…_in_pipeline_split).
      job.stage_layers.assign(static_cast<std::size_t>(job.pp * job.vpp), 1);
      job.stage_layers.front() = job.stage_layers.back() = 0;
    }
    const std::string recompute = to_lower(table.text(row, "recompute"));
    job.recompute = recompute.starts_with("full")        ? Recompute::kFull
                    : recompute.starts_with("selective") ? Recompute::kSelective
                                                         : Recompute::kNone;
    int nic_gbps = job.gpu_type.starts_with("A100")                    ? 200
                   : job.gpu_type == "B300" || job.gpu_type == "GB300" ? 800
                                                                       : 400;
    if (source == "SC'21 table 1" || source == "MT-NLG" || source == "BLOOM prequel") {
      as_megatron_2021(job);
      if (source == "BLOOM prequel") {
        job.sharding = job.dp() > 1 ? Sharding::kZero1 : Sharding::kNone;
        nic_gbps = 50;  // four of 100 Gb/s for eight GPUs
      }
    } else {
      if (!set_precision(table.text(row, "precision"), source, job)) {
        return "a precision that is not modelled";
      }
      as_megatron_core(job);
      if (source.starts_with("llm-foundry") || fsdp(table, row)) {
        job.sharding = job.gpus > 1 ? Sharding::kZero3 : Sharding::kNone;
      }
    }
    add(source, file, row, std::move(job), nic_gbps, *measured);
    if (source.starts_with("llm-foundry")) {
      out_.steps.back().flash_kernels = FlashKernels::kFirst;  // its sweeps' attn_impl: triton
    }
    if (source == "Megatron-Bridge" || source == "dgxc" || source.starts_with("MLPerf")) {
      out_.steps.back().recipe_overlap = {.gather = true, .reduce = true};
    }
    return {};
  }

  std::filesystem::path folder_;
  PublishedSteps out_;
  bool any_ = false;
};

}  // namespace

PublishedSteps read_published_steps(const std::string& folder) { return Reader(folder).read(); }

}  // namespace lockstep
