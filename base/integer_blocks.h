// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Packed integers of a column. No values take no bytes. Otherwise there is varint zigzag(first value), from which the
// first delta counts, and then blocks of 256 values (the last may be shorter), each:
//     u8 form (bit 3: values, else deltas to the value before; bits 0-2: width code)
//     varint zigzag(base) | per value: value or delta minus base, in 0, 1, 2, 4 or 8 bytes
// Arithmetic is modulo 2^64, so every value has a delta.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_stream.h"

namespace vitrine::base {

/// Appends `values` in blocks.
void putIntegers(ByteWriter& out, std::span<const std::uint64_t> values);

/// Reads exactly values.size() integers. Throws BadInput when the bytes are damaged.
void takeIntegers(ByteReader& in, std::span<std::uint64_t> values);

/// The most bytes that this many integers take.
std::size_t maxIntegerBytes(std::uint64_t rows);

} // namespace vitrine::base
