// Laws of the what-if analysis on made-up jobs, most with all times exact in binary.
#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/edit.h"
#include "analysis/whatif/launch_paths.h"
#include "analysis/whatif/numbers.h"
#include "analysis/whatif/timelines.h"
#include "analysis/whatif/values.h"
#include "analysis/whatif/whatif.h"
#include "base/error.h"
#include "base/rng.h"
#include "report/heat_map.h"
#include "tests/property/whatif_analysis.h"
#include "tests/support/made_up_steps.h"
#include "tests/support/run.h"
#include "trace/read_trace.h"

namespace lockstep::whatif::whatif_property_test {
namespace {

using made_up::Analysis;
using ::testing::HasSubstr;
using testing::MadeUpJob;
using testing::play;
using testing::uniform;

std::vector<MadeUpJob> jobs() {
  return {{.dp = 1, .stages = 2, .microbatches = 2},
          {.dp = 2, .stages = 1, .microbatches = 3},
          {.dp = 2, .stages = 4, .microbatches = 6, .steps = 3},
          {.dp = 3, .stages = 3, .microbatches = 3, .overlap = true},
          {.dp = 2, .stages = 4, .microbatches = 2},
          {.dp = 1, .stages = 2, .microbatches = 2, .tp = 2},
          {.dp = 2, .stages = 3, .microbatches = 4, .steps = 3, .tp = 3},
          {.dp = 4, .stages = 2, .microbatches = 3, .ep = 2},
          {.dp = 4, .stages = 2, .microbatches = 3, .overlap = true, .tp = 2, .ep = 2}};
}

/// A job whose operations all take the ideal time is its own ideal, and the replay of a trace
/// without launch gaps is the trace: S = 1, <B> = <T>, all parts 1. This pins the dependency graph
/// against an independent player: a missing edge makes T shorter than the trace, a surplus one
/// longer.
TEST(WhatIf, AnEvenJobIsItsOwnIdeal) {
  for (const MadeUpJob& job : jobs()) {
    const Analysis a(play(job, uniform));
    EXPECT_EQ(launch_slowdown(a.scene()), 1);
    EXPECT_EQ(blocking_slowdown(a.scene()), 1);
    for (const double ratio : blocking_by_worker(a.scene()).ratio) {
      EXPECT_EQ(ratio, 1);
    }
    EXPECT_FALSE(contribution(a.scene(), last_stage(a.table)).rem.has_value());
  }
}

/// Times at random, in multiples of 1/64: the replay gives the trace back, operation by operation.
TEST(WhatIf, TheReplayIsTheTrace) {
  Rng rng(11, "whatif property");
  for (const MadeUpJob& job : jobs()) {
    const std::uint64_t salt = rng.next();
    const Analysis a(play(job, [salt](const TraceRow& row) {
      const std::string name = std::to_string(row.rank) + "/" + std::to_string(row.step) + "/" +
                               std::to_string(row.seq_id) + std::string(to_text(row.optype));
      return static_cast<float>(Rng(salt, name).below(64)) / 64;
    }));
    for (std::size_t step = 0; step < a.table.steps.size(); ++step) {
      EXPECT_EQ(a.model.nodelay.span[step], static_cast<double>(a.traced.step_s[step]));
    }
    const Values values(a.scene());
    a.simulator->run(
        a.model.step_start_s, a.graph.scopes,
        [&](std::uint32_t node, std::size_t first, std::span<double> out) {
          values.nodelay(node, first, out);
        },
        Simulator::NoDelays{},
        [&](std::uint32_t node, std::size_t first, std::span<const double> start,
            std::span<const double> end) {
          for (std::size_t i = 0; i < start.size(); ++i) {
            EXPECT_EQ(end[i] - start[i], static_cast<double>(a.table.duration(node)[first + i]))
                << to_text(a.table.nodes[node]);
          }
        });
  }
}

/// Exact S_w against the definition: the ideal with one worker's values as traced, simulated for
/// all lanes at once.
class FewLanesStandForAll : public ::testing::TestWithParam<MadeUpJob> {};

TEST_P(FewLanesStandForAll, EveryWorkerAndDpRank) {
  const MadeUpJob job = GetParam();
  Rng rng(5, "two lanes");
  std::vector<float> draws;
  for (int i = 0; i < 4096; ++i) {
    draws.push_back(static_cast<float>(rng.below(64)) / 64);
  }
  const Analysis a(play(job, [&](const TraceRow& row) {
    return draws[static_cast<std::size_t>(row.rank * 131 + row.step * 37 + row.seq_id * 17 +
                                          static_cast<int>(row.optype)) %
                 draws.size()];
  }));
  const Scene scene = a.scene();
  const std::vector<double> quick = blocking_by_worker(scene).ratio;
  const std::vector<double> by_dp = blocking_by_dp_rank(scene).ratio;
  const auto peers = static_cast<std::size_t>(a.table.peers());
  const std::size_t width = a.table.width(), lanes = a.table.lanes();
  const std::size_t steps = a.table.steps.size();
  const auto slow = [&](auto&& as_traced) {
    const StepTimes times = scene.simulator.run(
        scene.model.step_start_s, a.graph.scopes,
        [&](std::uint32_t node, std::size_t first, std::span<double> out) {
          const bool grouped = a.graph.group_of[node] >= 0;
          for (std::size_t i = 0; i < out.size(); ++i) {
            const std::size_t lane = first + i;
            const std::size_t at = node * steps + lane / width;
            const auto& from = grouped ? a.traced.transfer_s : a.table.duration_s;
            const double ideal = grouped ? a.model.ideal_s[node]
                                         : a.model.ideal_end_s[at] - a.model.ideal_start_s[at];
            out[i] = as_traced(a.table.nodes[node].stage, lane % width)
                         ? static_cast<double>(from[node * lanes + lane])
                         : ideal;
          }
        });
    return std::accumulate(times.optimizer.begin(), times.optimizer.end(), 0.0) /
           static_cast<double>(steps) / mean_ideal(scene);
  };
  for (std::size_t d = 0; d < by_dp.size(); ++d) {
    EXPECT_DOUBLE_EQ(by_dp[d],
                     slow([&](std::int32_t, std::size_t lane) { return lane / peers == d; }));
  }
  for (std::size_t worker = 0; worker < quick.size(); ++worker) {
    EXPECT_DOUBLE_EQ(quick[worker], slow([&](std::int32_t stage, std::size_t lane) {
                       return static_cast<std::size_t>(stage) * width + lane == worker;
                     }))
        << worker;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Jobs, FewLanesStandForAll,
    ::testing::Values(MadeUpJob{.dp = 3, .stages = 2, .microbatches = 3, .steps = 2},
                      MadeUpJob{.dp = 3, .stages = 2, .microbatches = 3, .steps = 2, .tp = 3},
                      MadeUpJob{.dp = 6, .stages = 1, .microbatches = 2, .ep = 3},
                      MadeUpJob{.dp = 4, .stages = 2, .microbatches = 2, .tp = 2, .ep = 2}));

TEST(WhatIf, TheOrderOfTheRowsChangesNothing) {
  Trace rows = play({.dp = 2, .stages = 2, .microbatches = 3}, uniform);
  const std::string before = Analysis(rows).document();
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng rng(3, "rows");
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[rng.below(i)]);
  }
  Trace shuffled;
  for (const std::size_t i : order) {
    add_row(shuffled, row_at(rows, i));
  }
  EXPECT_EQ(Analysis(shuffled).document(), before);
}

/// Twice the time for everything: the same ratios, twice the seconds (powers of two are exact).
TEST(WhatIf, RatiosDoNotDependOnTheUnit) {
  const MadeUpJob job{.dp = 2, .stages = 3, .microbatches = 4};
  const auto uneven = [](const TraceRow& row) {
    return uniform(row) * (row.rank == 1 ? 2.0F : 1.0F);
  };
  const Analysis a(play(job, uneven));
  const Analysis b(play(job, [&](const TraceRow& row) { return 2 * uneven(row); }));
  EXPECT_EQ(blocking_slowdown(a.scene()), blocking_slowdown(b.scene()));
  EXPECT_EQ(2 * mean_nodelay(a.scene()), mean_nodelay(b.scene()));
  EXPECT_EQ(blocking_by_worker(a.scene()).ratio, blocking_by_worker(b.scene()).ratio);
}

/// The three patterns that docs/whatif.md shows, each worker alone.
TEST(HeatMap, ThreePatterns) {
  const MadeUpJob job{.dp = 8, .stages = 4, .microbatches = 8, .steps = 3};
  const auto picture = [&](const std::string& name, const testing::OpSeconds& seconds) {
    const Analysis a(play(job, seconds));
    EXPECT_GOLDEN("../../docs/pictures/" + name + ".svg",
                  to_svg(heat_map(blocking_by_worker(a.scene()).ratio, {.dp = job.dp})));
  };
  picture("slow-worker", [](const TraceRow& row) {
    return uniform(row) * (row.rank == 13 && is_compute(row.optype) ? 1.5F : 1.0F);
  });
  picture("heavy-last-stage", [](const TraceRow& row) {
    return uniform(row) * (row.stage == 3 && is_compute(row.optype) ? 1.5F : 1.0F);
  });
  Rng rng(2, "lengths");
  std::vector<float> lengths;
  for (int i = 0; i < 509; ++i) {
    lengths.push_back(0.5F + static_cast<float>(rng.below(64)) / 32);
  }
  picture("uneven-sequences", [&](const TraceRow& row) {
    const auto at = static_cast<std::size_t>(row.step * 101 + row.dp_rank * 13 + row.seq_id);
    return uniform(row) * (is_compute(row.optype) ? lengths[at % lengths.size()] : 1.0F);
  });
}

std::string error_of(const Trace& trace, const OpTableOptions& options = {}) {
  try {
    Trace sorted = trace;
    sort_rows(sorted);
    Warnings warnings;
    make_op_table(sorted, "t", options, &warnings);
    return warnings.entries().empty() ? "" : warnings.entries().front().text;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OpTable, SaysWhatIsMissingOrTooMuch) {
  const Trace rows = play({.dp = 2, .stages = 2, .microbatches = 2}, uniform);
  const auto without = [&](auto&& drop) {
    Trace kept;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!drop(row_at(rows, i))) {
        add_row(kept, row_at(rows, i));
      }
    }
    return kept;
  };
  const Trace lacking = without([](const TraceRow& row) {
    return row.step == 2 && row.rank == 3 && row.optype == TraceOp::kBackwardSend &&
           row.seq_id == 1;
  });
  EXPECT_THAT(error_of(lacking),
              HasSubstr("step 2, rank 3 (stage 1, dp_rank 1): no backward-send 1"));
  EXPECT_THAT(error_of(lacking, {.drop_incomplete_steps = true}), HasSubstr("a step is left out"));
  EXPECT_THAT(error_of(without([](const TraceRow& row) { return row.step == 2 && row.rank == 1; })),
              HasSubstr("step 2 has no rows of rank 1"));
  EXPECT_THAT(error_of(without([](const TraceRow& row) { return row.rank == 1; })),
              HasSubstr("stage 0 has no rows of dp_rank 1"));
  EXPECT_THAT(error_of(without([](const TraceRow& row) { return row.stage == 0; })),
              HasSubstr("stage 0"));
  EXPECT_THAT(error_of(Trace{}), HasSubstr("no rows"));
  Trace twice = rows;
  add_row(twice, row_at(rows, 3));
  EXPECT_THAT(error_of(twice), HasSubstr("1 repeated rows left out"));
  TraceRow other = row_at(rows, 3);
  other.duration_s += 1;
  Trace contradicting = rows;
  add_row(contradicting, other);
  EXPECT_THAT(error_of(contradicting), HasSubstr("stands twice, with different times"));
  TraceRow alien = row_at(rows, rows.size() - 1);
  alien.seq_id = 9;
  Trace surplus = rows;
  add_row(surplus, alien);
  EXPECT_THAT(error_of(surplus), HasSubstr("is not in the reference step"));
  Trace two_ranks = rows;
  two_ranks.rank[0] = 77;
  EXPECT_THAT(error_of(two_ranks), HasSubstr("has the ranks"));
}

