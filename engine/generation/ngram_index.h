// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Finds where the last tokens of a text stand earlier in it. Each new token costs the same, however long the text is,
// and so does a search.

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine::engine {

/// How many of the last tokens must stand at an earlier place too.
struct NgramSizes {
    std::int64_t shortest = 2, longest = 4;
};

/// Where each sequence of `size` tokens stood last. A place is the index of the token behind the sequence.
class NgramPlaces {
public:
    explicit NgramPlaces(std::int64_t size) : size_(size) {}

    static constexpr std::int32_t kNowhere = -1;

    /// The last added place where the tokens stand that end at `place`; or kNowhere.
    std::int32_t find(std::span<const std::int32_t> text, std::int64_t place) const;
    /// Adds a place, and returns what find() gave for it before.
    std::int32_t add(std::span<const std::int32_t> text, std::int64_t place);

private:
    bool holds(std::span<const std::int32_t> text, std::size_t slot, std::int64_t place) const;
    std::size_t slotOf(std::span<const std::int32_t> text, std::int64_t place) const;
    void grow(std::span<const std::int32_t> text);

    std::int64_t size_;
    std::vector<std::int32_t> slots_; ///< an open hash table of places, at most half full; its size is a power of two
    std::size_t used_ = 0;
};

class NgramIndex {
public:
    /// REQUIRES 1 <= sizes.shortest <= sizes.longest.
    explicit NgramIndex(const NgramSizes& sizes) : sizes_(sizes), longest_(sizes.longest), shortest_(sizes.shortest) {}

    /// What may follow the text: of the places where at least `shortest` of its last tokens stand once more, the one
    /// where most of them do (up to `longest`), and of equal ones the last. Where fewer than `longest` stand, only the
    /// kMostPlaces last places are looked at, so that a common pair of tokens in a long text takes no time. The draft
    /// is what followed there. Where this runs into the end of the text, the draft goes on with its own tokens, so that
    /// a repeating text is continued. Empty where there is no such place.
    ///
    /// The text is that of the last call with more tokens at its end; else the index begins anew. It takes time for the
    /// new tokens only.
    std::vector<std::int32_t> draft(std::span<const std::int32_t> text, std::int64_t tokens);

private:
    static constexpr int kMostPlaces = 256;

    void read(std::span<const std::int32_t> text);
    std::int32_t bestPlace(std::span<const std::int32_t> text) const;

    NgramSizes sizes_;
    NgramPlaces longest_;
    NgramPlaces shortest_;
    /// For each place, the one before it where the same `shortest` tokens stand.
    std::vector<std::int32_t> before_;
};

} // namespace vitrine::engine
