// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Byte-pair encoding: the "model" of tokenizer.json with type BPE.

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
class BpeModel {
public:
    /// `field` is the member "model". Throws BadInput for anything inconsistent.
    static BpeModel read(const JsonField& field);

    /// Working memory of encode(), kept between calls to spare allocations.
    class Scratch {
        friend class BpeModel;
        struct Symbol {
            std::int32_t id;
            std::int32_t previous; ///< -1: none
            std::int32_t next;     ///< -1: none
            bool alive;
        };
        struct Candidate {
            std::int32_t rank;
            std::int32_t position;
            std::int32_t merged;
        };
        std::vector<Symbol> symbols_;
        std::vector<Candidate> heap_;
    };

    /// Appends the ids of one piece of valid UTF-8 of less than 2^31 code points. O(n log n).
    void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const;

    std::optional<std::int32_t> idOf(std::string_view piece) const;
    /// Empty for ids that no piece has.
    std::string_view pieceOf(std::int32_t id) const;
    /// One more than the largest id.
    std::int32_t idEnd() const { return static_cast<std::int32_t>(pieces_.size()); }
    /// Number of pieces, without the holes.
    std::size_t size() const { return ids_.size(); }

private:
    BpeModel() = default;

    void readVocabulary(const JsonField& vocab);
    void readMerges(const JsonField& merges);
    void addMerge(const JsonField& merges, std::size_t rank, std::string_view left, std::string_view right);
    void indexSingles();
    void appendSymbols(std::string_view piece, Scratch& scratch) const;
    void mergeSymbols(Scratch& scratch) const;
    void pushCandidate(Scratch& scratch, std::int32_t position) const;
    std::int32_t symbolId(std::string_view character, bool first, bool last) const;

    struct Merge {
        std::int32_t rank = -1;
        std::int32_t id = -1;
    };

    std::vector<std::string> pieces_;
    std::unordered_map<std::string_view, std::int32_t> ids_; // keys point into pieces_
    IdMap<Merge> merges_;                                    // by the ids of the pair
    IdMap<std::int32_t> singles_;                            // code point to id, where affixes play no part
    std::vector<std::int32_t> byteIds_;                      // "<0xXX>", -1 where missing
    std::int32_t unknown_ = -1;
    bool byteFallback_ = false;
    bool fuseUnknown_ = false;
    bool ignoreMerges_ = false;
    std::string continuingPrefix_;
    std::string endSuffix_;
};

} // namespace vitrine::engine
