#pragma once

#include "analysis/whatif/metrics.h"
#include "base/record_gzip.h"
#include "trace/timeline.h"
#include "trace/trace.h"

namespace lockstep::whatif {

/// The traced run as Chrome trace JSON (an array of complete events, microseconds), one event a row
/// in the order of the rows: process = dp_rank, thread = 5 * rank + lane (compute, pp-comm,
/// tp-comm, dp-comm, misc). Steps are laid end to end, each followed by a tenth of its length. Of a
/// grouped operation only the transfer is drawn, not the wait for its peers.
///
/// PRECONDITION: `trace` is what scene.table was made from.
void write_timeline(const Scene& scene, const Trace& trace, RecordGzip& out);

/// The ideal run in the same form; model_chunk and mb_id are null.
void write_ideal_timeline(const Scene& scene, const Trace& trace, RecordGzip& out);

/// Either of them as plain data, for Perfetto's own format. Negative transfers, which the
/// artifact's rules leave, last 0.
Timeline whatif_timeline(const Scene& scene, const Trace& trace, bool ideal);

}  // namespace lockstep::whatif
