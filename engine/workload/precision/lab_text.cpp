// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/lab_text.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/checkpoint/read_file.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kBytesOfToken = 64; ///< more than any tokenizer needs on average

/// The beginning of a file, as much as `tokens` tokens can take.
std::string beginningOf(const std::string& path, std::int64_t tokens) {
    try {
        const ReadFile file(path);
        std::string text(std::min<std::uint64_t>(file.bytes(), static_cast<std::uint64_t>(tokens) * kBytesOfToken), 0);
        file.read(0, text.data(), text.size());
        return text;
    } catch (const base::BadInput& error) {
        throw base::BadInput("text_file: " + error.message());
    }
}

} // namespace

TextChoice textChoice(const ModelSource& source, const std::string& path) {
    if (!path.empty()) {
        return {path, path};
    }
    if (!source.folder.empty()) {
        const std::filesystem::path folder(source.folder);
        std::error_code failed; // a folder that cannot be read has no text
        if (const auto own = folder / "precision.txt"; std::filesystem::is_regular_file(own, failed)) {
            const auto name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
            return {own.string(), fmt::format("text of {}", name.string())};
        }
    }
    return {base::resourcePath("texts/precision.txt"), "text of the program"};
}

LabText labText(const std::shared_ptr<const Tokenizer>& tokenizer, const TextChoice& choice, std::int64_t tokens) {
    LabText text;
    text.name = choice.name;
    text.ids = tokenizer->encode(beginningOf(choice.path, tokens), true);
    text.ids.resize(std::min(text.ids.size(), static_cast<std::size_t>(tokens)));
    if (text.ids.size() < 2) {
        throw base::BadInput(fmt::format("text_file: {}: has {} tokens, and the first one has nothing before it; give "
                                         "a text of two tokens or more",
                                         text.name, text.ids.size()));
    }
    StreamDecoder decoder(tokenizer);
    for (const std::int32_t id : text.ids) {
        text.pieces.push_back(decoder.push(id));
    }
    text.pieces.back() += decoder.finish();
    return text;
}

void addCandidatePieces(const Tokenizer& tokenizer, std::span<const TokenEffect> tokens, LabText& text) {
    std::set<std::int32_t> ids;
    for (const TokenEffect& token : tokens) {
        for (const TokenCandidate& candidate : token.best) {
            ids.insert(candidate.id);
        }
    }
    ids.erase(-1);
    for (const std::int32_t id : ids) {
        text.candidatePieces.emplace_back(id, replaceInvalidUtf8(tokenizer.bytesOf(id)));
    }
}

} // namespace vitrine::engine
