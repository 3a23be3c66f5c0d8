// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/quoted_text.h"

#include <nlohmann/json.hpp>

namespace vitrine::base {

std::string quotedText(std::string_view text) {
    constexpr std::size_t kShown = 80;
    const nlohmann::json shown = std::string(text.substr(0, kShown));
    return shown.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + (text.size() > kShown ? "..." : "");
}

} // namespace vitrine::base
