// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <string>

namespace vitrine::engine::jinja {

namespace {

constexpr int kDeepestTemplate = 120;

std::string shownToken(const Token& token) {
    switch (token.kind) {
    case TokenKind::BlockEnd:
        return "%}";
    case TokenKind::VariableEnd:
        return "}}";
    case TokenKind::End:
        return "the end of the template";
    default:
        return token.text.empty() ? "text" : token.text.substr(0, 40);
    }
}

bool isConstantName(std::string_view name) {
    return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" || name == "None";
}

} // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kDeepestTemplate) {
        failAt(parser_.current().place, "the template is nested too deep here");
    }
}

bool ExpressionParser::skipOperator(std::string_view text) {
    const bool found = peekOperator(text);
    at_ += found ? 1 : 0;
    return found;
}

bool ExpressionParser::skipName(std::string_view text) {
    const bool found = peekName(text);
    at_ += found ? 1 : 0;
    return found;
}

const Token& ExpressionParser::expect(TokenKind kind, std::string_view what) {
    if (!peek(kind)) {
        failAt(current().place, fmt::format("expected {}, got {}", what, shownToken(current())));
    }
    return next();
}

void ExpressionParser::expectOperator(std::string_view text) {
    if (!skipOperator(text)) {
        failAt(current().place, fmt::format("expected {}, got {}", text, shownToken(current())));
    }
}

void ExpressionParser::expectName(std::string_view text) {
    if (!skipName(text)) {
        failAt(current().place, fmt::format("expected {}, got {}", text, shownToken(current())));
    }
}

Expr* ExpressionParser::make(ExprKind kind, Place place) {
    tree_.expressions.push_back(std::make_unique<Expr>());
    Expr* out = tree_.expressions.back().get();
    out->kind = kind;
    out->place = place;
    return out;
}

Expr* ExpressionParser::binary(ExprKind kind, Place place, std::string text, Expr* left, Expr* right) {
    Expr* out = make(kind, place);
    out->text = std::move(text);
    out->left = left;
    out->right = right;
    return out;
}

bool ExpressionParser::endsTuple() const {
    return peek(TokenKind::VariableEnd) || peek(TokenKind::BlockEnd) || peekOperator(")") || peekName("in") ||
           peekName("recursive") || peekOperator("=");
}

Expr* ExpressionParser::parseTuple(bool condition) {
    const Place place = current().place;
    if (endsTuple()) {
        failAt(place, fmt::format("expected an expression, got {}", shownToken(current())));
    }
    Expr* first = parseExpression(condition);
    if (!peekOperator(",")) {
        return first;
    }
    Expr* tuple = make(ExprKind::Tuple, place);
    tuple->items.push_back(first);
    while (skipOperator(",") && !endsTuple()) {
        tuple->items.push_back(parseExpression(condition));
    }
    return tuple;
}

Expr* ExpressionParser::parseTarget(bool attribute) {
    const Place place = current().place;
    std::vector<Expr*> targets;
    bool comma = false;
    const bool parentheses = skipOperator("(");
    do {
        const Token name = expect(TokenKind::Name, "a name");
        if (isConstantName(name.text)) {
            failAt(name.place, fmt::format("{} cannot be given a value", name.text));
        }
        Expr* target = make(ExprKind::Name, name.place);
        target->text = name.text;
        if (attribute && skipOperator(".")) {
            target = binary(ExprKind::Attribute, name.place, expect(TokenKind::Name, "a name").text, target, nullptr);
        }
        targets.push_back(target);
        comma = skipOperator(",");
    } while (comma && peek(TokenKind::Name) && !peekName("in"));
    if (parentheses) {
        expectOperator(")");
    }
    if (targets.size() == 1 && !comma) {
        return targets.front();
    }
    Expr* tuple = make(ExprKind::Tuple, place);
    tuple->items = std::move(targets);
    return tuple;
}

Expr* ExpressionParser::parseExpression(bool condition) {
    const Nesting nesting(*this);
    if (!condition) {
        return parseOr();
    }
    Expr* value = parseOr();
    while (peekName("if")) {
        const Place place = next().place;
        Expr* out = make(ExprKind::Condition, place);
        out->left = value;
        out->right = parseOr();
        out->items.push_back(skipName("else") ? parseExpression() : nullptr);
        value = out;
    }
    return value;
}

Expr* ExpressionParser::parseChain(ExprKind kind, std::span<const std::string_view> signs,
                                   Expr* (ExpressionParser::*operand)()) {
    Expr* left = (this->*operand)();
    // "or" and "and" are names to the lexer. No operator is spelled like a name.
    while ((peek(TokenKind::Operator) || peek(TokenKind::Name)) &&
           std::ranges::find(signs, current().text) != signs.end()) {
        const Token sign = next();
        left = binary(kind, sign.place, sign.text, left, (this->*operand)());
    }
    return left;
}

Expr* ExpressionParser::parseOr() {
    constexpr std::array<std::string_view, 1> kSigns = {"or"};
    return parseChain(ExprKind::Or, kSigns, &ExpressionParser::parseAnd);
}

