#include "generator/exact/product_pieces.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/operator_parts.h"

namespace lockstep {
namespace {

std::int64_t share_of(std::int64_t size, std::int64_t pieces) {
  LOCKSTEP_CHECK(size % pieces == 0, "a product is cut into equal pieces");
  return size / pieces;
}

/// One of so many pieces of the rows that an operator works on.
Operator rows_of(const Operator& whole, std::int64_t pieces, const RankSizes& sizes) {
  if (whole.kind == OperatorKind::kGemm) {
    return product_of_size(whole, share_of(whole.m, pieces), whole.n, sizes);
  }
  Operator piece = whole;
  piece.flops /= static_cast<double>(pieces);
  piece.bytes /= static_cast<double>(pieces);
  return piece;
}

std::string numbered(const std::string& name, std::int64_t piece, std::int64_t pieces) {
  return fmt::format("{}/{} of {}", piece + 1, pieces, name);
}

}  // namespace

bool overlaps_products(std::span<const Module> modules, const PassOptions& options) {
  return options.sizes.sequence_parallel && std::ranges::none_of(modules, [](const Module& each) {
           return each.kind == ModuleKind::kPlainLinear;
         });
}

void gather_and_multiply(PassBuilder& out, const std::string& name, const PassComm& gather,
                         std::span<const Operator> products, const RankSizes& sizes) {
  PassComm chunk = gather;
  chunk.comm = CommType::kSendRecv;
  chunk.bytes = Bytes(ceil_div(gather.bytes.count(), sizes.tp));
  std::vector<std::int32_t> source = out.tail();
  std::int32_t sent = -1;
  for (std::int64_t piece = 0; piece < sizes.tp; ++piece) {
    std::int32_t received = -1;
    if (piece + 1 < sizes.tp) {
      const std::string hop = numbered(name, piece, sizes.tp - 1);
      chunk.send = true;
      sent = out.beside(hop + " send", chunk, source);
      chunk.send = false;
      received = out.beside(hop + " receive", chunk, source);
      source = {received};
    }
    for (const Operator& whole : products) {
      Operator part = rows_of(whole, sizes.tp, sizes);
      part.name = numbered(part.name, piece, sizes.tp);
      out.compute(part);
    }
    if (received >= 0) {
      out.join(received);
    }
  }
  if (sent >= 0) {
    out.join(sent);
  }
}

void multiply_and_reduce(PassBuilder& out, const std::string& name, const PassComm& reduce,
                         std::span<const Operator> products, const RankSizes& sizes) {
  LOCKSTEP_CHECK(!products.empty() && products.back().kind == OperatorKind::kGemm,
                 "what is reduced is a product's output");
  for (const Operator& before : products.first(products.size() - 1)) {
    out.compute(before);
  }
  const Operator& whole = products.back();
  PassComm chunk = reduce;
  chunk.bytes = Bytes(share_of(reduce.bytes.count(), kReducePieces));
  std::vector<std::int32_t> reduced;
  for (std::int64_t piece = 0; piece < kReducePieces; ++piece) {
    Operator part = product_of_size(whole, whole.m, share_of(whole.n, kReducePieces), sizes);
    part.name = numbered(whole.name, piece, kReducePieces);
    out.compute(part);
    reduced.push_back(out.beside(numbered(name, piece, kReducePieces), chunk, out.tail()));
  }
  for (const std::int32_t each : reduced) {
    out.join(each);
  }
}

}  // namespace lockstep
