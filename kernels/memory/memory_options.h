// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a Memory is made.

#include <cstdint>
#include <functional>

namespace vitrine::kernels {

/// How the bytes of device memory are written and read from the host; empty functions: it is host memory.
struct ByteAccess {
    std::function<void(void* device, std::uint8_t value, std::uint64_t bytes)> fill;
    std::function<void(const void* device, void* host, std::uint64_t bytes)> read;
};

struct MemoryOptions {
    std::uint64_t deviceBudget = 0; ///< bytes, 0 = the device's memory
    std::uint64_t hostBudget = 0;   ///< bytes, 0 = no limit
    std::uint64_t untracked = 0;    ///< counted from the start
    bool guardBytes = false;        ///< patterns around every allocation, checked on free (tests)
    ByteAccess guardAccess;         ///< for guard bytes
    std::uint64_t failFrom = 0;     ///< refuses device reservations from this one on, 1 is the first; 0: none (tests)
    std::uint64_t mapUnit = std::uint64_t{2} << 20;    ///< bytes: growing ranges are backed in multiples of it
    std::function<void(std::uint64_t bytes)> onMapped; ///< called when a range grew; may be empty
};

} // namespace vitrine::kernels
