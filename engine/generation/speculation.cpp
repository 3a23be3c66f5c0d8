// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/speculation.h"

#include "base/error.h"

namespace vitrine::engine {

void requireSpeculation(const ModelConfig& config) {
    if (config.rope.followsLength()) {
        throw base::Unsupported("speculate: the model's rotary frequencies change with the length of a sequence, so "
                                "several tokens of one step would differ from single ones; use none");
    }
}

} // namespace vitrine::engine
