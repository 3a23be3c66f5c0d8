// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// zstd with bounds. Used by column_chunk; nothing else compresses.

#include <cstddef>
#include <span>
#include <vector>

namespace vitrine::base {

std::vector<std::byte> compress(std::span<const std::byte> bytes, int level = 1);

/// Throws BadInput when the bytes are no zstd frame or hold more than `maxBytes`.
std::vector<std::byte> decompress(std::span<const std::byte> bytes, std::size_t maxBytes);

} // namespace vitrine::base
