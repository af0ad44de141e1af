#pragma once

#include "simulator/replay/step_layout.h"
#include "simulator/replay/symmetry.h"

namespace lockstep {

/// Where no two ranks are alike, slots still may be: NCCL's channels within a server are rings in
/// the same order, so that eight slots go from each rank to the next, start together, share each
/// port alike and end together. The partition in which every rank and constraint is a class of its
/// own, and slots of one collective are alike that have both ends, all numbers and constraints in
/// common and wait for what is alike. Equitable (symmetry.h) by its making, and the coarsest one
/// with ranks apart but that slots of several collectives are not alike.
/// O(incidence + slots of a unit x log), and again for each round in which classes split.
Partition parallel_slots(const StepLayout& layout);

}  // namespace lockstep
