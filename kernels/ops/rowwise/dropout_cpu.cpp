// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/dropout.h"

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/dropout_choice.h"

namespace vitrine::kernels {

namespace {

/// Elements that have numbers first .. first + count - 1 in the whole.
template <class C>
void dropPiece(const DropoutChoice& choice, std::uint64_t stream, std::uint64_t first, std::int64_t count, C factor,
               C* values) {
    std::array<std::uint32_t, 4> words{};
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t element = first + static_cast<std::uint64_t>(i);
        if (i == 0 || element % 4 == 0) {
            words = base::philox4x32(choice.key, element / 4, stream);
        }
        values[i] = words[element % 4] < choice.threshold ? C(0) : values[i] * factor;
    }
}

template <class C> void dropRow(const Dropout& op, const DropoutChoice& choice, std::int64_t row) {
    const std::int64_t n = op.x.shape[1];
    const C factor = op.x.dtype == DType::F64 ? static_cast<C>(1 / (1 - static_cast<double>(op.probability)))
                                              : static_cast<C>(choice.factor);
    C values[kRowPiece];
    forPieces(n, [&](std::int64_t begin, std::int64_t count) {
        loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, values);
        const auto first = static_cast<std::uint64_t>((op.firstRow + row) * n + begin);
        dropPiece(choice, op.stream, first, count, factor, values);
        storeFloats(op.out.dtype, values, count, op.out.data, row * op.out.stride0() + begin);
    });
}

} // namespace

void execute(CpuContext& context, const Dropout& op) {
    const DropoutChoice choice = choiceOf(op);
    forRows(context, op.x.shape[0], op.x.shape[1] * 8, [&](std::int64_t row) {
        if (op.x.dtype == DType::F64) {
            dropRow<double>(op, choice, row);
        } else {
            dropRow<float>(op, choice, row);
        }
    });
}

} // namespace vitrine::kernels
