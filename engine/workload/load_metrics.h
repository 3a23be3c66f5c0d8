// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What loads and plans of loads report alike.

#include <cstdint>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Bytes of all tensors of the checkpoint; of a synthetic model those that it would have.
std::uint64_t diskBytes(const ModelSource& source);

} // namespace vitrine::engine
