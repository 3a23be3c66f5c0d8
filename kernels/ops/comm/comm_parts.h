// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What collectives share: rules of their checks, and what they cost.

#include <cstdint>
#include <string_view>

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

/// The communicator is there, and the tensor is contiguous.
void checkCollective(const OpCheck& rule, const Communicator* communicator, const TensorView& x,
                     std::string_view field);

/// `whole` divided along `axis` gives `part` to this rank.
void checkPart(const OpCheck& rule, const Communicator* communicator, const TensorView& part,
               std::string_view partField, const TensorView& whole, std::string_view wholeField, int axis);

/// Cost of a collective that reads and writes so many bytes here and sends `linkBytes`.
Cost collectiveCost(const Communicator& communicator, std::uint64_t read, std::uint64_t written,
                    std::uint64_t linkBytes);

/// Bytes that the others have of `bytes` that are divided among all.
std::uint64_t bytesOfOthers(std::uint64_t bytes, const Communicator& communicator);

/// Whether ranks exchange through scratch here, which a sum needs. Devices with links have room of their own for it.
bool sumsInScratch(const DeviceTraits& traits);

/// Ranks wait for the slowest: the ops of each begin when those of all before are done.
void joinRanks(MetaContext& context, std::string_view op, Communicator& communicator);

} // namespace vitrine::kernels
