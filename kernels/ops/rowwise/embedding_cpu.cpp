// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/embedding.h"

#include <cstring>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

template <class C> void embedRow(const Embedding& op, std::int64_t row, std::int64_t id) {
    C values[kRowPiece];
    forPieces(op.table.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadFloats(op.table.dtype, op.table.data, id * op.table.stride0() + begin, count, values);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] *= static_cast<C>(op.scale);
        }
        storeFloats(op.out.dtype, values, count, op.out.data, row * op.out.stride0() + begin);
    });
}

} // namespace

void execute(CpuContext& context, const Embedding& op) {
    const std::int32_t* ids = op.ids.as<const std::int32_t>();
    forRows(context, op.ids.shape[0], op.table.shape[1], [&](std::int64_t row) {
        const std::int64_t id = op.firstId < 0 ? ids[row] : ids[row] - op.firstId;
        if (op.firstId >= 0 && (id < 0 || id >= op.table.shape[0])) {
            std::memset(op.out.as<std::byte>() + bytesOf(op.out.dtype, row * op.out.stride0()), 0,
                        bytesOf(op.out.dtype, op.out.shape[1]));
            return;
        }
        if (id < 0 || id >= op.table.shape[0]) {
            throw base::BadInput(fmt::format("token ids: id {} is outside the vocabulary of {}; use the ids of this "
                                             "model's tokenizer",
                                             id, op.table.shape[0]));
        }
        if (op.table.dtype == DType::F64) {
            embedRow<double>(op, row, id);
        } else {
            embedRow<float>(op, row, id);
        }
    });
}

} // namespace vitrine::kernels
