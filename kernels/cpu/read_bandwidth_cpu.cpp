// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// g++ 12's own intrinsics header reads undefined vectors on purpose and warns about it (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "kernels/cpu/read_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <immintrin.h>
#include <iterator>
#include <memory>
#include <new>
#include <numeric>

#include "base/clock.h"
#include "kernels/context/cpu_context.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kBlock = 4096; ///< bytes that a call reads, in lines
constexpr int kPasses = 6;

__attribute__((target("avx512f"))) std::uint64_t sumAvx512(const std::byte* data, std::int64_t bytes) {
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (std::int64_t at = 0; at < bytes; at += 256) {
        for (int i = 0; i < 4; ++i) {
            sums[i] = _mm512_add_epi64(sums[i], _mm512_load_si512(data + at + 64 * i));
        }
    }
    const __m512i all = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    // Not by _mm512_reduce_add_epi64: it adds signed numbers, which may overflow.
    std::uint64_t lanes[8];
    _mm512_storeu_si512(lanes, all);
    return std::accumulate(std::begin(lanes), std::end(lanes), std::uint64_t{0});
}

__attribute__((target("avx2"))) std::uint64_t sumAvx2(const std::byte* data, std::int64_t bytes) {
    __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (std::int64_t at = 0; at < bytes; at += 128) {
        for (int i = 0; i < 4; ++i) {
            const auto* line = reinterpret_cast<const __m256i*>(data + at + 32 * i);
            sums[i] = _mm256_add_epi64(sums[i], _mm256_load_si256(line));
        }
    }
    const __m256i all = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    alignas(32) std::uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

std::uint64_t sumScalar(const std::byte* data, std::int64_t bytes) {
    std::uint64_t sums[4] = {};
    for (std::int64_t at = 0; at < bytes; at += 32) {
        std::uint64_t words[4];
        std::memcpy(words, data + at, sizeof words);
        for (int i = 0; i < 4; ++i) {
            sums[i] += words[i];
        }
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

std::uint64_t sumBytes(SimdLevel simd, const std::byte* data, std::int64_t bytes) {
    switch (simd) {
    case SimdLevel::Avx512:
        return sumAvx512(data, bytes);
    case SimdLevel::Avx2:
        return sumAvx2(data, bytes);
    case SimdLevel::Scalar:
        break;
    }
    return sumScalar(data, bytes);
}

struct FreeAligned {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{kBlock}); }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeAligned>;

/// As much as can be had, from `bytes` down to 64 MiB.
AlignedBytes largestBuffer(std::int64_t& bytes) {
    for (; bytes > std::int64_t{1} << 26; bytes /= 2) {
        auto* data = static_cast<std::byte*>(
            ::operator new[](static_cast<std::size_t>(bytes), std::align_val_t{kBlock}, std::nothrow));
        if (data != nullptr) {
            return AlignedBytes(data);
        }
    }
    bytes = std::int64_t{1} << 26;
    return AlignedBytes(
        static_cast<std::byte*>(::operator new[](static_cast<std::size_t>(bytes), std::align_val_t{kBlock})));
}

} // namespace

double measureReadBandwidth(CpuContext& context, std::uint64_t most) {
    auto bytes = static_cast<std::int64_t>(most);
    const AlignedBytes buffer = largestBuffer(bytes);
    const std::int64_t blocks = bytes / kBlock;
    const SimdLevel simd = context.simd();
    std::atomic<std::uint64_t> total{0};
    // Every page is written first: untouched pages all map to one page of zeros.
    context.pool().parallelFor(blocks, 64, [&](std::int64_t begin, std::int64_t end, int) {
        std::memset(buffer.get() + begin * kBlock, 1, static_cast<std::size_t>((end - begin) * kBlock));
    });
    base::TimeNs best = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
        const base::TimeNs begin = base::monotonicNs();
        context.pool().parallelFor(blocks, 64, [&](std::int64_t first, std::int64_t end, int) {
            // The sum is kept so that the reads are not optimised away.
            total += sumBytes(simd, buffer.get() + first * kBlock, (end - first) * kBlock);
        });
        const base::TimeNs elapsed = std::max<base::TimeNs>(1, base::monotonicNs() - begin);
        best = best == 0 ? elapsed : std::min(best, elapsed);
    }
    return total.load() == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(best);
}

} // namespace vitrine::kernels
