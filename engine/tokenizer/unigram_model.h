// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "model" of tokenizer.json with type Unigram: pieces with scores, and the cut of a text whose scores have the
// greatest sum (Kudo 2018).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/id_map.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

/// Immutable after reading; safe to use from several threads, each with its own Scratch.
class UnigramModel {
public:
    /// `field` is the member "model". Throws BadInput for anything inconsistent.
    static UnigramModel read(const JsonField& field);

    /// Working memory of encode(), kept between calls to spare allocations.
    class Scratch {
        friend class UnigramModel;
        struct Node {
            double score = 0;        ///< of the best way that ends here
            std::int32_t piece = -1; ///< the last piece of that way
            std::int32_t begin = -1; ///< where that piece begins; -1: no way ends here yet
        };
        std::vector<Node> ends_; ///< by the byte where a way ends
        std::vector<std::pair<std::size_t, std::size_t>> cuts_;
    };

    /// Appends the ids of one piece of valid UTF-8 of less than 2^31 bytes. Takes O(n) times the longest piece. Throws
    /// BadInput for a character that no piece has where the model has no unknown token.
    void encode(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const;

    std::optional<std::int32_t> idOf(std::string_view piece) const;
    /// Empty for ids that no piece has.
    std::string_view pieceOf(std::int32_t id) const;
    /// One more than the largest id.
    std::int32_t idEnd() const { return static_cast<std::int32_t>(pieces_.size()); }

private:
    UnigramModel() = default;

    void addToTrie(std::string_view piece, std::int32_t id);
    void findWays(std::string_view text, std::vector<Scratch::Node>& ends) const;
    bool appendBytes(std::string_view text, std::vector<std::int32_t>& ids) const;
    [[noreturn]] void failUnknown() const;

    std::string where_;
    std::vector<std::string> pieces_;
    std::vector<double> scores_;
    std::unordered_map<std::string_view, std::int32_t> ids_; // keys point into pieces_
    IdMap<std::int32_t> edges_;                              // (node, byte) to node; node 0 is the root
    std::vector<std::int32_t> pieceAt_;                      // by node, -1: no piece ends there
    std::vector<std::int32_t> byteIds_;                      // "<0xXX>", -1 where missing
    double unknownScore_ = 0;
    std::int32_t unknown_ = -1;
    bool byteFallback_ = false;
};

} // namespace vitrine::engine
