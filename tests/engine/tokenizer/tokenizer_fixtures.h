// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <memory>
#include <string>

#include "engine/tokenizer/tokenizer.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine::test {

/// A tokenizer of tests/fixtures/tokenizers.
inline std::shared_ptr<const Tokenizer> tokenizerFixture(const std::string& name) {
    return Tokenizer::load(vitrine::test::fixture("tokenizers/" + name + ".tokenizer.json"));
}

} // namespace vitrine::engine::test
