// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sizes of packed_rows, and where a block's rows, matrices and results are.

#include "device/abi/packed_rows.h"
#include "device/formats/packed_half.cuh"
#include "device/lib/types.cuh"
#include "device/lib/warp.cuh"

namespace vt::packed {

namespace abi = vitrine::kernels::abi;

inline constexpr int kTiles = VT_TILES;        ///< of 8 rows of x
inline constexpr int kRowTiles = VT_ROW_TILES; ///< of 16 outputs
inline constexpr int kWarps = VT_WARPS;
inline constexpr int kStages = VT_STAGES;
inline constexpr int kRows = 8 * kTiles;
inline constexpr int kOutputs = 16 * kRowTiles;
inline constexpr int kChunk = 128; ///< inputs of a warp's step
inline constexpr int kPiece = 32;  ///< inputs that are multiplied at a time
inline constexpr int kPieces = kChunk / kPiece;
inline constexpr int kScales = VT_GROUP >= kChunk ? 1 : kChunk / VT_GROUP; ///< of a row, in a chunk
inline constexpr int kPieceBytes = kPiece * PackedHalf::kBits / 8;         ///< of a row of the weight
inline constexpr int kRowBytes = kPieces * kPieceBytes;                    ///< of a chunk
inline constexpr int kStageBytes = kOutputs * kRowBytes;
inline constexpr int kTileSlots = 128;                              ///< of ExpertSort
inline constexpr int kFeatures = VT_GATE ? kOutputs / 2 : kOutputs; ///< results of a block, for a row
inline constexpr bool kSums = VT_ROWS_OF == abi::PackedOfSums;
static_assert(VT_GROUP % kPiece == 0, "a piece has one scale");
static_assert(!kSums || kTiles == 1, "a token has one row of each pair");

/// The pairs of the block's token.
struct Chosen {
    int ids[abi::kPackedChosen];
    float weights[abi::kPackedChosen];
};

/// Which rows this block multiplies, and by which matrix.
struct Place {
    const abi::PackedRowsParams& p;
    int number = 0; ///< of the matrix
    int expert = 0;
    int firstRow = 0; ///< of x, or of the tile's slots; a pair, or the first pair of a token
    int rows = 0;     ///< from there on
    const int* slots = nullptr;
    int firstFeature = 0;

    __device__ __forceinline__ explicit Place(const abi::PackedRowsParams& params) : p(params) {
        const int y = static_cast<int>(blockIdx.y);
        firstRow = static_cast<int>(blockIdx.z) * kRows;
        if constexpr (VT_ROWS_OF == abi::PackedOfRows) {
            rows = p.rows - firstRow;
            for (int i = 1; i < VT_MATRICES && !VT_GATE; ++i) {
                number += static_cast<int>(blockIdx.x) >= p.matrices[i].firstBlock ? 1 : 0;
            }
        } else if constexpr (VT_ROWS_OF == abi::PackedOfTiles) {
            if (y < *p.tileCount) {
                expert = p.tiles[2 * y];
                rows = p.tiles[2 * y + 1] - firstRow;
                slots = p.slots + y * kTileSlots + firstRow;
            }
        } else {
            rows = 1;
            firstRow = kSums ? y * p.chosen : y;
            expert = kSums ? 0 : p.ids[y];
        }
        firstFeature = (static_cast<int>(blockIdx.x) - matrix().firstBlock) * kFeatures;
    }
    __device__ __forceinline__ const abi::PackedRowsMatrix& matrix() const {
        return p.matrices[VT_MATRICES > 1 && !VT_GATE ? number : 0];
    }
    /// That of an output of this block.
    __device__ __forceinline__ const abi::PackedRowsMatrix& matrixOf(int output) const {
        return VT_GATE == 3 ? p.matrices[output / kFeatures] : matrix();
    }
    /// The row of x for `row` of this block, of pair `pair` of the token.
    __device__ __forceinline__ i64 xRow(int row, int pair) const {
        const int inside = min(row, rows - 1);
        if constexpr (VT_ROWS_OF == abi::PackedOfRows) {
            return firstRow + inside;
        } else {
            return (VT_ROWS_OF == abi::PackedOfTiles ? slots[inside] : firstRow + pair) / p.pairsPerRow;
        }
    }
    __device__ __forceinline__ i64 resultRow(int row) const {
        return VT_ROWS_OF == abi::PackedOfTiles ? slots[row] : kSums ? static_cast<int>(blockIdx.y) : firstRow + row;
    }
    __device__ __forceinline__ int features() const {
        return VT_GATE == 1 || VT_GATE == 2 ? matrix().out / 2 : matrix().out;
    }
    /// The matrix's row for an output of this block. Gated: first the gates, then the ups. What is behind the last is
    /// that one.
    __device__ __forceinline__ int rowOf(int output) const {
        const int feature = min(firstFeature + output % kFeatures, features() - 1);
        const int side = output / kFeatures;
        return VT_GATE == 1 ? side * features() + feature : VT_GATE == 2 ? 2 * feature + side : feature;
    }
};

/// A chunk of the contracted axis; sums of pairs have one such axis after the other.
struct Chunk {
    int number = 0; ///< inside the axis
    int pair = 0;
    int expert;

    __device__ __forceinline__ Chunk(const Place& place, const Chosen& chosen, int index, int chunks)
        : number(index), expert(place.expert) {
        if constexpr (kSums) {
            pair = index / chunks;
            number = index - pair * chunks;
            expert = chosen.ids[pair];
        }
    }
    /// Of an output of the block, the row over all experts. 32 bits: two registers for each would be too many.
    __device__ __forceinline__ i64 row(const Place& place, int output) const {
        return static_cast<i64>(expert * place.matrix().out + place.rowOf(output));
    }
    /// The same among the rows of scales.
    __device__ __forceinline__ i64 scaleRow(const Place& place, int output) const {
        if constexpr (!PackedHalf::kBlocks) {
            return row(place, output);
        }
        const abi::PackedRowsMatrix& matrix = place.matrix();
        return expert * matrix.scaleRows + (place.rowOf(output) * matrix.scaleFactor >> 32);
    }
};

} // namespace vt::packed
