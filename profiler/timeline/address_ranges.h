// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which addresses a run ever used. Allocators spread their reservations over the whole address space, so a picture
// shows the used ranges one above the other and leaves out what lies between them.

#include <cstdint>
#include <map>
#include <vector>

namespace vitrine::profiler {

/// Ranges closer than this are one, so that the holes between neighbouring blocks stay visible.
inline constexpr std::uint64_t kJoinedGap = std::uint64_t{1} << 20;

struct AddressRange {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t compact = 0; ///< where it begins in the picture
};

/// Immutable ranges, rising.
class AddressMap {
public:
    AddressMap() = default;
    explicit AddressMap(std::vector<AddressRange> ranges) : ranges_(std::move(ranges)) {}

    /// Monotone; addresses outside of all ranges go to the nearest end.
    std::uint64_t compact(std::uint64_t address) const;
    std::uint64_t extent() const; ///< bytes of all ranges

private:
    std::vector<AddressRange> ranges_;
};

class AddressRanges {
public:
    void add(std::uint64_t begin, std::uint64_t end);
    AddressMap view() const;

private:
    std::map<std::uint64_t, std::uint64_t> ranges_; ///< begin to end
};

} // namespace vitrine::profiler
