// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Finds stop strings in streamed text. A stop string may begin in one token and end in a later one. So text that could
// be the beginning of a stop string is held back until this is decided.

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

class StopText {
public:
    /// `stops` are UTF-8. None of them is empty.
    explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

    /// Adds text and returns the text that may be shown now. When a stop string is complete, it returns the text before
    /// the stop string, hit() becomes true, and later calls return nothing. When several stop strings are complete at
    /// once, the one that begins first counts.
    std::string push(std::string_view text);
    /// Returns the text that was held back. Called when the text ends without a stop string.
    std::string finish();
    bool hit() const { return hit_; }

private:
    std::vector<std::string> stops_;
    std::string held_;
    bool hit_ = false;
};

} // namespace vitrine::engine
