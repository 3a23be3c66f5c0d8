// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Every rank has a block of rows for every rank: afterwards it has those that were for it.

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out[r] on rank q = x[q] on rank r. Its gradient is an AllToAll too.
struct AllToAll {
    static constexpr std::string_view kName = "AllToAll";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x;   ///< (ranks, ...), contiguous, of any dtype
    TensorView out; ///< as x; shares no byte with it
    Communicator* communicator = nullptr;
};

void check(const AllToAll& op);
Cost cost(const AllToAll& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const AllToAll& op, const DeviceTraits& traits);
void execute(CpuContext& context, const AllToAll& op);
void execute(CudaContext& context, const AllToAll& op);
void execute(MetaContext& context, const AllToAll& op);

AllToAll gradientOf(const AllToAll& op, const TensorView& gradOut, const TensorView& gradX);

} // namespace vitrine::kernels
