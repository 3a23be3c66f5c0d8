// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Rows of x, expert by expert, in the tiles of expert_tiles.cuh. A warp takes a row at a time through shared memory, where it
// is permuted; rows behind a tile's last are zero up to a multiple of 32.

#include "device/abi/expert_gather.h"
#include "device/expert_tiles.cuh"
#include "device/mma.cuh"
#include "device/pdl.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr int kWarps = 4;
constexpr int kPartRows = 32;     ///< rows of a tile that a block takes
constexpr int kSharedBlock = 160; ///< bytes of 64 values in shared memory: neighbours use other banks

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32)
    expert_gather(const __grid_constant__ abi::ExpertGatherParams p) {
    extern __shared__ __align__(16) unsigned char shared[];
    pdl::wait();
    pdl::launchDependents();
    constexpr int kParts = experts::kTileRows / kPartRows;
    const int tile = static_cast<int>(blockIdx.x) / kParts;
    const int part = static_cast<int>(blockIdx.x) % kParts;
    if (tile >= *p.tileCount || part * kPartRows >= p.tiles[2 * tile + 1]) {
        return;
    }
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int blocks = experts::blocksOf(p.in);
    unsigned char* mine = shared + warp * blocks * kSharedBlock;
    u8* out = static_cast<u8*>(p.out) + static_cast<i64>(tile) * blocks * experts::kBlockBytes;
    for (int row = part * kPartRows + warp; row < (part + 1) * kPartRows; row += kWarps) {
        const int pair = p.slots[tile * experts::kTileRows + row];
        const u16* from = static_cast<const u16*>(p.x) + (pair < 0 ? 0 : pair / p.pairsPerRow) * p.xStride;
        for (int i = lane; i < blocks * 8; i += 32) {
            u32x4 words{};
            if (pair >= 0 && i * 8 < p.in) {
                words = *reinterpret_cast<const u32x4*>(from + i * 8);
            }
            *reinterpret_cast<u32x4*>(mine + i / 8 * kSharedBlock + i % 8 * 16) = words;
        }
        __syncwarp();
        for (int i = lane; i < blocks * 4; i += 32) {
            const int block = i / 4;
            const int piece = i % 4 * 2; // this and the next lie in the two halves of the same words
            u32 words[8];
#pragma unroll
            for (int place = 0; place < 8; ++place) {
                words[place] =
                    *reinterpret_cast<const u32*>(mine + block * kSharedBlock + 2 * experts::valueAt(piece, place));
            }
            u8* to = out + static_cast<i64>(block) * experts::kBlockBytes;
            *reinterpret_cast<u32x4*>(to + swizzled<128>(row, piece * 16)) =
                u32x4{__byte_perm(words[0], words[1], 0x5410), __byte_perm(words[2], words[3], 0x5410),
                      __byte_perm(words[4], words[5], 0x5410), __byte_perm(words[6], words[7], 0x5410)};
            *reinterpret_cast<u32x4*>(to + swizzled<128>(row, piece * 16 + 16)) =
                u32x4{__byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x7632),
                      __byte_perm(words[4], words[5], 0x7632), __byte_perm(words[6], words[7], 0x7632)};
        }
        __syncwarp();
    }
}
