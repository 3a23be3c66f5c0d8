// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/rank_sums_cpu.h"

#include <algorithm>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

template <class C>
void sumAs(CpuContext& context, DType dtype, std::span<const std::byte* const> parts, std::int64_t count, void* out) {
    const std::int64_t pieces = (count + kRowPiece - 1) / kRowPiece;
    forRows(context, pieces, kRowPiece, [&](std::int64_t piece) {
        const std::int64_t begin = piece * kRowPiece, size = std::min(kRowPiece, count - begin);
        C sum[kRowPiece];
        C each[kRowPiece];
        loadFloats(dtype, parts.front(), begin, size, sum);
        for (std::size_t part = 1; part < parts.size(); ++part) {
            loadFloats(dtype, parts[part], begin, size, each);
            for (std::int64_t i = 0; i < size; ++i) {
                sum[i] += each[i];
            }
        }
        storeFloats(dtype, sum, size, out, begin);
    });
}

} // namespace

void sumParts(CpuContext& context, DType dtype, std::span<const std::byte* const> parts, std::int64_t count,
              void* out) {
    if (dtype == DType::F64) {
        sumAs<double>(context, dtype, parts, count, out);
    } else {
        sumAs<float>(context, dtype, parts, count, out);
    }
}

std::vector<SentBytes> piecesToSend(const void* data, std::int64_t total, std::uint64_t bytes, int ranks) {
    std::vector<SentBytes> pieces;
    for (int rank = 0; rank < ranks; ++rank) {
        const RankShare share = rankShare(total, rank, ranks);
        pieces.push_back({static_cast<const std::byte*>(data) + static_cast<std::uint64_t>(share.begin) * bytes,
                          static_cast<std::uint64_t>(share.count()) * bytes});
    }
    return pieces;
}

std::vector<ReceivedBytes> piecesToReceive(void* data, std::int64_t total, std::uint64_t bytes, int ranks) {
    std::vector<ReceivedBytes> pieces;
    for (const SentBytes& piece : piecesToSend(data, total, bytes, ranks)) {
        pieces.push_back({const_cast<std::byte*>(piece.data), piece.bytes});
    }
    return pieces;
}

} // namespace vitrine::kernels
