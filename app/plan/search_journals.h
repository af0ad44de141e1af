#pragma once

#include <string>

#include "app/plan/line_journal.h"
#include "planner/aceso/search/stage_solver.h"
#include "planner/metis/search.h"

namespace lockstep {

/// What a search for Aceso's plans has worked out, in a journal: solved stages and the bound of
/// each microbatch. The problem is told by its flags and all that its profile says.
class AcesoJournal final : public aceso::SearchMemo {
 public:
  /// ERRORS: as LineJournal.
  AcesoJournal(std::string path, const aceso::Problem& problem);
  bool find(const aceso::StageQuestion& question, aceso::StageAnswer& answer) override;
  void add(const aceso::StageQuestion& question, const aceso::StageAnswer& answer) override;
  bool find_bottleneck(std::int64_t microbatch, double& us) override;
  void add_bottleneck(std::int64_t microbatch, double us) override;

 private:
  LineJournal lines_;
};

/// Likewise of Metis's problem: the plans of each part of the space.
class MetisJournal final : public metis::SearchMemo {
 public:
  /// ERRORS: as LineJournal.
  MetisJournal(std::string path, const metis::Problem& problem);
  bool find(const Part& part, std::size_t most, std::vector<metis::Plan>& plans) override;
  void add(const Part& part, std::size_t most, const std::vector<metis::Ranked>& found) override;

 private:
  LineJournal lines_;
};

/// Reads Aceso's and Metis's journals, for their tests. ERRORS: Error with file and line.
void read_aceso_journal(std::string_view text, const std::string& file, std::string_view problem);
void read_metis_journal(std::string_view text, const std::string& file, std::string_view problem);

}  // namespace lockstep
