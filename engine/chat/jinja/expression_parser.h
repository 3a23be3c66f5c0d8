// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Expressions of templates. Precedence is Jinja's, which differs from Python's: a filter binds more than an operator,
// a minus less than a power, and powers group from the left.

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/jinja/ast.h"
#include "engine/chat/jinja/lexer.h"

namespace vitrine::engine::jinja {

/// Reads tokens from the first to the last. All functions throw BadInput "line L, column C: what".
class ExpressionParser {
public:
    ExpressionParser(std::vector<Token> tokens, Tree& tree) : tokens_(std::move(tokens)), tree_(tree) {}

protected:
    /// Counts how deep the template is nested, so that no template overflows the stack.
    class Nesting {
    public:
        explicit Nesting(ExpressionParser& parser);
        ~Nesting() { --parser_.depth_; }
        Nesting(const Nesting&) = delete; // counts once
        Nesting& operator=(const Nesting&) = delete;

    private:
        ExpressionParser& parser_;
    };

    Tree& tree() { return tree_; }
    const Token& current() const { return tokens_[at_]; }
    const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
    bool peek(TokenKind kind) const { return current().kind == kind; }
    bool peekOperator(std::string_view text) const { return peek(TokenKind::Operator) && current().text == text; }
    bool peekName(std::string_view text) const { return peek(TokenKind::Name) && current().text == text; }
    bool skipOperator(std::string_view text);
    bool skipName(std::string_view text);
    /// `what` is what stands in the message.
    const Token& expect(TokenKind kind, std::string_view what);
    void expectOperator(std::string_view text);
    void expectName(std::string_view text);

    /// One expression, or a tuple without parentheses. `condition`: "a if b else c" is taken.
    Expr* parseTuple(bool condition = true);
    Expr* parseExpression(bool condition = true);
    /// What a for or set statement gives values to. `attribute`: a member of a namespace may stand there.
    Expr* parseTarget(bool attribute);
    /// "name(...) | name(...)" behind `value`; null: of a block. `first`: the first has no bar before it.
    Expr* parseFilters(Expr* value, bool first);

private:
    Expr* make(ExprKind kind, Place place);
    Expr* binary(ExprKind kind, Place place, std::string text, Expr* left, Expr* right);
    /// Operands with one of the operators between each two, grouped from the left.
    Expr* parseChain(ExprKind kind, std::span<const std::string_view> signs, Expr* (ExpressionParser::*operand)());
    Expr* parseOr();
    Expr* parseAnd();
    Expr* parseNot();
    Expr* parseCompare();
    Expr* parseSum();
    Expr* parseConcat();
    Expr* parseProduct();
    Expr* parsePower();
    Expr* parseFiltered();
    Expr* parseUnary();
    Expr* parsePostfix(Expr* value);
    Expr* parseFiltersAndTests(Expr* value);
    Expr* parseTest(Expr* value);
    Expr* parsePrimary();
    Expr* parseParentheses(Place place);
    Expr* parseList(Place place);
    Expr* parseDict(Place place);
    Expr* parseSubscript(Expr* value, Place place);
    Expr* parseIndex();
    void parseArguments(Expr& call);
    bool endsTuple() const;

    std::vector<Token> tokens_;
    Tree& tree_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

} // namespace vitrine::engine::jinja
