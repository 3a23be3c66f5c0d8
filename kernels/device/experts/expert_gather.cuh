// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Rows of x, expert by expert, in the tiles of expert_tiles.cuh. A warp takes a piece of a row at a time through shared
// memory, where it is permuted; rows after a tile's last are zero up to a multiple of 32.

#include "device/abi/expert_gather.h"
#include "device/experts/expert_tiles.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr int kWarps = 8;
constexpr int kPartRows = 32;     ///< rows of a tile that a block takes
constexpr int kSection = 16;      ///< blocks of 64 values that a warp takes at a time: partners stay together
constexpr int kSharedBlock = 160; ///< bytes of 64 values in shared memory: neighbours use other banks

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32)
    expert_gather(const __grid_constant__ abi::ExpertGatherParams p) {
    __shared__ __align__(16) unsigned char shared[kWarps][kSection * kSharedBlock];
    pdl::wait();
    pdl::launchDependents();
    constexpr int kParts = grouped::kTileRows / kPartRows;
    const int tile = static_cast<int>(blockIdx.x) / kParts;
    const int part = static_cast<int>(blockIdx.x) % kParts;
    if (tile >= *p.tileCount || part * kPartRows >= p.tiles[2 * tile + 1]) {
        return;
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int blocks = grouped::blocksOf(p.in);
    const int sections = ceilDiv(blocks, kSection);
    unsigned char* mine = shared[threadIdx.x / 32];
    u8* out = static_cast<u8*>(p.out) + static_cast<i64>(tile) * blocks * grouped::kBlockBytes;
    for (int item = static_cast<int>(threadIdx.x) / 32; item < kPartRows * sections; item += kWarps) {
        const int row = part * kPartRows + item / sections;
        const int first = item % sections * kSection; // block
        const int pair = p.slots[tile * grouped::kTileRows + row];
        const u16* from = static_cast<const u16*>(p.x) + (pair < 0 ? 0 : pair / p.pairsPerRow) * p.xStride;
        u32x4 loaded[kSection / 4];
#pragma unroll
        for (int i = 0; i < kSection / 4; ++i) {
            const int at = first * 64 + (i * 32 + lane) * 8;
            loaded[i] = pair >= 0 && at < p.in ? *reinterpret_cast<const u32x4*>(from + at) : u32x4{};
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kSection / 4; ++i) {
            const int chunk = i * 32 + lane;
            *reinterpret_cast<u32x4*>(mine + chunk / 8 * kSharedBlock + chunk % 8 * 16) = loaded[i];
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kSection / 8; ++i) {
            const int block = i * 8 + lane / 4;
            const int piece = lane % 4 * 2; // this and the next lie in the two halves of the same words
            if (first + block >= blocks) {
                break;
            }
            u32 words[8];
#pragma unroll
            for (int place = 0; place < 8; ++place) {
                const int value = grouped::valueAt(first + block, blocks, piece, place) - first * grouped::kBlock;
                words[place] = *reinterpret_cast<const u32*>(mine + value / grouped::kBlock * kSharedBlock +
                                                             value % grouped::kBlock * 2);
            }
            u8* to = out + static_cast<i64>(first + block) * grouped::kBlockBytes;
            *reinterpret_cast<u32x4*>(to + swizzled<128>(row, piece * 16)) =
                u32x4{__byte_perm(words[0], words[1], 0x5410), __byte_perm(words[2], words[3], 0x5410),
                      __byte_perm(words[4], words[5], 0x5410), __byte_perm(words[6], words[7], 0x5410)};
            *reinterpret_cast<u32x4*>(to + swizzled<128>(row, piece * 16 + 16)) =
                u32x4{__byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x7632),
                      __byte_perm(words[4], words[5], 0x7632), __byte_perm(words[6], words[7], 0x7632)};
        }
    }
}
