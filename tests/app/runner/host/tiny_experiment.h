// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <nlohmann/json.hpp>

namespace vitrine::test {

/// A generation by a model of a few kilobytes. A long one lasts until it is stopped.
inline nlohmann::json tinyExperiment(int newTokens) {
    return {{"vitrine", 1},
            {"workload", "generate"},
            {"model", "synthetic:tiny-llama"},
            {"tokens", {1, 2, 3}},
            {"ignore_eos", true},
            {"max_new_tokens", newTokens},
            {"set", {{"max_position_embeddings", "2000000"}}}};
}

} // namespace vitrine::test
