// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one rank has, on every rank.

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// x = the root's x. Its gradient is a sum over ranks that the root keeps (Reduce).
struct Broadcast {
    static constexpr std::string_view kName = "Broadcast";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x; ///< contiguous, of any dtype
    int root = 0;
    Communicator* communicator = nullptr;
};

/// out on the root = the sum of every rank's x; other ranks write zeros. Adds as AllReduce does.
struct Reduce {
    static constexpr std::string_view kName = "Reduce";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x;   ///< contiguous floats
    TensorView out; ///< as x; may be x
    int root = 0;
    Communicator* communicator = nullptr;
    TensorView scratch;
};

void check(const Broadcast& op);
Cost cost(const Broadcast& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Broadcast& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Broadcast& op);
void execute(CudaContext& context, const Broadcast& op);
void execute(MetaContext& context, const Broadcast& op);

void check(const Reduce& op);
Cost cost(const Reduce& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const Reduce& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Reduce& op);
void execute(CudaContext& context, const Reduce& op);
void execute(MetaContext& context, const Reduce& op);

/// The gradient of the root's x before the op, from those of x after it: zero on other ranks.
Reduce gradientOf(const Broadcast& op, const TensorView& gradOut, const TensorView& gradX);

} // namespace vitrine::kernels
