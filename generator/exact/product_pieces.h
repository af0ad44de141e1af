#pragma once

#include <span>
#include <string>

#include "generator/exact/operators.h"
#include "generator/exact/pass.h"
#include "generator/exact/pass_builder.h"

namespace lockstep {

/// Transfers of tensor parallelism beside the pieces of the product that they belong to, by the
/// defaults of NVIDIA's Transformer Engine (common/comm_gemm_overlap/comm_gemm_overlap.cpp,
/// split_overlap_ag and split_overlap_rs; pytorch/module/base.py, initialize_ub). A piece is priced
/// as the product that it is, and runs alone: that Transformer Engine has three streams for pieces,
/// so that one begins in the tail of another, is left out.

/// Pieces of a product whose output is reduce-scattered ("num_splits" of the method "pipeline").
inline constexpr std::int64_t kReducePieces = 4;

/// Whether a layer of these modules has any. Megatron Core turns the overlap off where a linear has
/// a name that Transformer Engine knows no buffer for, as the projections of latent attention
/// (extensions/transformer_engine.py): layers with a plain linear have none.
bool overlaps_products(std::span<const Module> modules, const PassOptions& options);

/// An all-gather over tp ranks and the products of what it brings, as a ring exchange: rows of one
/// rank at a time, first the own ones, are multiplied while those of the next come from the rank
/// before and go on to the rank behind. With `tp` pieces of time c and tp - 1 exchanges of time h
/// it takes c + (tp - 1) max(c, h). PRECONDITION: tp divides the rows of `products`.
void gather_and_multiply(PassBuilder& out, const std::string& name, const PassComm& gather,
                         std::span<const Operator> products, const RankSizes& sizes);

/// A product, the last of `products`, and the reduce-scatter of its output: kReducePieces pieces of
/// the output's features, each on its way while the next is computed. With pieces of time c and
/// transfers of time r it takes c + 3 max(c, r) + r. PRECONDITION: kReducePieces divides them.
void multiply_and_reduce(PassBuilder& out, const std::string& name, const PassComm& reduce,
                         std::span<const Operator> products, const RankSizes& sizes);

}  // namespace lockstep
