// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/single_expert.h"

#include <charconv>
#include <string_view>

namespace vitrine::engine {

SingleExpert::SingleExpert(const std::string& name) {
    constexpr std::string_view kExperts = ".experts.";
    const std::size_t at = name.find(kExperts);
    if (at == std::string::npos || !name.ends_with("_proj.weight")) {
        return;
    }
    const std::size_t number = at + kExperts.size();
    const char* const end = name.data() + name.size();
    const auto [after, error] = std::from_chars(name.data() + number, end, expert);
    if (error != std::errc{} || after == end || *after != '.') {
        expert = -1;
        return;
    }
    up = name.ends_with("up_proj.weight");
    parameter = name.substr(0, number) + (name.ends_with("down_proj.weight") ? "down_proj" : "gate_up_proj");
}

std::int64_t SingleExpert::place() const {
    const std::int64_t halves = parameter.ends_with("gate_up_proj") ? 2 : 1;
    return expert * halves + (up ? 1 : 0);
}

} // namespace vitrine::engine
