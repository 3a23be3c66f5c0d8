// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Dot-product kernels by SIMD level. Each sum runs in an order that depends on the level, the format and `in` only, in
// both forms: few rows straight from the stored weights, and tiles of many rows over weights expanded once for all of
// them. So a row's result is the same to the last bit whatever rows stand beside it.

#include "kernels/context/cpu_context.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

/// y[r * kGemvOutputs + o] = dot(matrix row outBegin + o, x row r), for at most kGemvRows rows and kGemvOutputs
/// outputs.
struct GemvCall {
    MatrixRef matrix;
    const float* x[kGemvRows] = {}; ///< prepared rows
    std::int64_t rows = 0;
    std::int64_t outBegin = 0;
    std::int64_t outCount = 0;
    float* y = nullptr;
};

void gemvScalar(const GemvCall& call);
void gemvAvx2(const GemvCall& call);
void gemvAvx512(const GemvCall& call);

inline constexpr std::int64_t kDotDepth = 512; ///< of the contracted axis, a stretch of a tile; a multiple of 128
inline constexpr std::int64_t kDotRows = 48;   ///< of a tile
inline constexpr std::int64_t kDotLanes = 16;  ///< partial sums that a level keeps for a dot product, at most

/// One stretch of the contracted axis for a tile of at most kDotRows rows and kTileOutputs outputs.
struct DotTileCall {
    MatrixRef matrix;         ///< not transposed
    const float* x = nullptr; ///< (rows, kDotDepth), prepared; zeros stand after the axis's end
    std::int64_t rows = 0;
    std::int64_t outBegin = 0;
    std::int64_t outCount = 0;
    std::int64_t begin = 0; ///< a multiple of kDotDepth
    std::int64_t count = 0; ///< kDotDepth, or what is left
    float* lanes = nullptr; ///< (outCount, kDotRows, kDotLanes): partial sums, zeros before the first stretch
};

void addDotsScalar(const DotTileCall& call);
void addDotsAvx2(const DotTileCall& call);
void addDotsAvx512(const DotTileCall& call);

/// After the last stretch: sums[r * kTileOutputs + o], in the order in which the dots of few rows add up.
void sumDotsScalar(const DotTileCall& call, float* sums);
void sumDotsAvx2(const DotTileCall& call, float* sums);
void sumDotsAvx512(const DotTileCall& call, float* sums);

/// Where element i of a row lies in its prepared form, per level and kind of matrix (i within a block of 128).
std::int64_t preparedIndexAvx2(const MatrixRef& matrix, std::int64_t i);
std::int64_t preparedIndexAvx512(const MatrixRef& matrix, std::int64_t i);

} // namespace vitrine::kernels
