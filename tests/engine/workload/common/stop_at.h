// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/stop.h"

namespace vitrine::engine::test {

/// Asks for a stop when a sentence of progress has the word. One thread.
class StopAt final : public base::ProgressSink {
public:
    explicit StopAt(std::string word) : word_(std::move(word)) {}
    void progress(std::string_view what, std::uint64_t, std::uint64_t) override {
        if (what.find(word_) != std::string_view::npos) {
            source_.request_stop();
        }
    }
    base::StopToken token() const { return source_.get_token(); }

private:
    std::string word_;
    base::StopSource source_;
};

} // namespace vitrine::engine::test