Expr* ExpressionParser::parseAnd() {
    constexpr std::array<std::string_view, 1> kSigns = {"and"};
    return parseChain(ExprKind::And, kSigns, &ExpressionParser::parseNot);
}

Expr* ExpressionParser::parseNot() {
    if (peekName("not")) {
        const Nesting nesting(*this);
        const Place place = next().place;
        return binary(ExprKind::Not, place, {}, parseNot(), nullptr);
    }
    return parseCompare();
}

Expr* ExpressionParser::parseCompare() {
    Expr* first = parseSum();
    Expr* out = nullptr;
    while (true) {
        const Place place = current().place;
        std::string text;
        for (const std::string_view each : {"==", "!=", "<=", ">=", "<", ">"}) {
            if (text.empty() && skipOperator(each)) {
                text = each;
            }
        }
        if (text.empty() && skipName("in")) {
            text = "in";
        } else if (text.empty() && peekName("not") && tokens_[at_ + 1].kind == TokenKind::Name &&
                   tokens_[at_ + 1].text == "in") {
            at_ += 2;
            text = "not in";
        }
        if (text.empty()) {
            return out == nullptr ? first : out;
        }
        if (out == nullptr) {
            out = binary(ExprKind::Compare, place, {}, first, nullptr);
        }
        out->operators.push_back(std::move(text));
        out->items.push_back(parseSum());
    }
}

Expr* ExpressionParser::parseSum() {
    constexpr std::array<std::string_view, 2> kSigns = {"+", "-"};
    return parseChain(ExprKind::Arithmetic, kSigns, &ExpressionParser::parseConcat);
}

Expr* ExpressionParser::parseConcat() {
    Expr* first = parseProduct();
    if (!peekOperator("~")) {
        return first;
    }
    Expr* out = make(ExprKind::Concat, current().place);
    out->items.push_back(first);
    while (skipOperator("~")) {
        out->items.push_back(parseProduct());
    }
    return out;
}

Expr* ExpressionParser::parseProduct() {
    constexpr std::array<std::string_view, 4> kSigns = {"*", "/", "//", "%"};
    return parseChain(ExprKind::Arithmetic, kSigns, &ExpressionParser::parsePower);
}

Expr* ExpressionParser::parsePower() {
    constexpr std::array<std::string_view, 1> kSigns = {"**"};
    return parseChain(ExprKind::Arithmetic, kSigns, &ExpressionParser::parseFiltered);
}

Expr* ExpressionParser::parseFiltered() {
    return parseFiltersAndTests(parseUnary());
}

Expr* ExpressionParser::parseUnary() {
    const Nesting nesting(*this);
    Expr* value = nullptr;
    if (peekOperator("-") || peekOperator("+")) {
        const Token sign = next();
        value =
            binary(sign.text == "-" ? ExprKind::Negative : ExprKind::Positive, sign.place, {}, parseUnary(), nullptr);
    } else {
        value = parsePrimary();
    }
    return parsePostfix(value);
}

Expr* ExpressionParser::parsePrimary() {
    const Token token = next();
    Expr* out = nullptr;
    switch (token.kind) {
    case TokenKind::Name:
        out = make(ExprKind::Name, token.place);
        if (isConstantName(token.text)) {
            out->kind = (token.text[0] | 0x20) == 't'   ? ExprKind::True
                        : (token.text[0] | 0x20) == 'f' ? ExprKind::False
                                                        : ExprKind::None;
        }
        out->text = token.text;
        return out;
    case TokenKind::String:
        out = make(ExprKind::String, token.place);
        out->text = token.text;
        while (peek(TokenKind::String)) {
            out->text += next().text;
        }
        return out;
    case TokenKind::Integer:
    case TokenKind::Real:
        out = make(token.kind == TokenKind::Integer ? ExprKind::Integer : ExprKind::Real, token.place);
        out->integer = token.integer;
        out->real = token.real;
        return out;
    default:
        break;
    }
    if (token.kind == TokenKind::Operator && token.text == "(") {
        return parseParentheses(token.place);
    }
    if (token.kind == TokenKind::Operator && token.text == "[") {
        return parseList(token.place);
    }
    if (token.kind == TokenKind::Operator && token.text == "{") {
        return parseDict(token.place);
    }
    failAt(token.place, fmt::format("expected an expression, got {}", shownToken(token)));
}

Expr* ExpressionParser::parseParentheses(Place place) {
    if (skipOperator(")")) {
        return make(ExprKind::Tuple, place);
    }
    Expr* value = parseTuple();
    expectOperator(")");
    return value;
}

Expr* ExpressionParser::parseList(Place place) {
    Expr* out = make(ExprKind::List, place);
    while (!skipOperator("]")) {
        if (!out->items.empty()) {
            expectOperator(",");
            if (skipOperator("]")) {
                break;
            }
        }
        out->items.push_back(parseExpression());
    }
    return out;
}

