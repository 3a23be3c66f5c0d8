// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <chrono>
#include <thread>

namespace vitrine::test {

/// Asks every 10 ms until `wanted()` is true; false when it was not within a minute. Looks are counted instead of time:
/// while the machine stands still there are none.
template <class Wanted> bool eventually(const Wanted& wanted) {
    constexpr int kLooks = 6000;
    for (int look = 0; look < kLooks; ++look) {
        if (wanted()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return wanted();
}

} // namespace vitrine::test
