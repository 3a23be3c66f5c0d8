// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Added tokens: pieces that are cut out of the text before the model sees it.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/id_map.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/normalizer.h"

namespace vitrine::engine {

class TokenModel;

struct AddedToken {
    std::int32_t id = -1;
    std::string content;
    bool singleWord = false; ///< only where no word character stands before or after it
    bool lstrip = false;     ///< takes the white space on its left
    bool rstrip = false;     ///< takes the white space on its right
    bool normalized = false; ///< looked for in the normalized text
    bool special = false;    ///< a control token: hidden from text, never read from what a user wrote
};

/// A stretch of text: an added token, or text between them (token is null).
struct TokenStretch {
    std::size_t begin;
    std::size_t end;
    const AddedToken* token;
};

/// Immutable after finish(); safe to use from several threads.
class AddedTokens {
public:
    /// Reads one list: "added_tokens" of tokenizer.json (an array) or "added_tokens_decoder" of tokenizer_config.json
    /// (an object with the id as key). A later entry for the same content replaces the flags of an earlier one.
    /// Throws BadInput when an id contradicts the model's vocabulary or another token.
    void readList(const JsonField& field, const TokenModel& model);
    void readDecoderTable(const JsonField& field, const TokenModel& model);
    /// A piece of the model that is a special token from now on: a string, or an object with its text and flags.
    void addSpecial(const JsonField& field, std::int32_t id, const TokenModel& model);
    /// Builds the search tables. Call once, after the lists.
    void finish(const Normalizer& normalizer);

    enum class Stage { Raw, Normalized };
    /// Whether a special token may be read from these bytes of the text.
    using SpecialRule = std::function<bool(const AddedToken& token, std::size_t begin, std::size_t end)>;
    /// The text cut at the tokens of one stage, leftmost first, longest first; covers the text.
    std::vector<TokenStretch> find(std::string_view text, Stage stage, const SpecialRule& special) const;

    const AddedToken* byId(std::int32_t id) const;
    const AddedToken* byContent(std::string_view content) const;
    /// What decoding prints for a token. A token that is looked for in normalized text is printed in its normalized
    /// form.
    std::string_view decodedContent(const AddedToken& token) const;
    /// One more than the largest id, 0 when there are no tokens.
    std::int32_t idEnd() const;
    std::size_t size() const { return tokens_.size(); }

private:
    /// A byte trie. Node 0 is the root.
    struct Trie {
        IdMap<std::int32_t> edges;            ///< (node, byte) to node
        std::vector<const AddedToken*> final; ///< by node; null: no token ends here
        void insert(std::string_view text, const AddedToken* token);
        const AddedToken* longestAt(std::string_view text, std::size_t begin, std::size_t& end) const;
    };

    void add(const JsonField& field, AddedToken token, const TokenModel& model);
    static AddedToken readFlags(const JsonField& field);

    std::map<std::int32_t, AddedToken> tokens_; // stable addresses: the tries point at the values
    std::map<std::string, std::int32_t, std::less<>> ids_;
    std::map<std::int32_t, std::string> normalizedContent_;
    Trie raw_;
    Trie normalized_;
};

} // namespace vitrine::engine
