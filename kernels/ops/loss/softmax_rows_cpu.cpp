// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/softmax_rows_cpu.h"

#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::kernels {

std::int64_t targetOfRow(const TensorView& targets, std::int64_t row, std::int64_t vocab) {
    const std::int64_t target = targets.as<const std::int32_t>()[row];
    if (target >= vocab) {
        throw base::BadInput(fmt::format("targets: id {} is outside the vocabulary of {}; use the ids of this "
                                         "model's tokenizer",
                                         target, vocab));
    }
    return target;
}

} // namespace vitrine::kernels
