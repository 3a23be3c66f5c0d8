// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// No metadatum of a GGUF file is passed over. A key is used, or it bears on nothing, or it bears on the numbers and
// must have the one value that changes nothing; what is left is named once in a warning.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/checkpoint/gguf_header.h"

namespace vitrine::engine {

/// What a reader knows of a key.
struct GgufKey {
    std::string_view name;
    /// Used: read, or without any bearing on the result. Otherwise the value must be one of two that change nothing.
    bool used = true;
    double neutral = 0, alsoNeutral = 0;
};

/// A key that is read or has no bearing.
constexpr GgufKey usedKey(std::string_view name) {
    return {name};
}

/// A key that is not read and must have one of two values.
constexpr GgufKey neutralKey(std::string_view name, double value, double other) {
    return {name, false, value, other};
}
constexpr GgufKey neutralKey(std::string_view name, double value) {
    return neutralKey(name, value, value);
}

/// Looks at all keys that begin with `prefix`; `known` has what follows it. A list must be neutral in every element,
/// and a text must be empty. Throws Unsupported for a key that bears on the result; warns once of those that nobody
/// knows. `others`: also of keys that have another prefix and say nothing about the file itself.
void checkGgufKeys(const GgufHeader& header, std::string_view prefix, std::span<const GgufKey> known, bool others);

/// Sizes that the neutral values of some keys follow from.
struct GgufKeySizes {
    std::string_view family; ///< model_type of config.json
    std::int64_t hidden = 0, headDim = 0;
    double ropeBase = 0;
};

/// The keys of llama.cpp's architectures, as far as the models that are read can have them.
std::vector<GgufKey> ggufModelKeys(const GgufKeySizes& sizes);

} // namespace vitrine::engine
