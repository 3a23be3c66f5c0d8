// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/post_processor.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vitrine::engine {

namespace {

std::int32_t readId(const JsonField& field, const std::function<bool(std::int64_t)>& isKnownId) {
    const std::int64_t id = field.asInteger(0, INT32_MAX);
    if (!isKnownId(id)) {
        field.bad(fmt::format("no token has the id {}", id));
    }
    return static_cast<std::int32_t>(id);
}

} // namespace

PostProcessor PostProcessor::read(const std::optional<JsonField>& field, const KnownId& isKnownId) {
    PostProcessor processor;
    if (field) {
        processor.readInto(*field, isKnownId);
    }
    return processor;
}

void PostProcessor::readInto(const JsonField& field, const KnownId& isKnownId) {
    const JsonField typeField = field.at("type");
    const std::string& type = typeField.asString();
    if (type == "Sequence") {
        const JsonField members = field.at("processors");
        for (std::size_t i = 0; i < members.arraySize(); ++i) {
            readInto(members.element(i), isKnownId);
        }
    } else if (type == "TemplateProcessing") {
        readTemplate(field, isKnownId);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        for (const char* key : {"cls", "sep"}) {
            const JsonField pair = field.at(key);
            if (pair.arraySize() != 2) {
                pair.bad("must be a token and its id");
            }
            const std::int32_t id = readId(pair.element(1), isKnownId);
            if (key[0] == 'c') {
                before_.insert(before_.begin(), id);
            } else {
                after_.push_back(id);
            }
        }
    } else if (type != "ByteLevel") { // ByteLevel trims offsets, which we do not keep
        typeField.unsupported(fmt::format("the post-processor {} is not supported", quotedForMessage(type)));
    }
}

void PostProcessor::readTemplate(const JsonField& field, const KnownId& isKnownId) {
    const JsonField single = field.at("single");
    const auto specials = field.find("special_tokens");
    std::vector<std::int32_t> around;
    std::size_t textAt = 0;
    int texts = 0;
    for (std::size_t i = 0; i < single.arraySize(); ++i) {
        const JsonField piece = single.element(i);
        if (const auto sequence = piece.find("Sequence")) {
            if (const JsonField id = sequence->at("id"); id.asString() != "A") {
                id.unsupported("a template for one text can only hold the sequence A");
            }
            textAt = around.size();
            ++texts;
            continue;
        }
        const JsonField special = piece.at("SpecialToken");
        const std::string& name = special.at("id").asString();
        if (!specials || !specials->find(name)) {
            special.at("id").bad(fmt::format("{} is not in special_tokens", quotedForMessage(name)));
        }
        const JsonField ids = specials->at(name).at("ids");
        for (std::size_t k = 0; k < ids.arraySize(); ++k) {
            around.push_back(readId(ids.element(k), isKnownId));
        }
    }
    if (texts != 1) {
        single.unsupported("a template must hold the text exactly once");
    }
    const auto middle = around.begin() + static_cast<std::ptrdiff_t>(textAt);
    before_.insert(before_.begin(), around.begin(), middle);
    after_.insert(after_.end(), middle, around.end());
}

} // namespace vitrine::engine
