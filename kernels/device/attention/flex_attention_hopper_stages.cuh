// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Shared memory of FlexAttention's forward pass on Hopper: what its producer writes and its consumers read.

#include "device/attention/flex_attention_hopper_tiles.cuh"

namespace vt {

namespace flex {

inline constexpr int kKeys = 128;
inline constexpr int kStages = kDim == 64 ? 4 : 2;
using Stage = RingPlace<kStages>;
inline constexpr int kTileBytes = kKeys * kChunks * 128; ///< of keys or values
inline constexpr int kQueryBytes = kRows * kChunks * 128;
inline constexpr int kQueryStages = 2;
inline constexpr int kRingAt = kQueryStages * kQueryBytes;
inline constexpr int kNotesAt = kRingAt + 2 * kStages * kTileBytes;
inline constexpr int kBarriersAt = kNotesAt + kStages * Note::kBytes;
inline constexpr int kRecordsAt = kBarriersAt + (2 * kQueryStages + 4 * kStages) * 8; ///< of pieces of work

/// Shared memory: queries, kStages tiles of keys, as many of values, notes, barriers, records.
struct Shared {
    u32 base;

    __device__ __forceinline__ u32 queries(int stage) const { return base + static_cast<u32>(stage * kQueryBytes); }
    __device__ __forceinline__ u32 keys(int stage) const {
        return base + kRingAt + static_cast<u32>(stage * kTileBytes);
    }
    __device__ __forceinline__ u32 values(int stage) const { return keys(kStages + stage); }
    __device__ __forceinline__ u32 note(int stage) const {
        return base + kNotesAt + static_cast<u32>(stage * Note::kBytes);
    }
    __device__ __forceinline__ u32 record(int stage) const { return base + kRecordsAt + static_cast<u32>(stage * 16); }
    __device__ __forceinline__ u32 barrier(int index) const { return base + kBarriersAt + static_cast<u32>(index * 8); }
    __device__ __forceinline__ u32 queriesFull(int stage) const { return barrier(stage); }
    __device__ __forceinline__ u32 queriesEmpty(int stage) const { return barrier(kQueryStages + stage); }
    __device__ __forceinline__ u32 keysFull(int stage) const { return barrier(2 * kQueryStages + stage); }
    __device__ __forceinline__ u32 keysEmpty(int stage) const { return keysFull(kStages + stage); }
    __device__ __forceinline__ u32 valuesFull(int stage) const { return keysFull(2 * kStages + stage); }
    __device__ __forceinline__ u32 valuesEmpty(int stage) const { return keysFull(3 * kStages + stage); }
};

} // namespace flex

} // namespace vt
