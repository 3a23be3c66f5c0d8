// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/user_folder.h"

#include <cstdlib>

namespace vitrine::base {

std::string userCacheFolder() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    if (std::string own = variable("VITRINE_CACHE_DIR"); !own.empty()) {
        return own;
    }
    if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
        return cache + "/vitrine";
    }
    const std::string home = variable("HOME");
    return home.empty() ? std::string() : home + "/.cache/vitrine";
}

} // namespace vitrine::base
