// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include "engine/tokenizer/byte_level.h"

namespace vitrine::engine {

namespace {

void appendStretches(const TextPiece& piece, const std::vector<Stretch>& stretches, std::vector<TextPiece>& out) {
    for (const Stretch& stretch : stretches) {
        out.push_back(
            {piece.text.substr(stretch.begin, stretch.end - stretch.begin), piece.atStart && stretch.begin == 0});
    }
}

const Regex& gpt2Words() {
    static const Regex kWords(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                              "ByteLevel");
    return kWords;
}

const Regex& plainText() {
    // Rust's \w, which unlike Oniguruma's has the two join controls and not the other numbers.
    static const Regex kWords(
        R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)",
        "Whitespace");
    return kWords;
}

} // namespace

PrependScheme readPrependScheme(const JsonField& field) {
    const auto legacy = field.find("add_prefix_space");
    const bool legacyOff = legacy && !legacy->asBool();
    const auto scheme = field.find("prepend_scheme");
    if (!scheme) {
        return legacyOff ? PrependScheme::Never : PrependScheme::Always;
    }
    const std::string& name = scheme->asString();
    if (name != "first" && name != "always" && name != "never") {
        scheme->bad(fmt::format("must be first, always or never, not {}", quotedForMessage(name)));
    }
    if (legacyOff && name != "never") {
        legacy->bad("contradicts prepend_scheme");
    }
    return name == "first" ? PrependScheme::First : name == "always" ? PrependScheme::Always : PrependScheme::Never;
}

std::string readMetaspaceReplacement(const JsonField& field) {
    const JsonField replacement = field.at("replacement");
    if (countCodePoints(replacement.asString()) != 1) {
        replacement.bad("must be exactly one character");
    }
    return replacement.asString();
}

PreTokenizer PreTokenizer::read(const std::optional<JsonField>& field) {
    PreTokenizer preTokenizer;
    if (field) {
        preTokenizer.where_ = field->where();
        preTokenizer.readInto(*field);
    }
    return preTokenizer;
}

void PreTokenizer::readInto(const JsonField& field) {
    const JsonField typeField = field.at("type");
    const std::string& type = typeField.asString();
    if (type == "Sequence") {
        const JsonField members = field.at("pretokenizers");
        for (std::size_t i = 0; i < members.arraySize(); ++i) {
            readInto(members.element(i));
        }
    } else if (type == "Split") {
        steps_.emplace_back(Split{TextPattern::read(field.at("pattern")), readSplitBehavior(field.at("behavior")),
                                  field.flag("invert", false)});
    } else if (type == "ByteLevel") {
        steps_.emplace_back(ByteLevel{field.at("add_prefix_space").asBool(), field.flag("use_regex", true)});
    } else if (type == "Metaspace") {
        steps_.emplace_back(
            Metaspace{readMetaspaceReplacement(field), readPrependScheme(field), field.flag("split", true)});
    } else if (type == "Whitespace") {
        steps_.emplace_back(Words{});
    } else if (type == "WhitespaceSplit") {
        steps_.emplace_back(WhiteSpaceSplit{});
    } else if (type == "Digits") {
        steps_.emplace_back(Digits{field.at("individual_digits").asBool()});
    } else if (type == "Punctuation") {
        const auto behavior = field.find("behavior");
        steps_.emplace_back(Punctuation{behavior ? readSplitBehavior(*behavior) : SplitBehavior::Isolated});
    } else {
        typeField.unsupported(fmt::format("the pre-tokenizer {} is not supported", quotedForMessage(type)));
    }
}

std::vector<TextPiece> PreTokenizer::apply(TextPiece text) const {
    const std::size_t mostBytes = growthLimit(text.text.size());
    std::vector<TextPiece> pieces;
    if (!text.text.empty()) {
        pieces.push_back(std::move(text));
    }
    for (const Step& step : steps_) {
        std::vector<TextPiece> next;
        next.reserve(pieces.size());
        for (TextPiece& piece : pieces) {
            std::visit([&](const auto& s) { applyStep(s, piece, next); }, step);
        }
        pieces = std::move(next);
        std::size_t bytes = 0;
        for (const TextPiece& piece : pieces) {
            bytes += piece.text.size();
        }
        if (bytes > mostBytes) {
            failGrowth(where_);
        }
    }
    return pieces;
}

void PreTokenizer::applyStep(const Split& step, TextPiece& piece, std::vector<TextPiece>& out) {
    appendStretches(piece, splitAt(step.pattern.find(piece.text), step.behavior, step.invert), out);
}

void PreTokenizer::applyStep(const ByteLevel& step, TextPiece& piece, std::vector<TextPiece>& out) {
    if (step.addPrefixSpace && piece.text.front() != ' ') {
        piece.text.insert(piece.text.begin(), ' ');
    }
    if (!step.useRegex) {
        out.push_back({bytesToAlphabet(piece.text), piece.atStart});
        return;
    }
    const auto stretches = coverWith(gpt2Words().findAll(piece.text), piece.text.size());
    for (const Stretch& s : stretches) {
        const std::string_view part = std::string_view(piece.text).substr(s.begin, s.end - s.begin);
        out.push_back({bytesToAlphabet(part), piece.atStart && s.begin == 0});
    }
}

void PreTokenizer::applyStep(const Metaspace& step, TextPiece& piece, std::vector<TextPiece>& out) {
    std::string text;
    text.reserve(piece.text.size() + step.replacement.size());
    for (const char c : piece.text) {
        if (c == ' ') {
            text += step.replacement;
        } else {
            text += c;
        }
    }
    const bool wantsPrefix =
        step.scheme == PrependScheme::Always || (step.scheme == PrependScheme::First && piece.atStart);
    if (wantsPrefix && !text.starts_with(step.replacement)) {
        text.insert(0, step.replacement);
    }
    piece.text = std::move(text);
    if (step.split) {
        appendStretches(piece, splitAt(findLiteral(piece.text, step.replacement), SplitBehavior::MergedWithNext, false),
                        out);
    } else {
        out.push_back(std::move(piece));
    }
}

void PreTokenizer::applyStep(const Words&, TextPiece& piece, std::vector<TextPiece>& out) {
    const auto stretches = coverWith(plainText().findAll(piece.text), piece.text.size());
    appendStretches(piece, splitAt(stretches, SplitBehavior::Removed, true), out);
}

void PreTokenizer::applyStep(const WhiteSpaceSplit&, TextPiece& piece, std::vector<TextPiece>& out) {
    appendStretches(piece, splitAt(findCodePoints(piece.text, isWhiteSpace), SplitBehavior::Removed, false), out);
}

void PreTokenizer::applyStep(const Digits& step, TextPiece& piece, std::vector<TextPiece>& out) {
    const SplitBehavior behavior = step.individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous;
    appendStretches(piece, splitAt(findCodePoints(piece.text, isNumeric), behavior, false), out);
}

void PreTokenizer::applyStep(const Punctuation& step, TextPiece& piece, std::vector<TextPiece>& out) {
    appendStretches(piece, splitAt(findCodePoints(piece.text, isPunctuation), step.behavior, false), out);
}

} // namespace vitrine::engine
