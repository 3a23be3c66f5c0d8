// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kEmbeddingGradientAbi = 1;

/// gradTable[id] += scale * the sum of gradOut over the tokens of id. `dim` elements a row; strides in elements.
struct EmbeddingGradientParams {
    const int* order; ///< (tokens), sorted by id
    const int* ids;   ///< (tokens)
    const void* gradOut;
    float* gradTable;
    long long gradOutStride, gradTableStride;
    long long tokens, dim;
    int vocab;
    float scale;
};

} // namespace vitrine::kernels::abi
