// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Stop strings over streamed text. A stop string may begin in one token and end in another, so text that could be its
// beginning is held back until it is certain.

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

class StopText {
public:
    /// `stops` are UTF-8, none empty.
    explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

    /// Text that may be shown now. Once a stop string is complete, the text before it is returned, hit() is true, and
    /// nothing follows. Where several end, the one that begins first counts.
    std::string push(std::string_view text);
    /// What was held back, when the text ended without a stop string.
    std::string finish();
    bool hit() const { return hit_; }

private:
    std::vector<std::string> stops_;
    std::string held_;
    bool hit_ = false;
};

} // namespace vitrine::engine
