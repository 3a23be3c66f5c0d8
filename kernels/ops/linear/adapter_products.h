// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A Matmul with an adapter as three without: the product with the weight, the one down to the adapter's rank, and the
// one up again, which adds to the first. With dropout, an op before the second one drops elements of its input. The
// same list serves sizing, costs and every backend.

#include "kernels/core/device_traits.h"
#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/rowwise/dropout.h"

namespace vitrine::kernels {

struct AdapterProducts {
    AdapterProducts(const Matmul& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(base);
        if (drop.probability > 0) {
            visit(drop);
        }
        visit(down);
        visit(up);
    }

    Matmul base, down, up;
    Dropout drop; ///< its probability is 0 where nothing is dropped
    std::uint64_t bytes = 0;
};

} // namespace vitrine::kernels
