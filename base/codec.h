// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// zstd with bounds, and a checksum. Used by column_chunk; nothing else compresses.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrine::base {

/// One zstd frame that says its size. Thread-safe.
std::vector<std::byte> compress(std::span<const std::byte> bytes, int level = 1);

/// Throws BadInput when the bytes are not exactly one zstd frame of known size or hold more than `maxBytes`.
std::vector<std::byte> decompress(std::span<const std::byte> bytes, std::size_t maxBytes);

/// A 64-bit checksum against damage (not against forgery), the same on every machine (little-endian ones).
std::uint64_t checksum64(std::span<const std::byte> bytes);

} // namespace vitrine::base
