// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/parameters/parameter_choice.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/error.h"

namespace vitrine::engine {

namespace {

using Roles = std::vector<ParameterRole>;

const std::map<std::string, Roles, std::less<>>& rolesByWord() {
    using enum ParameterRole;
    static const std::map<std::string, Roles, std::less<>> kWords = {
        {"attention", {Query, Key, Value, AttentionOut, Sinks}},
        {"experts", {ExpertGateUp, ExpertDown}},
        {"mlp", {Gate, Up, Down}},
        {"all-linear", {Query, Key, Value, AttentionOut, Gate, Up, Down, ExpertGateUp, ExpertDown}},
        {"router", {Router}},
        {"embedding", {Embedding}},
        {"head", {Head}},
        {"norms", {Norm}},
    };
    return kWords;
}

} // namespace

ParameterChoice::ParameterChoice(const std::string& text, const std::string& where) : text_(text) {
    std::string rest = text;
    while (rest.rfind("re:", 0) != 0) {
        const std::size_t plus = rest.find('+');
        addWord(rest.substr(0, plus), where);
        if (plus == std::string::npos) {
            return;
        }
        rest = rest.substr(plus + 1);
    }
    pattern_.emplace(rest.substr(3), where);
}

void ParameterChoice::addWord(const std::string& word, const std::string& where) {
    if (word == "all") {
        all_ = true;
        return;
    }
    const auto found = rolesByWord().find(word);
    if (found == rolesByWord().end()) {
        std::string words = "all";
        for (const auto& [known, roles] : rolesByWord()) {
            words += ", " + known;
        }
        throw base::BadInput(fmt::format("{}: no parameters are called \"{}\"; write words of {} joined by +, or "
                                         "re:PATTERN",
                                         where, word, words));
    }
    roles_.insert(roles_.end(), found->second.begin(), found->second.end());
}

bool ParameterChoice::contains(const Parameter& parameter) const {
    return all_ || std::find(roles_.begin(), roles_.end(), parameter.role) != roles_.end() ||
           (pattern_ && !pattern_->findAll(parameter.name).empty());
}

bool isLinear(const Parameter& parameter) {
    return !parameter.bias && parameter.role != ParameterRole::Norm && parameter.role != ParameterRole::Sinks &&
           parameter.role != ParameterRole::Embedding;
}

bool isAdaptable(const Parameter& parameter) {
    return isLinear(parameter) || parameter.role == ParameterRole::Embedding;
}

} // namespace vitrine::engine
