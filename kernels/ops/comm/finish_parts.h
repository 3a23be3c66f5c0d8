// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FinishBlock as primitives.

#include <optional>

#include "kernels/ops/comm/all_reduce.h"
#include "kernels/ops/comm/finish_block.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/rms_norm.h"

namespace vitrine::kernels {

struct FinishBlockPrimitives {
    FinishBlockPrimitives(const FinishBlock& op, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(reduce);
        if (norm) {
            visit(*norm);
        }
        visit(add);
    }

    AllReduce reduce;
    std::optional<RmsNorm> norm;
    Add add;
    std::uint64_t bytes = 0; ///< of op.scratch
};

} // namespace vitrine::kernels
