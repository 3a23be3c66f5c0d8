// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sums over what ranks have sent, for collectives on the CPU.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/communicator.h"
#include "kernels/core/dtype.h"

namespace vitrine::kernels {

class CpuContext;

/// out[i] = sum over parts of part[i], in the order of the parts; float32 in between, or float64 for F64. `out` may be
/// one of the parts.
void sumParts(CpuContext& context, DType dtype, std::span<const std::byte* const> parts, std::int64_t count, void* out);

/// The pieces of all ranks, one after the other, as exchange() takes them. `bytes`: of an element, or of a row.
std::vector<SentBytes> piecesToSend(const void* data, std::int64_t total, std::uint64_t bytes, int ranks);
std::vector<ReceivedBytes> piecesToReceive(void* data, std::int64_t total, std::uint64_t bytes, int ranks);

} // namespace vitrine::kernels