/// Without its transfers a stage in the middle would be tied to none.
TEST(WhatIf, InnerStagesNeedTheirTransfers) {
  const Trace rows = play({.dp = 2, .stages = 3, .microbatches = 2}, uniform);
  Trace kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.optype[i] != TraceOp::kForwardSend && rows.optype[i] != TraceOp::kForwardRecv) {
      add_row(kept, row_at(rows, i));
    }
  }
  EXPECT_THAT([&] { Analysis a(kept); },
              ::testing::ThrowsMessage<Error>(
                  HasSubstr("stage 1: 0 operations forward-send serve 2 operations")));
}

/// gmc follows from mc and the stage where passes have none.
TEST(WhatIf, PassesWithoutAChunkOfTheModel) {
  Trace rows = play({.dp = 2, .stages = 3, .microbatches = 4}, uniform);
  const std::string before = Analysis(rows).document();
  std::fill(rows.gmc.begin(), rows.gmc.end(), -1);
  EXPECT_EQ(Analysis(rows).document(), before);
}

/// The timeline as data: a bar an operation, where the trace has it; of a transfer its last part.
TEST(WhatIf, TimelineHasABarForEachOperation) {
  const Analysis a(play({.dp = 2, .stages = 3, .microbatches = 4, .steps = 1}, uniform));
  for (const bool ideal : {false, true}) {
    const Timeline timeline = whatif_timeline(a.scene(), a.trace, ideal);
    // The last one is the step itself.
    ASSERT_EQ(timeline.events.size(), a.trace.size() + 1);
    EXPECT_EQ(timeline.names[static_cast<std::size_t>(timeline.events.back().name)], "step 1");
    EXPECT_EQ(timeline.events.back().begin, Time());
    for (std::size_t row = 0; row < a.trace.size(); ++row) {
      const TimelineEvent& event = timeline.events[row];
      const auto seconds = [](Time time) { return static_cast<double>(time.count_ps()) * 1e-12; };
      const double begin = static_cast<double>(a.trace.start_s[row]);
      EXPECT_EQ(timeline.names[static_cast<std::size_t>(event.name)], to_text(a.trace.optype[row]));
      // The job is even, so that its ideal is itself.
      EXPECT_DOUBLE_EQ(seconds(event.end), begin + static_cast<double>(a.trace.duration_s[row]));
      EXPECT_DOUBLE_EQ(seconds(event.end - event.begin),
                       static_cast<double>(uniform(row_at(a.trace, row))));
      const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(event.track)];
      EXPECT_EQ(track.number / 5, a.trace.rank[row]);
      EXPECT_EQ(track.parent, a.trace.dp_rank[row]);
    }
  }
}

