// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one event does to the totals of memory, and the totals themselves.

#include <cstddef>
#include <cstdint>

#include "base/trace.h"

namespace vitrine::profiler {

/// What one event does to the totals, in 64 bits: bytes (57), space (2), category (4), death (1).
class MemoryChange {
public:
    MemoryChange() = default;
    MemoryChange(std::uint64_t bytes, base::MemorySpace space, base::MemoryCategory category, bool death)
        : bits_(bytes << 7 | static_cast<std::uint64_t>(space) << 5 | static_cast<std::uint64_t>(category) << 1 |
                (death ? 1 : 0)) {}
    std::uint64_t bytes() const { return bits_ >> 7; }
    base::MemorySpace space() const { return static_cast<base::MemorySpace>(bits_ >> 5 & 3); }
    std::size_t category() const { return bits_ >> 1 & 15; }
    bool death() const { return (bits_ & 1) != 0; }

private:
    std::uint64_t bits_ = 0;
};

/// Device memory, or host and pinned memory together.
enum class MemorySide : std::uint8_t { Device, Host };
constexpr MemorySide sideOf(base::MemorySpace space) {
    return space == base::MemorySpace::Device ? MemorySide::Device : MemorySide::Host;
}

/// The bytes held after some event.
struct MemoryState {
    std::uint64_t total = 0;
    base::CategoryBytes bytes{};

    void apply(MemoryChange step) {
        const std::uint64_t change = step.death() ? std::uint64_t{0} - step.bytes() : step.bytes();
        total += change;
        bytes[step.category()] += change;
    }
};

} // namespace vitrine::profiler
