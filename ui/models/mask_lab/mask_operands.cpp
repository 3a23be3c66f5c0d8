// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a mask's conditions are called: by the variable that holds one, or the function that returns it.

#include <algorithm>
#include <cctype>
#include <string_view>

#include "kernels/program/emitter.h"
#include "ui/models/common/format.h"
#include "ui/models/mask_lab/mask_map.h"

namespace vitrine::ui {

namespace {

using kernels::Program;
using kernels::ProgramNode;
using kernels::ProgramOp;

bool isNameCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
        text.remove_prefix(1);
    }
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
        text.remove_suffix(1);
    }
    return text;
}

/// The identifier at the end of a text.
std::string_view lastName(std::string_view text) {
    text = trimmed(text);
    std::size_t begin = text.size();
    while (begin > 0 && isNameCharacter(text[begin - 1])) {
        --begin;
    }
    return text.substr(begin);
}

std::size_t indentOf(std::string_view line) {
    return line.find_first_not_of(" \t");
}

/// Names that say nothing about what a function allows.
bool isGeneric(std::string_view name) {
    static constexpr std::string_view kGeneric[] = {"mask_mod", "mask", "mod", "mask_fn", "fn", "inner", "wrapper"};
    return std::find(std::begin(kGeneric), std::end(kGeneric), name) != std::end(kGeneric);
}

/// The function around a line, or the one around that where the name is generic.
std::string_view enclosingFunction(std::string_view source, std::size_t lineBegin) {
    std::size_t indent = indentOf(source.substr(lineBegin));
    while (lineBegin > 0) {
        const std::size_t end = lineBegin - 1;
        const std::size_t newline = end == 0 ? std::string_view::npos : source.rfind('\n', end - 1);
        lineBegin = newline == std::string_view::npos ? 0 : newline + 1;
        const std::string_view line = source.substr(lineBegin, end - lineBegin);
        const std::size_t here = indentOf(line);
        if (here != std::string_view::npos && here < indent && line.substr(here).starts_with("def ")) {
            const std::string_view rest = line.substr(here + 4);
            const std::string_view name = trimmed(rest.substr(0, rest.find('(')));
            if (!isGeneric(name)) {
                return name;
            }
            indent = here;
        }
    }
    return {};
}

/// The variable or function that the text [begin, end) of a source is the value of; empty: it is only a part of one.
std::string_view nameOfText(std::string_view source, std::size_t begin, std::size_t end) {
    const std::size_t newline = begin == 0 ? std::string_view::npos : source.rfind('\n', begin - 1);
    const std::size_t lineBegin = newline == std::string_view::npos ? 0 : newline + 1;
    std::string_view before = trimmed(source.substr(lineBegin, begin - lineBegin));
    std::string_view after = source.substr(end, source.find('\n', end) - end);
    after = trimmed(after.substr(0, after.find('#')));
    while (!before.empty() && !after.empty() && before.back() == '(' && after.front() == ')') {
        before = trimmed(before.substr(0, before.size() - 1));
        after = trimmed(after.substr(1));
    }
    if (!after.empty()) {
        return {};
    }
    if (const std::size_t lambda = before.find("lambda"); lambda != std::string_view::npos && before.ends_with(':')) {
        before = trimmed(before.substr(0, lambda));
    }
    if (before == "return") {
        return enclosingFunction(source, lineBegin);
    }
    if (before.ends_with('=') && before.size() > 1 &&
        std::string_view("=<>!&|+-").find(before[before.size() - 2]) == std::string_view::npos) {
        return lastName(before.substr(0, before.size() - 1));
    }
    return {};
}

/// "causal_mask" reads "causal" in a legend.
QString spokenName(std::string_view name) {
    for (const std::string_view suffix : {"_mask_mod", "_mask", "_mod"}) {
        if (name.size() > suffix.size() && name.ends_with(suffix)) {
            name.remove_suffix(suffix.size());
        }
    }
    QString text = textOf(name);
    return text.replace(QLatin1Char('_'), QLatin1Char(' ')).trimmed();
}

