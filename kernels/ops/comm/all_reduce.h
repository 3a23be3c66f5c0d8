// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The sum of a tensor over ranks. Ranks add up in their order, in float32 (F64 in itself), and the sum is rounded once,
// so that all ranks get the same bits.

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out = the sum of every rank's x. Its gradient is an AllReduce too: every rank's x is in every rank's sum.
struct AllReduce {
    static constexpr std::string_view kName = "AllReduce";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x;   ///< contiguous floats, of the same shape on every rank
    TensorView out; ///< as x; may be x
    Communicator* communicator = nullptr;
    TensorView scratch;
};

void check(const AllReduce& op);
Cost cost(const AllReduce& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const AllReduce& op, const DeviceTraits& traits);
void execute(CpuContext& context, const AllReduce& op);
void execute(CudaContext& context, const AllReduce& op);
void execute(MetaContext& context, const AllReduce& op);

/// The gradient of x, from that of out.
AllReduce gradientOf(const AllReduce& op, const TensorView& gradOut, const TensorView& gradX);

} // namespace vitrine::kernels
