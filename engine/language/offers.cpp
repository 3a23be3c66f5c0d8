// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/offers.h"

#include <algorithm>

#include "engine/language/python/lexer.h"

namespace vitrine::engine {

namespace {

using Kind = ProgramOffer::Kind;

/// Mask or Score by the number of parameters without defaults, as PyTorch distinguishes them.
std::optional<Kind> programKind(const PyFunctionCode& code) {
    std::size_t needed = 0;
    for (const PyParameter& parameter : code.parameters) {
        if (parameter.kind != PyParameter::Kind::Normal && parameter.kind != PyParameter::Kind::PositionalOnly) {
            return std::nullopt;
        }
        needed += parameter.value ? 0 : 1;
    }
    return needed == 4 ? std::optional(Kind::Mask) : needed == 5 ? std::optional(Kind::Score) : std::nullopt;
}

/// Four parameters may be any function's: the last two are positions, or at least not sizes of a factory.
bool looksLikeProgram(const PyFunctionCode& code) {
    const auto annotated = [](const PyParameter& parameter) {
        return parameter.annotation && parameter.annotation->kind == PyExprKind::Name &&
               (parameter.annotation->name == "int" || parameter.annotation->name == "float" ||
                parameter.annotation->name == "str");
    };
    return std::none_of(code.parameters.begin(), code.parameters.end(), annotated) ||
           code.parameters[0].name == "batch_idx" || code.parameters[0].name == "b";
}

bool isCombination(const PyExpr& expr) {
    if (expr.kind != PyExprKind::Call) {
        return false;
    }
    const PyExpr& callee = *expr.items[0];
    return (callee.kind == PyExprKind::Name || callee.kind == PyExprKind::Attribute) &&
           (callee.name == "and_masks" || callee.name == "or_masks");
}

/// Whether the function's body returns a function that it defines, a lambda, or a combination of masks.
bool returnsProgram(const PyBlock& body, const std::vector<std::string_view>& outer) {
    std::vector<std::string_view> programs = outer;
    for (const std::unique_ptr<PyStmt>& statement : body) {
        if (statement->kind == PyStmtKind::Def && programKind(*statement->function)) {
            programs.push_back(statement->function->name);
        }
        if (statement->kind == PyStmtKind::Assign && statement->exprs[0]->kind == PyExprKind::Name &&
            (isCombination(*statement->exprs.back()) || (statement->exprs.back()->kind == PyExprKind::Lambda &&
                                                         programKind(*statement->exprs.back()->extra->lambda)))) {
            programs.push_back(statement->exprs[0]->name);
        }
        if (statement->kind == PyStmtKind::Return && !statement->exprs.empty()) {
            const PyExpr& value = *statement->exprs[0];
            const bool named = value.kind == PyExprKind::Name &&
                               std::find(programs.begin(), programs.end(), value.name) != programs.end();
            const bool lambda = value.kind == PyExprKind::Lambda && programKind(*value.extra->lambda);
            if (named || lambda || isCombination(value)) {
                return true;
            }
        }
        if (statement->kind != PyStmtKind::Def && statement->kind != PyStmtKind::Class) {
            for (const PyBlock& inner : statement->blocks) {
                if (returnsProgram(inner, programs)) {
                    return true;
                }
            }
        }
    }
    return false;
}

std::string firstLine(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    return std::string(text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin));
}

/// The first line of the docstring, else of the comment right above the definition.
std::string documentationOf(const PyText& text, const PyBlock& body, std::uint32_t begin) {
    if (!body.empty() && body[0]->kind == PyStmtKind::Expression && body[0]->exprs[0]->kind == PyExprKind::String) {
        return firstLine(body[0]->exprs[0]->extra->text);
    }
    std::string first;
    std::string_view before = std::string_view(text.file.text).substr(0, begin);
    before = before.substr(0, before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n'));
    while (!before.empty()) {
        const std::size_t lineStart = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
        const std::string_view line = before.substr(lineStart);
        const std::size_t hash = line.find_first_not_of(" \t");
        if (hash == std::string_view::npos || line[hash] != '#') {
            break;
        }
        first = firstLine(line.substr(std::min(line.find_first_not_of("# \t"), line.size())));
        before = before.substr(0, lineStart == 0 ? 0 : lineStart - 1);
    }
    return first;
}

std::string textOf(const PyText& text, const PyExpr* expr) {
    return expr == nullptr ? std::string()
                           : text.file.text.substr(expr->range.begin, expr->range.end - expr->range.begin);
}

} // namespace

std::vector<ProgramOffer> offersOf(const PyText& text) {
    std::vector<ProgramOffer> made;
    for (const std::unique_ptr<PyStmt>& statement : text.tree.body) {
        ProgramOffer offer;
        offer.place = placeOf(text.file, statement->range.begin, statement->range.end);
        if (statement->kind == PyStmtKind::Def) {
            const PyFunctionCode& code = *statement->function;
            const auto kind = programKind(code);
            const bool factory = returnsProgram(code.body, {});
            if (code.name.empty() || code.name[0] == '_' || (!factory && (!kind || !looksLikeProgram(code)))) {
                continue;
            }
            offer.kind = factory ? Kind::Factory : *kind;
            offer.name = std::string(code.name);
            offer.documentation = documentationOf(text, code.body, code.range.begin);
            for (const PyParameter& parameter : code.parameters) {
                if (factory) {
                    offer.parameters.push_back({std::string(parameter.name), textOf(text, parameter.annotation.get()),
                                                textOf(text, parameter.value.get())});
                }
            }
            made.push_back(std::move(offer));
        } else if (statement->kind == PyStmtKind::Assign && statement->exprs[0]->kind == PyExprKind::Name) {
            const PyExpr& value = *statement->exprs.back();
            const auto kind = value.kind == PyExprKind::Lambda ? programKind(*value.extra->lambda) : std::nullopt;
            if (!kind && !isCombination(value)) {
                continue;
            }
            offer.kind = kind.value_or(Kind::Mask);
            offer.name = std::string(statement->exprs[0]->name);
            offer.documentation = documentationOf(text, {}, statement->range.begin);
            made.push_back(std::move(offer));
        }
    }
    return made;
}

namespace {

std::optional<PyRange> definitionIn(const PyBlock& body, std::string_view name, bool inside) {
    for (const std::unique_ptr<PyStmt>& statement : body) {
        if (statement->kind == PyStmtKind::Def) {
            if (inside && statement->function->name == name) {
                return statement->range;
            }
            if (const auto found = definitionIn(statement->function->body, name, true)) {
                return found;
            }
        }
        for (const PyBlock& inner : statement->blocks) {
            if (const auto found = definitionIn(inner, name, true)) {
                return found;
            }
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<PyPlace> nestedDefinition(const PyText& text, std::string_view name) {
    const auto range = definitionIn(text.tree.body, name, false);
    return range ? std::optional(placeOf(text.file, range->begin, range->end)) : std::nullopt;
}

} // namespace vitrine::engine
