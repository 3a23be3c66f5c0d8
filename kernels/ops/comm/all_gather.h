// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A tensor that ranks have in parts along one dimension: whole on every rank, and the reverse. Parts are those of
// rankShare(); each is the other's gradient.

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out = the parts of all ranks, side by side.
struct AllGather {
    static constexpr std::string_view kName = "AllGather";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x;   ///< (part, ...) or (rows, part): contiguous
    TensorView out; ///< (whole, ...) or (rows, whole): contiguous; shares no byte with x
    int axis = 0;   ///< 0, or 1 of a matrix
    Communicator* communicator = nullptr;
    TensorView scratch;
};

/// out = this rank's part of the sum of every rank's x. Adds as AllReduce does.
struct ReduceScatter {
    static constexpr std::string_view kName = "ReduceScatter";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x;   ///< (whole, ...) or (rows, whole): contiguous floats
    TensorView out; ///< (part, ...) or (rows, part): contiguous; shares no byte with x
    int axis = 0;   ///< 0, or 1 of a matrix
    Communicator* communicator = nullptr;
    TensorView scratch;
};

void check(const AllGather& op);
Cost cost(const AllGather& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const AllGather& op, const DeviceTraits& traits);
void execute(CpuContext& context, const AllGather& op);
void execute(CudaContext& context, const AllGather& op);
void execute(MetaContext& context, const AllGather& op);

void check(const ReduceScatter& op);
Cost cost(const ReduceScatter& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const ReduceScatter& op, const DeviceTraits& traits);
void execute(CpuContext& context, const ReduceScatter& op);
void execute(CudaContext& context, const ReduceScatter& op);
void execute(MetaContext& context, const ReduceScatter& op);

/// The gradient of x, from that of out: every rank's out has this rank's x in it.
ReduceScatter gradientOf(const AllGather& op, const TensorView& gradOut, const TensorView& gradX);
AllGather gradientOf(const ReduceScatter& op, const TensorView& gradOut, const TensorView& gradX);

} // namespace vitrine::kernels
