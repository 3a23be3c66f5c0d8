// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cancellation and progress of long work. Every long call takes both.

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "base/error.h"

namespace vitrine::base {

using StopSource = std::stop_source;
using StopToken = std::stop_token;

/// Throws Cancelled when a stop was requested.
inline void throwIfStopped(const StopToken& token) {
    if (token.stop_requested()) {
        throw Cancelled();
    }
}

/// Receives progress of one piece of work. Called from the working thread; must not block or throw.
class ProgressSink {
public:
    virtual ~ProgressSink() = default;
    /// `what` reads as a sentence part, "Reading model-00002-of-00002.safetensors"; total 0 means unknown.
    virtual void progress(std::string_view what, std::uint64_t done, std::uint64_t total) = 0;
};

} // namespace vitrine::base