Expr* ExpressionParser::parseDict(Place place) {
    Expr* out = make(ExprKind::Dict, place);
    while (!skipOperator("}")) {
        if (!out->items.empty()) {
            expectOperator(",");
            if (skipOperator("}")) {
                break;
            }
        }
        out->items.push_back(parseExpression());
        expectOperator(":");
        out->items.push_back(parseExpression());
    }
    return out;
}

Expr* ExpressionParser::parsePostfix(Expr* value) {
    while (true) {
        const Place place = current().place;
        if (skipOperator(".")) {
            if (peek(TokenKind::Integer)) {
                Expr* index = make(ExprKind::Integer, place);
                index->integer = next().integer;
                value = binary(ExprKind::Item, place, {}, value, index);
            } else {
                value = binary(ExprKind::Attribute, place, expect(TokenKind::Name, "a name").text, value, nullptr);
            }
        } else if (skipOperator("[")) {
            value = parseSubscript(value, place);
        } else if (peekOperator("(")) {
            Expr* call = binary(ExprKind::Call, place, {}, value, nullptr);
            parseArguments(*call);
            value = call;
        } else {
            return value;
        }
    }
}

Expr* ExpressionParser::parseSubscript(Expr* value, Place place) {
    std::vector<Expr*> parts;
    while (!skipOperator("]")) {
        if (!parts.empty()) {
            expectOperator(",");
        }
        parts.push_back(parseIndex());
    }
    if (parts.empty()) {
        failAt(place, "an index is missing");
    }
    Expr* index = parts.front();
    if (parts.size() > 1) {
        index = make(ExprKind::Tuple, place);
        index->items = std::move(parts);
    }
    return binary(ExprKind::Item, place, {}, value, index);
}

/// An index, or a slice.
Expr* ExpressionParser::parseIndex() {
    const Place place = current().place;
    Expr* start = peekOperator(":") ? nullptr : parseExpression();
    if (!peekOperator(":")) {
        return start;
    }
    Expr* slice = make(ExprKind::Slice, place);
    slice->items = {start, nullptr, nullptr};
    for (std::size_t i = 1; i < slice->items.size() && skipOperator(":"); ++i) {
        if (!peekOperator(":") && !peekOperator("]") && !peekOperator(",")) {
            slice->items[i] = parseExpression();
        }
    }
    return slice;
}

void ExpressionParser::parseArguments(Expr& call) {
    expectOperator("(");
    bool first = true;
    while (!skipOperator(")")) {
        if (!std::exchange(first, false)) {
            expectOperator(",");
            if (skipOperator(")")) {
                return;
            }
        }
        const Place place = current().place;
        if (skipOperator("*")) {
            call.moreItems = parseExpression();
        } else if (skipOperator("**")) {
            call.moreKeywords = parseExpression();
        } else if (peek(TokenKind::Name) && tokens_[at_ + 1].kind == TokenKind::Operator &&
                   tokens_[at_ + 1].text == "=") {
            std::string name = next().text;
            next();
            call.keywords.emplace_back(std::move(name), parseExpression());
        } else if (call.keywords.empty() && call.moreKeywords == nullptr) {
            call.items.push_back(parseExpression());
        } else {
            failAt(place, "an argument without a name follows one that has a name");
        }
    }
}

Expr* ExpressionParser::parseFiltersAndTests(Expr* value) {
    while (true) {
        const Place place = current().place;
        if (peekOperator("|")) {
            value = parseFilters(value, false);
        } else if (peekName("is")) {
            value = parseTest(value);
        } else if (peekOperator("(")) {
            Expr* call = binary(ExprKind::Call, place, {}, value, nullptr);
            parseArguments(*call);
            value = call;
        } else {
            return value;
        }
    }
}

Expr* ExpressionParser::parseFilters(Expr* value, bool first) {
    while (first || skipOperator("|")) {
        first = false;
        const Token name = expect(TokenKind::Name, "the name of a filter");
        Expr* filter = binary(ExprKind::Filter, name.place, name.text, value, nullptr);
        while (skipOperator(".")) {
            filter->text += '.' + expect(TokenKind::Name, "a name").text;
        }
        if (peekOperator("(")) {
            parseArguments(*filter);
        }
        value = filter;
    }
    return value;
}

Expr* ExpressionParser::parseTest(Expr* value) {
    const Place place = next().place;
    const bool negated = skipName("not");
    Expr* test = binary(ExprKind::Test, place, expect(TokenKind::Name, "the name of a test").text, value, nullptr);
    const bool operand = peek(TokenKind::Name) || peek(TokenKind::String) || peek(TokenKind::Integer) ||
                         peek(TokenKind::Real) || peekOperator("[") || peekOperator("{");
    if (peekOperator("(")) {
        parseArguments(*test);
    } else if (operand && !peekName("else") && !peekName("or") && !peekName("and") && !peekName("is") &&
               !peekName("if") && !peekName("not") && !peekName("in")) {
        test->items.push_back(parsePostfix(parsePrimary()));
    }
    return negated ? binary(ExprKind::Not, place, {}, test, nullptr) : test;
}

} // namespace vitrine::engine::jinja
