// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/text_split.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

TextPattern TextPattern::read(const JsonField& field) {
    TextPattern pattern;
    pattern.where_ = field.where();
    if (const auto literal = field.find("String")) {
        pattern.literal_ = literal->asString();
        if (pattern.literal_->empty()) {
            literal->bad("must not be empty");
        }
    } else if (const auto regex = field.find("Regex")) {
        pattern.regex_.emplace(regex->asString(), regex->where());
    } else {
        field.bad("must have the member \"String\" or \"Regex\"");
    }
    if (field.value().size() != 1) {
        field.bad("must have exactly one of the members \"String\" and \"Regex\"");
    }
    return pattern;
}

std::vector<Stretch> TextPattern::find(std::string_view text) const {
    return literal_ ? findLiteral(text, *literal_) : coverWith(regex_->findAll(text), text.size());
}

std::string TextPattern::replace(std::string_view text, std::string_view content, std::size_t mostBytes) const {
    return replaceMatches(text, find(text), content, mostBytes, where_);
}

std::string replaceMatches(std::string_view text, const std::vector<Stretch>& stretches, std::string_view content,
                           std::size_t mostBytes, const std::string& where) {
    std::string out;
    out.reserve(text.size());
    for (const Stretch& stretch : stretches) {
        out += stretch.isMatch ? content : text.substr(stretch.begin, stretch.end - stretch.begin);
        if (out.size() > mostBytes) {
            failGrowth(where);
        }
    }
    return out;
}

void failGrowth(const std::string& where) {
    throw base::BadInput(where + ": makes far more text out of the text than a tokenizer should; refused");
}

std::vector<Stretch> coverWith(const std::vector<std::pair<std::size_t, std::size_t>>& matches, std::size_t size) {
    std::vector<Stretch> out;
    out.reserve(matches.size() + 1);
    std::size_t done = 0;
    // An empty text is one stretch without a match, whatever the pattern.
    if (size == 0) {
        return {{0, 0, false}};
    }
    for (const auto& [begin, end] : matches) {
        if (done != begin) {
            out.push_back({done, begin, false});
        }
        out.push_back({begin, end, true});
        done = end;
    }
    if (done != size) {
        out.push_back({done, size, false});
    }
    return out;
}

std::vector<Stretch> findLiteral(std::string_view text, std::string_view literal) {
    std::vector<std::pair<std::size_t, std::size_t>> matches;
    for (std::size_t at = text.find(literal); at != std::string_view::npos;
         at = text.find(literal, at + literal.size())) {
        matches.emplace_back(at, at + literal.size());
    }
    return coverWith(matches, text.size());
}

std::vector<Stretch> findCodePoints(std::string_view text, const std::function<bool(char32_t)>& wanted) {
    std::vector<std::pair<std::size_t, std::size_t>> matches;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        if (wanted(nextCodePoint(text, at))) {
            matches.emplace_back(begin, at);
        }
    }
    return coverWith(matches, text.size());
}

SplitBehavior readSplitBehavior(const JsonField& field) {
    constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
        {"Removed", SplitBehavior::Removed},
        {"Isolated", SplitBehavior::Isolated},
        {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
        {"MergedWithNext", SplitBehavior::MergedWithNext},
        {"Contiguous", SplitBehavior::Contiguous},
    }};
    for (const auto& [name, behavior] : kNames) {
        if (field.asString() == name) {
            return behavior;
        }
    }
    field.unsupported(fmt::format("unknown split behavior {}", quotedForMessage(field.asString())));
}

namespace {

/// Joins a stretch to the one handled before it when `joins(previous is a match, this is a match)` says so.
template <typename Iterator, typename Joins>
std::vector<Stretch> joinStretches(const Iterator& begin, const Iterator& end, bool backwards, Joins joins) {
    std::vector<Stretch> out;
    bool previous = false;
    for (auto it = begin; it != end; ++it) {
        if (joins(previous, it->isMatch) && !out.empty()) {
            (backwards ? out.back().begin : out.back().end) = backwards ? it->begin : it->end;
        } else {
            out.push_back(*it);
        }
        previous = it->isMatch;
    }
    return out;
}

} // namespace

std::vector<Stretch> splitAt(std::vector<Stretch> stretches, SplitBehavior behavior, bool invert) {
    if (invert) {
        for (Stretch& stretch : stretches) {
            stretch.isMatch = !stretch.isMatch;
        }
    }
    const auto joinsNeighbour = [](bool previous, bool current) { return current && !previous; };
    switch (behavior) {
    case SplitBehavior::Isolated:
        break;
    case SplitBehavior::Removed:
        std::erase_if(stretches, [](const Stretch& s) { return s.isMatch; });
        break;
    case SplitBehavior::Contiguous:
        stretches = joinStretches(stretches.begin(), stretches.end(), false,
                                  [](bool previous, bool current) { return previous == current; });
        break;
    case SplitBehavior::MergedWithPrevious:
        stretches = joinStretches(stretches.begin(), stretches.end(), false, joinsNeighbour);
        break;
    case SplitBehavior::MergedWithNext:
        stretches = joinStretches(stretches.rbegin(), stretches.rend(), true, joinsNeighbour);
        std::reverse(stretches.begin(), stretches.end());
        break;
    }
    std::erase_if(stretches, [](const Stretch& s) { return s.begin == s.end; });
    return stretches;
}

} // namespace vitrine::engine
