#pragma once

#include "planner/aceso/database.h"

namespace lockstep::aceso {

/// Which cost model: Aceso's with its defects, or with them mended (docs/planner.md).
enum class Flavour { kStrict, kFixed };

/// Time in us to send `size_mb` to the next stage, inside a server or between two.
/// Strict: the table's bandwidth at a power of two below the size, sizes below 1 MB wrapping to the
/// table's end, 1 GB/s taken as 1 MB/ms. Fixed: bandwidths interpolated in the logarithm of the
/// size, 1 GB/s = 1.024 MB/ms.
double peer_us(const Database& database, double size_mb, bool inter_node, Flavour flavour);

/// Time in ms of a collective. Strict: the table's at the rounded size, else at the size below,
/// else 100,000. Fixed: between the neighbouring sizes, beyond them in proportion.
double collective_ms(const Database& database, Primitive primitive, int gpus, double size_mb,
                     Flavour flavour);

/// Where and how an op runs.
struct OpPlace {
  int tp = 1, dp = 1, algorithm = 0;
  friend bool operator==(const OpPlace&, const OpPlace&) = default;
};

/// What it takes to hand an op's output to the next op of the stage, forward and backward.
struct Reshard {
  double forward_ms = 0, backward_ms = 0;
};

/// `consumer_mb` is the input size of the consumer. Strict: only the first difference of the
/// layouts counts. Fixed: where batch and sequence both change, the second is paid as well.
Reshard reshard(const Database& database, const OpTraits& producer, OpPlace from,
                const OpTraits& consumer, OpPlace to, double consumer_mb, Flavour flavour);

}  // namespace lockstep::aceso
