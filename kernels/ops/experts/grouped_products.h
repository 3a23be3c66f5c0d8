// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A GroupedMatmul with an adapter as three without, as kernels/ops/linear/adapter_products.h does for one matrix.

#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/experts/grouped_matmul.h"

namespace vitrine::kernels {

struct GroupedAdapterProducts {
    GroupedAdapterProducts(const GroupedMatmul& op, ScratchLayout layout);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(base);
        visit(down);
        visit(up);
    }

    GroupedMatmul base, down, up;
    std::uint64_t bytes = 0;
};

} // namespace vitrine::kernels
