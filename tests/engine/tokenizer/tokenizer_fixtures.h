// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine::test {

/// A tokenizer of tests/fixtures/tokenizers.
inline std::shared_ptr<const Tokenizer> tokenizerFixture(const std::string& name) {
    return Tokenizer::load(
        (std::filesystem::path(VITRINE_FIXTURES) / "tokenizers" / (name + ".tokenizer.json")).string());
}

} // namespace vitrine::engine::test
