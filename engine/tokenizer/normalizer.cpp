// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/normalizer.h"

#include <fmt/format.h>

#include "engine/tokenizer/byte_level.h"

namespace vitrine::engine {

Normalizer Normalizer::read(const std::optional<JsonField>& field) {
    Normalizer normalizer;
    if (field) {
        normalizer.where_ = field->where();
        normalizer.readInto(*field);
    }
    return normalizer;
}

void Normalizer::readInto(const JsonField& field) {
    const JsonField typeField = field.at("type");
    const std::string& type = typeField.asString();
    if (type == "Sequence") {
        const JsonField members = field.at("normalizers");
        for (std::size_t i = 0; i < members.arraySize(); ++i) {
            readInto(members.element(i));
        }
    } else if (type == "NFC") {
        steps_.emplace_back(Form{NormalizationForm::Nfc});
    } else if (type == "NFD") {
        steps_.emplace_back(Form{NormalizationForm::Nfd});
    } else if (type == "NFKC") {
        steps_.emplace_back(Form{NormalizationForm::Nfkc});
    } else if (type == "NFKD") {
        steps_.emplace_back(Form{NormalizationForm::Nfkd});
    } else if (type == "Lowercase") {
        steps_.emplace_back(Lowercase{});
    } else if (type == "StripAccents") {
        steps_.emplace_back(StripAccents{});
    } else if (type == "ByteLevel") {
        steps_.emplace_back(ByteLevel{});
    } else if (type == "Strip") {
        steps_.emplace_back(Strip{field.at("strip_left").asBool(), field.at("strip_right").asBool()});
    } else if (type == "Prepend") {
        steps_.emplace_back(Prepend{field.at("prepend").asString()});
    } else if (type == "Replace") {
        steps_.emplace_back(Replace{TextPattern::read(field.at("pattern")), field.at("content").asString()});
    } else if (type == "Nmt") {
        steps_.emplace_back(Cleaned{});
    } else if (type == "Precompiled") {
        steps_.emplace_back(CharacterMap::read(field.at("precompiled_charsmap")));
    } else {
        typeField.unsupported(fmt::format("the normalizer {} is not supported", quotedForMessage(type)));
    }
}

void Normalizer::apply(TextPiece& piece) const {
    const std::size_t mostBytes = growthLimit(piece.text.size());
    for (const Step& step : steps_) {
        std::visit([&](const auto& s) { applyStep(s, piece, mostBytes); }, step);
        if (piece.text.size() > mostBytes) {
            failGrowth(where_);
        }
    }
}

std::string Normalizer::applyToText(std::string_view text) const {
    TextPiece piece{std::string(text), true};
    apply(piece);
    return std::move(piece.text);
}

void Normalizer::applyStep(const Form& step, TextPiece& piece, std::size_t) {
    piece.text = normalizeText(piece.text, step.form);
}

void Normalizer::applyStep(const Lowercase&, TextPiece& piece, std::size_t) {
    piece.text = toLowercase(piece.text);
}

namespace {

/// Keeps the code points that `kept` accepts.
template <class Kept> void filterText(TextPiece& piece, Kept kept) {
    std::string out;
    out.reserve(piece.text.size());
    for (std::size_t i = 0; i < piece.text.size();) {
        const std::size_t begin = i;
        if (kept(nextCodePoint(piece.text, i))) {
            if (out.empty() && begin > 0) {
                piece.atStart = false;
            }
            out.append(piece.text, begin, i - begin);
        }
    }
    piece.text = std::move(out);
}

/// What SentencePiece's rules for translation drop.
bool isDroppedControl(char32_t code) {
    return (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) || code == 0x7F ||
           code == 0x8F || code == 0x9F;
}

/// What they take for a space.
bool isOddSpace(char32_t code) {
    return code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D || code == 0x1680 ||
           (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xFEFF ||
           code == 0xFFFD;
}

} // namespace

void Normalizer::applyStep(const StripAccents&, TextPiece& piece, std::size_t) {
    filterText(piece, [](char32_t code) { return !isCombiningMark(code); });
}

void Normalizer::applyStep(const Cleaned&, TextPiece& piece, std::size_t) {
    filterText(piece, [](char32_t code) { return !isDroppedControl(code); });
    std::string out;
    out.reserve(piece.text.size());
    for (std::size_t at = 0; at < piece.text.size();) {
        const char32_t code = nextCodePoint(piece.text, at);
        appendUtf8(out, isOddSpace(code) ? U' ' : code);
    }
    piece.text = std::move(out);
}

void Normalizer::applyStep(const CharacterMap& step, TextPiece& piece, std::size_t mostBytes) {
    piece.text = step.apply(piece.text, mostBytes);
}

void Normalizer::applyStep(const ByteLevel&, TextPiece& piece, std::size_t) {
    piece.text = bytesToAlphabet(piece.text);
}

void Normalizer::applyStep(const Strip& step, TextPiece& piece, std::size_t) {
    std::size_t begin = 0;
    std::size_t end = piece.text.size();
    while (step.left && begin < end) {
        std::size_t next = begin;
        if (!isWhiteSpace(nextCodePoint(piece.text, next))) {
            break;
        }
        begin = next;
    }
    while (step.right && end > begin) {
        const char32_t last = codePointBefore(piece.text, end);
        if (!isWhiteSpace(last)) {
            break;
        }
        std::string encoded;
        appendUtf8(encoded, last);
        end -= encoded.size();
    }
    piece.atStart = piece.atStart && begin == 0;
    piece.text = piece.text.substr(begin, end - begin);
}

void Normalizer::applyStep(const Prepend& step, TextPiece& piece, std::size_t) {
    if (!piece.text.empty()) {
        piece.text.insert(0, step.text);
    }
}

void Normalizer::applyStep(const Replace& step, TextPiece& piece, std::size_t mostBytes) {
    if (piece.text.empty()) {
        return;
    }
    const std::vector<Stretch> stretches = step.pattern.find(piece.text);
    // Text that replaces several code points counts as standing where the last of them stood.
    if (!stretches.empty() && stretches.front().isMatch && stretches.front().end > 0 &&
        (step.content.empty() || stretches.front().end > utf8Length(piece.text.front()))) {
        piece.atStart = false;
    }
    piece.text = replaceMatches(piece.text, stretches, step.content, mostBytes, step.pattern.where());
}

} // namespace vitrine::engine
