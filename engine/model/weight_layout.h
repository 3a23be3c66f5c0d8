// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which pieces of memory the weights of a model become, and which checkpoint tensors fill each.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// A checkpoint tensor that fills `bytes` bytes of a piece at `offset`.
struct WeightSource {
    std::uint32_t index = 0; ///< in expectedTensors(config)
    TensorSpec spec;
    const Checkpoint::Location* location = nullptr; ///< null for synthetic models
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// One resident tensor. The sources of an expanded piece are the tensors of a packed weight; they pass through staging.
struct WeightPiece {
    std::string name;
    kernels::DType dtype = kernels::DType::BF16;
    kernels::Shape shape;
    std::int32_t layer = -1;
    bool expand = false;
    std::vector<WeightSource> sources;
    std::uint64_t bytes = 0;
    // Of a tensor that stays packed:
    kernels::WeightFormat format = kernels::WeightFormat::Dense;
    kernels::WeightField field = kernels::WeightField::Data;
    std::string weight; ///< the name of the weight that it is a tensor of; empty: the piece is a dense weight
};

struct WeightLayout {
    std::vector<WeightPiece> pieces;
    std::uint64_t arenaBytes = 0;    ///< sum of aligned pieces
    std::uint64_t residentBytes = 0; ///< sum of pieces
    std::uint64_t sourceBytes = 0;   ///< what is read or filled
    std::uint64_t stagingBytes = 0;  ///< of the buffer that expanded pieces pass through: two halves, used in turn
};

/// Throws BadInput when the experts of a layer are stored in different dtypes.
WeightLayout layOutWeights(const ModelSource& source, bool dequantize);

/// A digest of everything that the bytes of the pieces depend on: their layout, and the identity of every file or the
/// seed of random values.
std::string contentDigest(const WeightLayout& layout, const ModelSource& source, std::uint64_t seed);

/// Experts of an expanded piece that pass through one half of staging at once.
std::int64_t stagedExperts(const WeightPiece& piece);

} // namespace vitrine::engine
