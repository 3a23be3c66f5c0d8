// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products with one weight matrix on the CPU, shared by Matmul, its gradients and ExpertMatmul.
//
// Few rows: dot products straight from the stored weights, each weight read once. Many rows: tiles of the weight are
// expanded to float32 on the stack; the whole weight never is. Both add up in one order, so a row's result is the same
// to the last bit whatever rows stand beside it: batches, chunks of a prompt and preemption change no token.

#include <cstdint>

#include "kernels/context/cpu_context.h"
#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"
#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

/// Row groups of this size or less take the dot-product path.
inline constexpr std::int64_t kGemvRows = 8;
/// A call of the dot-product path makes at most this many outputs.
inline constexpr std::int64_t kGemvOutputs = 256;
/// Outputs of a piece of work: short pieces share out evenly, but transposed storage wants long lines.
inline constexpr std::int64_t kGemvPiece = 64;
/// A call of the tile path makes at most this many rows and outputs.
inline constexpr std::int64_t kTileRows = 256;
inline constexpr std::int64_t kTileOutputs = 128;

/// One (out, in) matrix, or (in, out) when transposed.
struct MatrixRef {
    WeightFormat format = WeightFormat::Dense;
    PackedMatrix packing;      ///< of a packed matrix, as it is stored
    DType dtype = DType::None; ///< of a dense matrix, as the next two
    const void* data = nullptr;
    std::int64_t stride = 0; ///< elements between stored rows
    std::int64_t out = 0;
    std::int64_t in = 0;
    bool transposed = false;

    bool packed() const { return format != WeightFormat::Dense; }
};

/// The matrix, or the stack's matrix number `expert`.
MatrixRef matrixOf(const WeightView& weight, std::int64_t expert);

/// Rows of x times the matrix. Row i of the product reads row xRow(i) of x and writes row outRow(i) of out.
struct Product {
    MatrixRef matrix;
    TensorView x;
    bool transposedX = false; ///< x is stored (in, rows). Tiles and doubles only, with a transposed matrix and no pairs
    TensorView out;
    TensorView bias;                     ///< (out) or empty
    TensorView residual;                 ///< as out, or empty
    const std::int32_t* pairs = nullptr; ///< rows of out, or null: 0, 1, 2, ...
    std::int64_t pairsPerX = 1;          ///< neighbouring pairs that share a row of x
    std::int64_t rows = 0;
    float scale = 1; ///< of the product, before bias and residual

    std::int64_t outRow(std::int64_t i) const { return pairs == nullptr ? i : pairs[i]; }
    std::int64_t xRow(std::int64_t i) const { return outRow(i) / pairsPerX; }
};

/// Floats that one prepared row of x takes.
std::int64_t preparedSize(std::int64_t in);

/// Writes a row of x as float32 in the order in which the kernels of this SIMD level unpack weights.
void prepareRow(SimdLevel simd, const MatrixRef& matrix, const TensorView& x, std::int64_t row, float* prepared);

/// Rows [rowBegin, rowBegin + rowCount) and outputs [outBegin, outBegin + outCount) by dot products.
/// `prepared` holds all rows of x, preparedSize floats apart.
void multiplyFewRows(SimdLevel simd, const Product& product, const float* prepared, std::int64_t rowBegin,
                     std::int64_t rowCount, std::int64_t outBegin, std::int64_t outCount);

/// The same over expanded tiles. A transposed packed matrix is stored (in, out), with groups along out.
void multiplyTile(SimdLevel simd, const Product& product, std::int64_t rowBegin, std::int64_t rowCount,
                  std::int64_t outBegin, std::int64_t outCount);

/// The same in double, for F64 rows.
void multiplyDouble(const Product& product, std::int64_t rowBegin, std::int64_t rowCount, std::int64_t outBegin,
                    std::int64_t outCount);

/// The whole product by tiles, which are shared out over the pool: in double when x is F64, else in float32.
void multiplyByTiles(CpuContext& context, const Product& product);

/// gradWeight = gradOut^T x (+ gradWeight) as a product: rows of gradWeight are its rows.
Product weightGradientProduct(const TensorView& x, const TensorView& gradOut, const TensorView& gradWeight,
                              bool accumulate);

/// Elements [begin, begin + count) of a stored row, as float32: along in, or along out when the matrix is transposed.
void loadWeights(const MatrixRef& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out);

} // namespace vitrine::kernels
