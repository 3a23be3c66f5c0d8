// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Who holds the slots of a batch from when on, so that who runs at some moment is known at the cost of the slots, not
// of the requests. Values; any thread.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vitrine::profiler {

class SlotHolders {
public:
    /// A request gets a slot, or leaves the one that it has, if any. Places ascending.
    void take(std::int32_t slot, base::TimeNs place, std::int32_t request);
    void leave(base::TimeNs place, std::int32_t request);
    /// Requests that hold slots at a place, ascending.
    std::vector<std::int32_t> at(base::TimeNs place) const;

private:
    struct Change {
        base::TimeNs place = 0;
        std::int32_t request = -1; ///< -1: nobody
    };
    std::map<std::int32_t, std::vector<Change>> slots_;
    std::map<std::int32_t, std::int32_t> held_; ///< slot of each request that holds one now
};

/// The first of `rows` neighbouring numbers that so many of `numbers` (ascending) lie among as among no others, those
/// in the middle; never below 0. `shown` where as many lie among the `rows` numbers from there on.
std::int32_t firstOfMost(const std::vector<std::int32_t>& numbers, std::int32_t rows, std::int32_t shown);

} // namespace vitrine::profiler
