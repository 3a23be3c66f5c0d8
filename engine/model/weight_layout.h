// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pieces of memory that hold the weights of a model, and the checkpoint tensors that fill each piece.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

struct LoadOptions;
struct RankTensor;

/// A checkpoint tensor that fills `bytes` bytes of a piece at `offset`.
struct WeightSource {
    std::uint32_t index = 0; ///< in expectedTensors(config)
    TensorSpec spec;
    const Checkpoint::Location* location = nullptr; ///< null for synthetic models
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0; ///< in the piece
    std::int64_t row = 0;    ///< of an expanded piece: the first of its rows that the weight of this source makes
    /// Of a rank: the tensor that `spec` is a part of; null: it is whole.
    const RankTensor* part = nullptr;

    /// The bytes of the file become others in memory.
    bool converts() const { return location != nullptr && spec.stored.converts; }
};

/// One tensor that stays in memory. An expanded piece (`expand`) is a packed weight as BF16, or a stack of such. Its
/// sources are the tensors of the packed weights, one weight after the other, which pass through the staging buffer.
struct WeightPiece {
    std::string name;
    kernels::DType dtype = kernels::DType::BF16;
    kernels::Shape shape;
    std::int32_t layer = -1;
    bool expand = false;
    bool widen = false; ///< a float32 piece whose sources are narrower floats
    std::vector<WeightSource> sources;
    std::uint64_t bytes = 0;
    // Only for a tensor that stays packed:
    WeightPacking packing;
    kernels::WeightField field = kernels::WeightField::Data;
    std::string weight;          ///< name of the packed weight that the tensor belongs to; empty: a dense weight
    kernels::Shape weightShape;  ///< of that weight
    std::int64_t weightRows = 0; ///< outputs that the files store together: those of one linear of a stack
    /// The weight is packed at load. Its first piece, of the elements, has the dense tensor as its source; the pieces
    /// of its scales follow and have none.
    bool pack = false;
};

struct WeightLayout {
    std::vector<WeightPiece> pieces;
    std::uint64_t arenaBytes = 0;    ///< sum of aligned pieces
    std::uint64_t residentBytes = 0; ///< sum of pieces
    std::uint64_t sourceBytes = 0;   ///< bytes that are read from files, or filled in a synthetic model
    std::uint64_t stagingBytes = 0;  ///< of the staging buffer of converted pieces: two halves, used in turn
};

/// Throws BadInput when the experts of a layer are stored in different dtypes, and when weights that are packed
/// already, or cannot be divided into groups, are to be packed.
WeightLayout layOutWeights(const ModelSource& source, const LoadOptions& options);

/// A digest of everything that the bytes of the pieces depend on: the layout, and the identity of every file or, for a
/// synthetic model, the seed.
std::string contentDigest(const WeightLayout& layout, const ModelSource& source, std::uint64_t seed);

/// The sources of an expanded piece from `begin` on that belong to one packed weight.
std::span<const WeightSource> sourcesOfWeight(const WeightPiece& piece, std::size_t begin);

/// Matrices of such a weight: one that is no stack of experts is one.
std::int64_t matricesOf(std::span<const WeightSource> weight);

/// How many of them one half of the staging buffer holds.
std::int64_t stagedMatrices(std::span<const WeightSource> weight);

} // namespace vitrine::engine
