// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/run_info.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace vitrine::sessions {

namespace {

constexpr std::array<std::string_view, 6> kStatusNames{"running",       "done",      "failed",
                                                       "out_of_memory", "cancelled", "interrupted"};

} // namespace

std::string_view runStatusName(RunStatus status) {
    return kStatusNames.at(static_cast<std::size_t>(status));
}

RunStatus runStatusFromName(std::string_view name) {
    const auto* found = std::find(kStatusNames.begin(), kStatusNames.end(), name);
    return found == kStatusNames.end() ? RunStatus::Interrupted
                                       : static_cast<RunStatus>(std::distance(kStatusNames.begin(), found));
}

} // namespace vitrine::sessions
