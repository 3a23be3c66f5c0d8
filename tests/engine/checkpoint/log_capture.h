// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace vitrine::engine::test {

/// The warnings that `action` logs.
template <class Action> std::vector<std::string> warningsOf(Action&& action) {
    std::vector<std::string> out;
    base::setLogSink([&](base::LogLevel level, std::string_view text) {
        if (level == base::LogLevel::Warning) {
            out.emplace_back(text);
        }
    });
    try {
        std::forward<Action>(action)();
    } catch (...) {
        base::setLogSink({});
        throw;
    }
    base::setLogSink({});
    return out;
}

} // namespace vitrine::engine::test
