// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/kv_write.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/ops/floats.h"
#include "kernels/ops/kv_pages.h"
#include "kernels/ops/row_loop.h"

namespace vitrine::kernels {

namespace {

void writeToken(const TensorView& from, std::int64_t token, const TensorView& pool, std::int64_t slot) {
    const std::int64_t size = from.shape[1] * from.shape[2];
    float values[kRowPiece];
    forPieces(size, [&](std::int64_t begin, std::int64_t count) {
        loadFloats(from.dtype, from.data, token * from.stride0() + begin, count, values);
        storeFloats(pool.dtype, values, count, pool.data, slot + begin);
    });
}

} // namespace

void execute(CpuContext& context, const KvWrite& op) {
    const KvPages pages(op.cache);
    const std::int32_t* sequences = op.sequence.as<const std::int32_t>();
    const std::int32_t* positions = op.positions.as<const std::int32_t>();
    forRows(context, op.k.shape[0], op.k.shape[1] * op.k.shape[2] * 2, [&](std::int64_t token) {
        const std::int64_t sequence = sequences[token];
        const std::int64_t position = positions[token];
        if (sequence < 0 || sequence >= pages.sequences()) {
            throw base::Internal(fmt::format("KvWrite: sequence: {} of {} sequences", sequence, pages.sequences()));
        }
        if (position < pages.first(sequence)) {
            return; // the window has passed it already: in a ring its slot belongs to a later token
        }
        if (position >= pages.end(sequence)) {
            throw base::Internal(fmt::format("KvWrite: positions: {} is behind the end {} of sequence {}", position,
                                             pages.end(sequence), sequence));
        }
        const KvPages::Slot slot = pages.slot(sequence, position);
        writeToken(op.k, token, op.cache.keys, slot.key);
        writeToken(op.v, token, op.cache.values, slot.value);
    });
}

} // namespace vitrine::kernels
