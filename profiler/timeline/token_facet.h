// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tokens that a run sampled, by time. Immutable; any thread may ask.

#include <span>
#include <utility>

#include "base/trace.h"
#include "profiler/record/segmented_vector.h"

namespace vitrine::profiler {

class TokenFacet {
public:
    explicit TokenFacet(SharedView<base::TokenEvent> all) : all_(std::move(all)) {}

    std::span<const base::TokenEvent> all() const { return {all_.begin(), all_.size()}; }

private:
    SharedView<base::TokenEvent> all_;
};

} // namespace vitrine::profiler