/// The source of a node's span, and its place in it.
struct SourcePlace {
    std::string_view source;
    std::size_t begin = 0, end = 0;
    std::string_view text() const { return source.substr(begin, end - begin); }
};
SourcePlace placeOf(const Program& program, std::int32_t node) {
    const kernels::ProgramSpan span = program.at(node).span;
    if (span.source < 0 || static_cast<std::size_t>(span.source) >= program.sources.size() || span.begin < 0 ||
        span.end < span.begin) {
        return {};
    }
    const std::string_view source = program.sources[static_cast<std::size_t>(span.source)];
    const auto end = static_cast<std::size_t>(span.end);
    return end > source.size() ? SourcePlace{} : SourcePlace{source, static_cast<std::size_t>(span.begin), end};
}

/// "near" of "causal & near" (`last`), "causal" of it (not `last`): operands that are plain names.
std::string_view operandName(std::string_view text, bool last) {
    int depth = 0;
    std::size_t cut = std::string_view::npos;
    std::size_t width = 1;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
        for (const std::string_view symbol : {"&", "|", " and ", " or "}) {
            if (depth == 0 && text.substr(i).starts_with(symbol)) {
                cut = i;
                width = symbol.size();
            }
        }
    }
    if (cut == std::string_view::npos) {
        return {};
    }
    std::string_view operand = trimmed(last ? text.substr(cut + width) : text.substr(0, cut));
    while (operand.size() > 2 && operand.front() == '(' && operand.back() == ')') {
        operand = trimmed(operand.substr(1, operand.size() - 2));
    }
    const bool plain = !operand.empty() && std::all_of(operand.begin(), operand.end(), isNameCharacter);
    return plain && !isGeneric(operand) ? operand : std::string_view();
}

/// A part and what its operation calls it.
struct Leaf {
    std::int32_t node = -1;
    std::string_view name;
};

void flatten(const Program& program, std::int32_t index, ProgramOp chain, std::vector<Leaf>& out) {
    // Explicit stack: a chain can be thousands of operations long.
    std::vector<Leaf> waiting{{index, {}}};
    while (!waiting.empty()) {
        const Leaf next = waiting.back();
        waiting.pop_back();
        const ProgramNode& node = program.at(next.node);
        if (node.op == chain && node.type == kernels::ProgramType::Bool) {
            const std::string_view text = placeOf(program, next.node).text();
            waiting.push_back({node.args[1], operandName(text, true)});
            waiting.push_back({node.args[0], operandName(text, false)});
        } else if (std::none_of(out.begin(), out.end(), [&](const Leaf& leaf) { return leaf.node == next.node; })) {
            out.push_back(next);
            if (out.size() > static_cast<std::size_t>(kMostMaskOperands)) {
                return; // what comes after shares the last part
            }
        }
    }
}

} // namespace

std::vector<MaskOperand> maskParts(const Program& mask, bool& alternatives) {
    const ProgramOp root = mask.at(mask.result).op;
    alternatives = root == ProgramOp::Or;
    if (root == ProgramOp::Constant && mask.at(mask.result).integer != 0) {
        return {}; // nothing is ever blocked
    }
    std::vector<Leaf> leaves;
    flatten(mask, mask.result, alternatives ? ProgramOp::Or : ProgramOp::And, leaves);
    const bool cut = leaves.size() > static_cast<std::size_t>(kMostMaskOperands);
    std::vector<MaskOperand> parts;
    for (const auto& [node, operand] : leaves) {
        if (cut && parts.size() + 1 == static_cast<std::size_t>(kMostMaskOperands)) {
            parts.push_back({QStringLiteral("others"), {}, -1});
            break;
        }
        const QString text = textOf(kernels::printNode(mask, node));
        const SourcePlace place = placeOf(mask, node);
        const QString name = spokenName(operand.empty() ? nameOfText(place.source, place.begin, place.end) : operand);
        parts.push_back({name.isEmpty() ? text : name, text, node});
    }
    for (MaskOperand& part : parts) {
        const auto same = std::count_if(parts.begin(), parts.end(), [&](const MaskOperand& other) {
            return other.node != part.node && other.name == part.name;
        });
        if (same > 0) {
            for (MaskOperand& other : parts) {
                if (&other != &part && other.name == part.name) {
                    other.name = other.text;
                }
            }
            part.name = part.text;
        }
    }
    return parts;
}

} // namespace vitrine::ui
