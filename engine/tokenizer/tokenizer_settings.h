// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What tokenizer_config.json changes about the tokenizer.json beside it, as transformers 5 loads the two.

#include <string>

#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

class AddedTokens;
class TokenModel;

struct TokenizerSettings {
    bool splitsSpecialTokens = false; ///< special tokens in a text are plain text
};

/// Adds the tokens that the file names to `added`: those of added_tokens_decoder, and named special tokens that are
/// plain pieces so far. Its add_bos_token and add_eos_token have no bearing: the post-processor of tokenizer.json
/// counts. Warns once of what would change ids or texts and is not followed; `tokenizer` is the root of tokenizer.json.
/// Throws BadInput.
TokenizerSettings readTokenizerSettings(const JsonField& config, const JsonField& tokenizer, const TokenModel& model,
                                        AddedTokens& added);

} // namespace vitrine::engine
