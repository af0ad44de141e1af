#include <algorithm>
#include <numeric>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/whatif.h"
#include "base/json.h"

namespace lockstep::whatif {
namespace {

using Order = std::vector<std::size_t>;

/// Indices by value, largest first; ties stay in order.
Order descending(const std::vector<double>& values) {
  Order order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  return order;
}

Order ascending(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// Python's json.dump with an indent: one entry a line.
class Writer {
 public:
  explicit Writer(std::size_t indent) : indent_(indent) {}

  void open() {
    out_ += '{';
    ++depth_;
    first_ = true;
  }
  void close() {
    --depth_;
    if (!first_) {
      new_line();
    }
    out_ += '}';
    first_ = false;
  }
  void key(const std::string& name) {
    if (!first_) {
      out_ += ',';
    }
    first_ = false;
    new_line();
    out_ += Json(name).dump();
    out_ += ": ";
  }
  void number(double value) { append_python_float(out_, value); }
  void whole(std::int64_t value) { out_ += std::to_string(value); }
  void text(const std::string& value) { out_ += Json(value).dump(); }
  void null() { out_ += "null"; }
  std::string take() { return std::move(out_); }

 private:
  void new_line() {
    out_ += '\n';
    out_.append(depth_ * indent_, ' ');
  }

  std::size_t indent_, depth_ = 0;
  bool first_ = true;
  std::string out_;
};

class ResultWriter {
 public:
  explicit ResultWriter(const Result& result) : r_(result) {
    for (const std::int64_t step : r_.steps) {
      step_names_.push_back(std::to_string(step));
    }
  }

  std::string write() {
    w_.open();
    w_.key("job_meta");
    meta();
    const Order in_order = ascending(r_.steps.size());
    const Order by_blocking = descending(r_.blocking_step_slowdown);
    const Order by_launch = descending(r_.launch_step_slowdown);
    const std::vector<double> base(r_.step_t_base.begin(), r_.step_t_base.end());
    labelled("step_t_base", step_names_, base, in_order);
    labelled("step_t_nodelay", step_names_, r_.step_t_nodelay, in_order);
    labelled("step_t_noblk", step_names_, r_.step_t_noblk, in_order);
    w_.key("launch_slowdown");
    w_.number(r_.launch_slowdown);
    w_.key("blocking_slowdown");
    w_.number(r_.blocking_slowdown);
    labelled("blocking_step_slowdown", step_names_, r_.blocking_step_slowdown, by_blocking);
    labelled("launch_step_slowdown", step_names_, r_.launch_step_slowdown, by_launch);
    for (const auto& [name, part] : kParts) {
      overall("blocking_decompose_by_" + std::string(name), r_.blocking, part);
      overall("launch_decompose_by_" + std::string(name), r_.launch, part);
    }
    const Order picked = set_order();
    for (const auto& [name, part] : kParts) {
      const std::string end = std::string(name) + "_per_step";
      per_step("blocking_decompose_by_" + end, r_.blocking, part,
               r_.picked_steps ? picked : by_blocking);
      per_step("launch_decompose_by_" + end, r_.launch, part, r_.picked_steps ? picked : by_launch);
    }
    w_.close();
    return w_.take();
  }

 private:
  using Part = Decomposition Decompositions::*;
  static constexpr std::array<std::pair<const char*, Part>, 3> kParts = {
      {{"dp_rank", &Decompositions::by_dp_rank},
       {"stage", &Decompositions::by_stage},
       {"optype", &Decompositions::by_optype}}};

  void meta() {
    const JobMeta& m = r_.meta;
    w_.open();
    w_.key("trial_name");
    w_.text(m.trial_name);
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"run_id", m.run_id},        {"dp_size", m.dp_size},   {"pp_size", m.pp_size},
        {"tp_size", m.tp_size},      {"dsp_size", m.dsp_size}, {"vpp_size", m.vpp_size},
        {"world_size", m.world_size}};
    for (const auto& [name, value] : sizes) {
      w_.key(name);
      w_.whole(value);
    }
    w_.close();
  }

  void values(const std::vector<std::string>& labels, const std::vector<double>& of,
              const Order& order) {
    w_.open();
    for (const std::size_t i : order) {
      w_.key(labels[i]);
      w_.number(of[i]);
    }
    w_.close();
  }

  void labelled(const std::string& key, const std::vector<std::string>& labels,
                const std::vector<double>& of, const Order& order) {
    w_.key(key);
    values(labels, of, order);
  }

  void overall(const std::string& key, const std::optional<Decompositions>& all, Part part) {
    w_.key(key);
    if (!all) {
      w_.null();
      return;
    }
    const Decomposition& d = (*all).*part;
    values(d.labels, d.ratio, descending(d.ratio));
  }

  void per_step(const std::string& key, const std::optional<Decompositions>& all, Part part,
                const Order& steps) {
    w_.key(key);
    if (!all) {
      w_.null();
      return;
    }
    const Decomposition& d = (*all).*part;
    w_.open();
    for (const std::size_t s : steps) {
      w_.key(step_names_[s]);
      values(d.labels, d.per_step[s], descending(d.per_step[s]));
    }
    w_.close();
  }

  /// The original walks a set of the picked steps.
  Order set_order() const {
    Order order;
    for (const std::int64_t step : python_set_order(r_.steps)) {
      const auto found = std::lower_bound(r_.steps.begin(), r_.steps.end(), step);
      order.push_back(static_cast<std::size_t>(found - r_.steps.begin()));
    }
    return order;
  }

  const Result& r_;
  std::vector<std::string> step_names_;
  Writer w_{2};
};

}  // namespace

std::string result_json(const Result& result) { return ResultWriter(result).write(); }

std::string contribution_json(const Contribution& c, const std::string& name) {
  Writer w(4);
  w.open();
  const std::pair<const char*, std::optional<double>> values[] = {
      {"trem", c.trem}, {"tadd", c.tadd}, {"tori", c.tori},     {"tideal", c.tideal},
      {"rem", c.rem},   {"add", c.add},   {name.c_str(), c.rem}};
  for (const auto& [key, value] : values) {
    w.key(key);
    if (value) {
      w.number(*value);
    } else {
      w.null();
    }
  }
  w.close();
  return w.take();
}

}  // namespace lockstep::whatif
