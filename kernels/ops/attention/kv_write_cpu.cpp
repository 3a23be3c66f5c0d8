// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_write.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <vector>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/attention/kv_pages.h"
#include "kernels/ops/attention/kv_rows.h"

namespace vitrine::kernels {

namespace {

/// Half of a cache: keys or values.
struct Half {
    const TensorView& rows;
    const TensorView& pool;
    const TensorView& scales;
    std::int64_t place = 0, scale = 0; ///< of the token in the pool; -1: it is not kept
};

void writeFloats(const KvWrite& op, const Half& half, std::int64_t token) {
    const TensorView& from = half.rows;
    float values[kRowPiece];
    forPieces(from.shape[1] * from.shape[2], [&](std::int64_t begin, std::int64_t count) {
        loadFloats(from.dtype, from.data, token * from.stride0() + begin, count, values);
        if (op.writes && half.place >= 0) {
            storeFloats(half.pool.dtype, values, count, half.pool.data, half.place + begin);
        }
        if (op.rounds) {
            roundFloats(half.pool.dtype, values, count);
            storeFloats(from.dtype, values, count, from.data, token * from.stride0() + begin);
        }
    });
}

void writeBytes(const KvWrite& op, const Half& half, std::int64_t token) {
    const TensorView& from = half.rows;
    const std::int64_t dim = from.shape[2];
    std::vector<float> row(static_cast<std::size_t>(dim));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(dim));
    for (std::int64_t head = 0; head < from.shape[1]; ++head) {
        const std::int64_t at = token * from.stride0() + head * dim;
        loadFloats(from.dtype, from.data, at, dim, row.data());
        const float scale = quantizeKvRow(half.pool.dtype, row.data(), dim, bytes.data());
        if (op.writes && half.place >= 0) {
            std::copy(bytes.begin(), bytes.end(), half.pool.as<std::uint8_t>() + half.place + head * dim);
            half.scales.as<float>()[half.scale + head * half.scales.shape[2]] = scale;
        }
        if (op.rounds) {
            dequantizeKvRow(half.pool.dtype, bytes.data(), scale, dim, row.data());
            storeFloats(from.dtype, row.data(), dim, from.data, at);
        }
    }
}

void writeHalf(const KvWrite& op, const Half& half, std::int64_t token) {
    if (op.cache.quantized()) {
        writeBytes(op, half, token);
    } else {
        writeFloats(op, half, token);
    }
}

/// Where a token goes; its key is -1 where the window has passed it already: in a ring its place belongs to a later
/// token.
KvPages::Place placeOf(const KvPages& pages, std::int64_t sequence, std::int64_t position) {
    if (sequence < 0 || sequence >= pages.sequences()) {
        throw base::Internal(fmt::format("KvWrite: sequence: {} of {} sequences", sequence, pages.sequences()));
    }
    if (position < pages.first(sequence)) {
        return {-1, -1, 0, 0, 0};
    }
    if (position >= pages.end(sequence)) {
        throw base::Internal(fmt::format("KvWrite: positions: {} is after the end {} of sequence {}", position,
                                         pages.end(sequence), sequence));
    }
    return pages.place(sequence, position);
}

} // namespace

void execute(CpuContext& context, const KvWrite& op) {
    const KvPages pages(op.cache);
    const std::int32_t* sequences = op.sequence.as<const std::int32_t>();
    const std::int32_t* positions = op.positions.as<const std::int32_t>();
    forRows(context, op.k.shape[0], op.k.shape[1] * op.k.shape[2] * 2, [&](std::int64_t token) {
        const KvPages::Place place =
            op.writes ? placeOf(pages, sequences[token], positions[token]) : KvPages::Place{-1, -1, 0, 0, 0};
        writeHalf(op, {op.k, op.cache.keys, op.cache.keyScales, place.key, place.keyScale}, token);
        if (op.cache.valuesAreKeys()) {
            return;
        }
        writeHalf(op, {op.v, op.cache.values, op.cache.valueScales, place.value, place.valueScale}, token);
    });
}

} // namespace vitrine::kernels
