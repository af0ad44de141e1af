#pragma once

namespace lockstep {

/// How long to work between checkpoints. All times in seconds; failures come at random with the
/// mean `mtbf_s` between them (exponential), a checkpoint stops work for `checkpoint_s`, and after
/// a failure a restart takes `restart_s`, during which the next failure may come.
struct CheckpointCosts {
  double mtbf_s = 0;                       ///< > 0; of the whole job
  double checkpoint_s = 0, restart_s = 0;  ///< >= 0
};

/// sqrt(2 C M) (Young 1974, "A first order approximation to the optimum checkpoint interval").
double young_interval_s(const CheckpointCosts& costs);

/// Daly 2006 ("A higher order estimate of the optimum checkpoint interval for restart dumps",
/// equation 37): sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18 M) - C for C < 2 M, else M.
double daly_interval_s(const CheckpointCosts& costs);

/// The interval t with the least expected time, exactly: d/dt of (e^((t + C) / M) - 1) / t is 0
/// where 1 - t / M = e^(-(t + C) / M), by bisection to the last bit. 0 for C = 0.
double exact_interval_s(const CheckpointCosts& costs);

/// Expected time of `work_s` of work and the checkpoint after it, failures, lost work and restarts
/// included: M e^(R / M) (e^((t + C) / M) - 1) (Daly 2006, section 2). The share of time that is
/// work is work_s / this.
double expected_segment_s(const CheckpointCosts& costs, double work_s);

}  // namespace lockstep
