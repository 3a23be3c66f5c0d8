// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Metrics that the workload "load" and its plan share.

#include <cstdint>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Bytes of all tensors of the checkpoint. For a synthetic model: the bytes that its checkpoint would have.
std::uint64_t diskBytes(const ModelSource& source);

} // namespace vitrine::engine