/// What one dp_rank's launch gaps cost, by the paths between collectives, against a simulation for
/// each dp_rank.
TEST(WhatIf, PathsGiveWhatSimulationsGive) {
  for (const bool overlap : {false, true}) {
    const MadeUpJob job{.dp = 7, .stages = 3, .microbatches = 4, .steps = 3, .overlap = overlap};
    Trace rows = play(job, [](const TraceRow& row) {
      const std::string name = std::to_string(row.rank) + "/" + std::to_string(row.step) + "/" +
                               std::to_string(row.seq_id) + std::string(to_text(row.optype));
      return static_cast<float>(1 + Rng(4, name).below(64)) / 64;
    });
    // Some operations start late (not in the first step, from which the order is taken); those
    // behind them do not care, so that delays are negative, too.
    Rng rng(8, "gaps");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows.step[i] > 1 && rng.below(4) == 0) {
        rows.start_s[i] += static_cast<float>(rng.below(256)) / 256;
      }
    }
    const Analysis a(std::move(rows));
    const std::vector<std::vector<double>> quick = launch_times_by_paths(a.scene());
    const Decomposition simulated = launch_by_dp_rank(a.scene());
    ASSERT_EQ(quick.size(), 7U);
    double spread = 0;
    for (std::size_t d = 0; d < quick.size(); ++d) {
      for (std::size_t s = 0; s < a.table.steps.size(); ++s) {
        EXPECT_NEAR(quick[d][s] / a.model.nodelay.optimizer[s], simulated.per_step[s][d], 1e-12);
        spread = std::max(spread, std::abs(simulated.per_step[s][d] - simulated.per_step[s][0]));
      }
    }
    EXPECT_GT(spread, 0.01);  // the dp_ranks differ
  }
}

