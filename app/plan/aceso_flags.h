#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// ERRORS: Error where words are flags of Aceso's own program (aceso_search.py), with what they are
/// called here.
void refuse_flags_of_aceso(const std::vector<std::string>& words);

}  // namespace lockstep
