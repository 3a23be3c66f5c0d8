// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One rank sends a tensor to another one. Each Send has its Receive; ranks beside the two do nothing.

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Its gradient is received from where it was sent.
struct Send {
    static constexpr std::string_view kName = "Send";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView x; ///< contiguous, of any dtype
    int to = 0;   ///< another rank
    Communicator* communicator = nullptr;
};

struct Receive {
    static constexpr std::string_view kName = "Receive";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView out; ///< as the other rank's x
    int from = 0;   ///< another rank
    Communicator* communicator = nullptr;
};

void check(const Send& op);
Cost cost(const Send& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Send& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Send& op);
void execute(CudaContext& context, const Send& op);
void execute(MetaContext& context, const Send& op);

void check(const Receive& op);
Cost cost(const Receive& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Receive& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Receive& op);
void execute(CudaContext& context, const Receive& op);
void execute(MetaContext& context, const Receive& op);

Receive gradientOf(const Send& op, const TensorView& gradX);
Send gradientOf(const Receive& op, const TensorView& gradOut);

} // namespace vitrine::kernels