/// "= ideal" for everybody is the ideal itself, and for a set of workers what their contribution is
/// made of.
TEST(WhatIf, EditsToTheIdeal) {
  Rng rng(3, "uneven");
  const Analysis a(
      play({.dp = 3, .stages = 3, .microbatches = 5, .steps = 2}, [&](const TraceRow& row) {
        return uniform(row) * (1 + static_cast<float>(rng.next() >> 61) / 8);
      }));
  const auto mean_with = [&](const std::string& edit) {
    return pairwise_mean(simulate_edits(a.scene(), {parse_edit(edit)}).span);
  };
  EXPECT_DOUBLE_EQ(mean_with("all = ideal"), pairwise_mean(a.model.ideal.span));
  EXPECT_EQ(mean_with("all[stage=2] = ideal"),
            contribution(a.scene(), last_stage(a.table)).trem.value());
  EXPECT_EQ(mean_with("all[rank=100] = ideal"), mean_nodelay(a.scene()));
  EXPECT_THROW(parse_edit("all *= ideal"), Error);
}

/// Lanes are on their own: a long run, cut into blocks for several threads, gives every step what a
/// run of that step alone gives.
TEST(WhatIf, ThreadsChangeNothing) {
  const Analysis a(play({.dp = 2, .stages = 3, .microbatches = 4, .steps = 1}, uniform));
  const std::size_t steps = 30000;
  const auto values_from = [&](std::size_t shift) {
    return [shift](std::uint32_t node, std::size_t first, std::span<double> out) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<double>(((shift + first + i) * 7 + node * 13) % 101);
      }
    };
  };
  const StepTimes all =
      a.simulator->run(std::vector<double>(steps, 0.0), a.graph.scopes, values_from(0),
                       /*spans=*/true);
  for (std::size_t s = 0; s < steps; s += 997) {
    const StepTimes one =
        a.simulator->run(std::vector<double>(1, 0.0), a.graph.scopes, values_from(2 * s));
    EXPECT_EQ(all.optimizer[s], one.optimizer[0]);
    EXPECT_EQ(all.span[s], one.span[0]);
  }
}

}  // namespace
}  // namespace lockstep::whatif::whatif_property_test
