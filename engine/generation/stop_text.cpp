// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/stop_text.h"

#include <algorithm>
#include <utility>

namespace vitrine::engine {

std::string StopText::push(std::string_view text) {
    if (hit_) {
        return {};
    }
    held_ += text;
    std::size_t found = std::string::npos;
    for (const std::string& stop : stops_) {
        found = std::min(found, held_.find(stop));
    }
    if (found != std::string::npos) {
        hit_ = true;
        held_.resize(found);
        return std::exchange(held_, {});
    }
    std::size_t keep = 0;
    for (const std::string& stop : stops_) {
        for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
            if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) {
                keep = length;
            }
        }
    }
    std::string shown = held_.substr(0, held_.size() - keep);
    held_.erase(0, shown.size());
    return shown;
}

std::string StopText::finish() {
    return std::exchange(held_, {});
}

} // namespace vitrine::engine
