// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::kernels {

namespace {

/// The tokens that `order` names, each inside the batch, and their ids.
struct SortedIds {
    const std::int32_t* order;
    const std::int32_t* ids;
    std::int64_t tokens;
    std::int64_t vocab;

    explicit SortedIds(const EmbeddingGradient& op)
        : order(op.order.as<const std::int32_t>()), ids(op.ids.as<const std::int32_t>()), tokens(op.ids.shape[0]),
          vocab(op.gradTable.shape[0]) {}

    std::int64_t token(std::int64_t place) const {
        const std::int64_t token = order[place];
        if (token < 0 || token >= tokens) {
            throw base::BadInput(
                fmt::format("order of tokens: token {} of {}; sort the tokens of this batch", token, tokens));
        }
        return token;
    }
    std::int64_t id(std::int64_t place) const {
        const std::int64_t id = ids[token(place)];
        if (id < 0 || id >= vocab) {
            throw base::BadInput(fmt::format("token ids: id {} is outside the vocabulary of {}; use the ids of this "
                                             "model's tokenizer",
                                             id, vocab));
        }
        return id;
    }
};

/// Adds the rows of places [begin, end) of the order to the row of their id.
template <class C>
void addRun(const EmbeddingGradient& op, const SortedIds& sorted, std::int64_t begin, std::int64_t end) {
    const std::int64_t tableAt = sorted.id(begin) * op.gradTable.stride0();
    C sums[kRowPiece];
    C values[kRowPiece];
    forPieces(op.gradTable.shape[1], [&](std::int64_t at, std::int64_t count) {
        std::fill(sums, sums + count, C(0));
        for (std::int64_t place = begin; place < end; ++place) {
            const std::int64_t rowAt = sorted.token(place) * op.gradOut.stride0();
            loadFloats(op.gradOut.dtype, op.gradOut.data, rowAt + at, count, values);
            for (std::int64_t i = 0; i < count; ++i) {
                sums[i] += values[i];
            }
        }
        loadFloats(op.gradTable.dtype, op.gradTable.data, tableAt + at, count, values);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] += static_cast<C>(op.scale) * sums[i];
        }
        storeFloats(op.gradTable.dtype, values, count, op.gradTable.data, tableAt + at);
    });
}

} // namespace

void execute(CpuContext& context, const EmbeddingGradient& op) {
    const SortedIds sorted(op);
    const bool wide = op.gradOut.dtype == DType::F64 || op.gradTable.dtype == DType::F64;
    forRows(context, sorted.tokens, op.gradTable.shape[1], [&](std::int64_t begin) {
        const std::int64_t id = sorted.id(begin);
        if (begin > 0 && sorted.id(begin - 1) == id) {
            return; // another place begins this run
        }
        std::int64_t end = begin + 1;
        while (end < sorted.tokens && sorted.id(end) == id) {
            ++end;
        }
        if (wide) {
            addRun<double>(op, sorted, begin, end);
        } else {
            addRun<float>(op, sorted, begin, end);
        }
    });
}

} // namespace vitrine::kernels
