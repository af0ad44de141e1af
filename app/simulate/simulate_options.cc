#include "app/simulate/simulate_options.h"

#include <CLI/CLI.hpp>

namespace lockstep {

void define_simulate_options(CLI::App& app, SimulateOptions& options) {
  const auto share = CLI::Range(0.0, 1.0);
  const auto count = CLI::Range(std::int64_t{1}, std::int64_t{1} << 24);

  app.add_option("-w,--workload", options.workload,
                 "SimAI/AICB workload .txt, our .json, or a folder of Chakra execution traces\n"
                 "(NAME.0.et, NAME.1.et, …); or a model and a job, as 'lockstep generate\n"
                 "--flavour exact' takes them: --model NAME --gpus N --tp N …, or\n"
                 "--from-megatron-args SCRIPT")
      ->group("Input");
  app.add_option("-n,--topology", options.topology,
                 "topology file, or TEMPLATE[:flags] such as Spectrum-X:g=128")
      ->group("Input");
  app.add_option(
         "--beside", options.beside,
         "a further workload, whose jobs run on the next GPUs at the same time; may be given\n"
         "several times")
      ->take_all()
      ->group("Input");
  app.add_option("--gpus", options.gpus, "GPUs of the job (default: as the workload says)")
      ->check(count)
      ->group("Input");
  app.add_option("--chunks-per-stage", options.chunks_per_stage,
                 "model chunks of a pipeline stage (default: the workload's vpp, where AICB\n"
                 "writes layers)")
      ->check(count)
      ->group("Input");

  app.add_option("-e,--engine", options.engine, "analytic, flow or packet")
      ->check(CLI::IsMember({"analytic", "flow", "packet"}))
      ->capture_default_str()
      ->group("Model");
  app.add_option("--semantics", options.semantics,
                 "how layers become a step; simai: all forward, then all backward;\n"
                 "megatron: microbatches in 1F1B order on pipeline stages")
      ->check(CLI::IsMember({"simai", "megatron"}))
      ->capture_default_str()
      ->group("Model");
  app.add_option("--flavour", options.flavour,
                 "default, or simai for SimAI's rules to the letter (docs/models.md)")
      ->check(CLI::IsMember({"default", "simai"}))
      ->capture_default_str()
      ->group("Model");

  define_choice_flags(app, options, "Flow and packet engine");
  define_network_flags(app, options, "Flow and packet engine");

  define_transport_flags(app, options,
                         "Fabric (packet engine; flow engine where given; docs/models.md)");
  const char* packet = "Packet engine (docs/models.md)";
  app.add_option("--fct", options.fct_file, "file for every transfer's completion, as SimAI has it")
      ->group(packet);
  app.add_option(
         "--traffic-class", options.traffic_class,
         "WHAT=CLASS,…: in which class transfers are, of which 0 goes first on every port;\n"
         "WHAT: tp, dp, ep, dp_ep, pp, cp, world, an operation, or job1, job2, …; ACKs are\n"
         "in 0 (--fabric AckClass), all others in the last")
      ->group(packet);
  define_sample_flags(app, options, packet);
  app.add_option("--pfc", options.pfc_file,
                 "file for every pause and resume, as SimAI has it (packets are not skipped then)")
      ->group(packet);

  const char* analytic = "Analytic engine (bandwidths default to the topology's, else the GPU's)";
  app.add_option("--gpus-per-server", options.gpus_per_server, "GPUs in a server")
      ->check(count)
      ->group(analytic);
  app.add_option("--nics-per-server", options.nics_per_server, "NICs of a server")
      ->check(count)
      ->group(analytic);
  app.add_option("--nvlink", options.nvlink, "NVLink bandwidth of a GPU, such as 360GBps")
      ->group(analytic);
  app.add_option("--nic", options.nic, "bandwidth of one NIC, such as 48.5GBps")->group(analytic);
  app.add_option("--gpu-type", options.gpu_type,
                 "A100, A800, H100, H800 or H20; others, such as B200, where the topology or\n"
                 "--nvlink tells their links. Of a model's step: the GPU that computes it")
      ->group(analytic);
  app.add_option("--nic-type", options.nic_type, "cx6, cx7 or bf3")->group(analytic);
  app.add_option("--busbw", options.busbw, "measured bus bandwidths (SimAI's busbw.yaml)")
      ->group(analytic);
  app.add_option("--ratios", options.ratios,
                 "folder with nic_ratio.csv, nvlink_ratio.csv and ata_ratio.csv")
      ->group(analytic);
  app.add_option("--dp-overlap", options.dp_overlap, "share of DP communication hidden, 0 to 1")
      ->check(share)
      ->group(analytic);
  app.add_option("--tp-overlap", options.tp_overlap, "the same for TP")
      ->check(share)
      ->group(analytic);
  app.add_option("--ep-overlap", options.ep_overlap, "the same for EP")
      ->check(share)
      ->group(analytic);
  app.add_option("--pp-overlap", options.pp_overlap, "the same for PP (flow engine too)")
      ->check(share)
      ->group(analytic);

  app.add_option("--interference", options.interference,
                 "SHARE|FILE: part of a computation's speed that each collective beside it takes,\n"
                 "0 to 1 (docs/models.md names measured ones), or what lockstep profile\n"
                 "--interference measured; default 0")
      ->group("Flow and packet engine");

  const char* slow = "Stragglers and faults (lockstep simulate --list-stragglers shows the models)";
  app.add_option("--straggler", options.straggler_specs,
                 "MODEL:FIELD:…[@FROM[-UNTIL]], such as gpu:3:1.5 or link:12-40:0.5@10ms; may be\n"
                 "given several times")
      ->take_all()
      ->group(slow);
  app.add_option("--scenario", options.scenario,
                 "YAML file of stragglers and jobs beside (docs/stragglers.md)")
      ->group(slow);
  app.add_flag("--list-stragglers", options.list_stragglers, "show the models and their fields")
      ->group(slow);
  app.add_option("--steps", options.steps, "simulate so many steps, each with draws of its own")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->capture_default_str()
      ->group(slow);
  app.add_option("--seed", options.seed, "of all draws, the packet engine's too")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4294944442}))
      ->capture_default_str()
      ->group(slow);
  app.add_flag("--no-straggler-prices", options.no_straggler_prices,
               "do not run the step again without each straggler and without all")
      ->group(slow);
  app.add_option(
         "--threads", options.threads,
         "for --steps and the price of stragglers (default: one a core); the result does not\n"
         "depend on it")
      ->check(CLI::Range(1, 1024))
      ->group(slow);

  app.add_flag(
         "--sensitivity", options.sensitivity,
         "what a tenth more of each link tier's bandwidth and latency, kind of computation and\n"
         "collective would bring: a run each")
      ->group("Output");
  app.add_flag("--job-matrix", options.job_matrix,
               "several jobs: how much slower each is beside each other, and beside all: a run a "
               "pair")
      ->group("Output");
  app.add_flag("--explain", options.explain, "the critical path: what decides the step's time")
      ->group("Output");
  app.add_flag("--json", options.json, "machine-readable result (docs/formats)")->group("Output");
  app.add_flag("--detail", options.detail_wanted,
               "with --json: every operation too, of one rank for all that do the same; what\n"
               "'lockstep report' draws a timeline from")
      ->group("Output");
  app.add_option("--gpu-hour-price", options.gpu_hour_price,
                 "what a GPU costs an hour, in any currency, for the cost of a million tokens")
      ->check(CLI::Range(0.0, 1e9))
      ->group("Output");
  define_report_flags(app, options.output);
  app.add_flag("--memory", options.memory_over_time,
               "with --model: when in the step a rank of each stage holds most, and how much")
      ->group("Output");
  app.add_option("--memory-csv", options.memory_csv,
                 "file for what it holds over the step: rank,stage,from_s,held_bytes")
      ->group("Output");
  app.add_option("--csv", options.csv_dir, "folder for SimAI's EndToEnd.csv")->group("Output");
  app.add_option("--csv-prefix", options.csv_prefix,
                 "what its name starts with (default: the workload's name and '-')")
      ->needs(app.get_option("--csv"))
      ->group("Output");
  app.add_option(
         "--trace", options.trace,
         "time line for Perfetto (.json, .json.gz; .pftrace, .pftrace.gz: its own format) or as a\n"
         "table (.csv.gz); or a trace for 'lockstep whatif' (.parquet, .csv, and NAME.yaml beside\n"
         "it)")
      ->group("Output");
  app.add_option("--byteps-trace", options.byteps_trace,
                 "folder for BytePS's timeline of the first server: <local rank>/comm.json; steps\n"
                 "BYTEPS_TRACE_START_STEP to BYTEPS_TRACE_END_STEP of the environment, else all")
      ->group("Output");
  app.add_flag("--no-symmetry", options.no_symmetry,
               "flow engine: simulate every rank, not one of each kind")
      ->group("Speed");
  app.add_option(
         "--error-budget", options.error_budget,
         "packet engine, and flow engine where ranks cannot be folded: part of the time, such as\n"
         "0.1%, by which the step may be off where equal collectives are told from ones seen\n"
         "before; the error is told, as an estimate (default: only what repeats exactly is "
         "skipped)")
      ->group("Speed");
  app.add_flag("--verify-symmetry", options.verify_symmetry,
               "flow engine: simulate every rank as well and compare, to the picosecond")
      ->group("Speed");
  app.add_flag(
         "--paranoid", options.paranoid,
         "flow and packet engine: check every transfer, byte count, clock and solve of rates\n"
         "in a run of every rank, and (flow) that it ends as the folded one does; slow")
      ->group("Speed");
  app.add_option("--trace-workers", options.trace_workers,
                 "in a trace for 'lockstep whatif': all workers, or the first of each tensor- and\n"
                 "context-parallel group alone, which is what StragglerAnalysis reads")
      ->check(CLI::IsMember({"all", "first"}))
      ->needs(app.get_option("--trace"))
      ->capture_default_str()
      ->group("Output");
  app.add_option("--trace-ranks", options.trace_ranks, "draw the first so many ranks")
      ->needs(app.get_option("--trace"))
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str()
      ->group("Output");
}

}  // namespace lockstep
