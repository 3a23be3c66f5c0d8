// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/tools/size_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>

#include "tests/tools/tree.h"

namespace vitrine::tools {

namespace {

constexpr std::array<std::size_t, 3> kIndents = {0, 4, 8};

std::size_t indentOf(std::string_view line) {
    return std::min(line.find_first_not_of(' '), line.size());
}

bool startsWithAny(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

/// The line at which the definition begins whose brace closes at `end`: the nearest one above with the same
/// indentation.
std::optional<std::size_t> beginOf(const std::vector<std::string_view>& lines, std::size_t end, std::size_t indent) {
    for (std::size_t i = end; i-- > 0;) {
        const std::string_view line = lines[i];
        if (line.size() <= indent || indentOf(line) > indent || line.starts_with('#')) {
            continue;
        }
        if (indentOf(line) < indent || startsWithAny(line.substr(indent), {"}", "//"})) {
            return std::nullopt;
        }
        if (!startsWithAny(line.substr(indent), {"public:", "private:", "protected:"})) {
            return i;
        }
    }
    return std::nullopt;
}

/// "Class::function(" or "function(" of a definition's first lines.
std::optional<std::pair<std::string, std::string>> functionName(const std::string& head) {
    static const std::regex kName(R"rx((?:(\w+)::)?(~?\w+|operator\S+)\()rx");
    static const std::regex kWord(R"rx(^(?:if|for|while|switch|do|else|case|try|catch|return|namespace|enum)\b)rx");
    std::smatch found;
    if (std::regex_search(head, kWord) || !std::regex_search(head, found, kName)) {
        return std::nullopt;
    }
    const std::string owner = found[1].str();
    return std::pair(owner, owner.empty() ? found[2].str() : owner + "::" + found[2].str());
}

std::optional<std::string> className(const std::string& head) {
    static const std::regex kClass(R"rx(^(?:template <.*> )?(?:class|struct) (?:\w+::)*(\w+))rx");
    std::smatch found;
    return std::regex_search(head, found, kClass) ? std::optional(found[1].str()) : std::nullopt;
}

} // namespace

std::vector<Definition> definitionsOf(std::string_view text) {
    const std::vector<std::string_view> lines = splitLines(text);
    std::vector<Definition> found;
    for (const std::size_t indent : kIndents) {
        const std::string brace = std::string(indent, ' ') + "}";
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const bool ofClass = lines[i] == brace + ";";
            if (!ofClass && lines[i] != brace) {
                continue;
            }
            const std::optional<std::size_t> begin = beginOf(lines, i, indent);
            if (!begin) {
                continue;
            }
            std::string head;
            for (std::size_t k = *begin; k < std::min(*begin + 3, i); ++k) {
                head += std::string(lines[k].substr(indentOf(lines[k]))) + ' ';
            }
            Definition definition{{}, {}, *begin + 1, i - *begin + 1, !ofClass};
            if (ofClass) {
                const std::optional<std::string> name = className(head);
                if (!name) {
                    continue;
                }
                definition.name = definition.owner = *name;
            } else {
                const auto name = functionName(head);
                if (!name) {
                    continue;
                }
                definition.owner = name->first;
                definition.name = name->second;
            }
            found.push_back(std::move(definition));
        }
    }
    return found;
}

void addClassLines(std::string_view text, std::map<std::string, std::size_t>& lines) {
    for (const Definition& definition : definitionsOf(text)) {
        if (!definition.owner.empty()) {
            lines[definition.owner] += definition.lines;
        }
    }
}

} // namespace vitrine::tools
