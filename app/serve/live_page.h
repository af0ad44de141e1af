#pragma once

#include <string>

namespace lockstep {

/// The page that `lockstep serve` shows at /: sliders over a step, and where its time goes. One
/// self-contained document; it speaks to /api/v1/live.
std::string live_page();

}  // namespace lockstep
