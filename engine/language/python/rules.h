// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Recursive descent over tokens: one member for each rule of the grammar. Private to the parser's sources.
// PyCursor reads tokens, PyLiteralRules makes nodes and reads literals (literals.cpp), PyExpressionRules adds the rules
// of expressions (expressions.cpp), PyRules those of statements (parser.cpp, patterns.cpp).

#include <string>
#include <string_view>
#include <vector>

#include "engine/language/python/ast.h"
#include "engine/language/python/lexer.h"

namespace vitrine::engine {

/// Of one expression's tree: evaluation and destruction follow it.
inline constexpr int kMaxExpressionDepth = 250;

/// The tokens of a text, the place that the rules have come to, and errors at tokens.
class PyCursor {
public:
    explicit PyCursor(const PyFile& file) : file_(file), tokens_(tokenizePython(file)) {}
    /// For a field of an f-string: tokens of [begin, end) of the same text.
    PyCursor(const PyFile& file, std::uint32_t begin, std::uint32_t end, int nesting);

protected:
    const PyToken& peek(std::size_t ahead = 0) const;
    std::string_view text(const PyToken& token) const;
    bool is(std::string_view op, std::size_t ahead = 0) const; ///< an operator or keyword
    int bracketStep(std::size_t ahead = 0) const;              ///< 1 at an opening bracket, -1 at a closing one
    bool accept(std::string_view op);
    PyToken expect(std::string_view op, std::string_view where);
    PyToken expectName(std::string_view what);
    PyToken take();
    std::uint32_t lastEnd() const { return at_ == 0 ? 0 : tokens_[at_ - 1].end; }
    [[noreturn]] void fail(const PyToken& token, const std::string& what) const;
    [[noreturn]] void failAt(PyRange range, const std::string& what) const;
    void lenient(PyRange range, const std::string& what);

    class Nested;

    const PyFile& file_;
    std::vector<PyToken> tokens_;
    std::size_t at_ = 0;
    int nesting_ = 0;
    bool sawYield_ = false;
    std::vector<std::string> leniencies_;
};

/// Counts nested rules against kMaxNesting.
class PyCursor::Nested {
public:
    explicit Nested(PyCursor& cursor);
    ~Nested() { --cursor_.nesting_; }
    Nested(const Nested&) = delete; // counts once
    Nested& operator=(const Nested&) = delete;

private:
    PyCursor& cursor_;
};

/// Nodes of the tree, and those of literals.
class PyLiteralRules : public PyCursor {
public:
    using PyCursor::PyCursor;

protected:
    PyExprPtr make(PyExprKind kind, std::uint32_t begin) const;
    PyExprPtr finish(PyExprPtr expr) const; ///< sets its end and depth
    static PyExprExtra& extra(PyExpr& expr);
    PyExprPtr number(const PyToken& token) const;
    PyExprPtr strings(); ///< one literal or several side by side

private:
    std::string decoded(const PyToken& token, std::uint32_t begin, std::uint32_t end, bool raw) const;
    void formattedParts(PyExpr& target, const PyToken& token);
};

class PyExpressionRules : public PyLiteralRules {
public:
    using PyLiteralRules::PyLiteralRules;

    PyExprPtr onlyExpression();
    PyExprPtr formattedField();

protected:
    // Expressions, from weak to strong.
    PyExprPtr expressions(bool starred); ///< one, or a tuple without parentheses
    PyExprPtr namedExpression();         ///< with :=
    PyExprPtr expression();              ///< lambda, conditional
    PyExprPtr starredOrNamed();
    PyExprPtr lambda();
    PyExprPtr disjunction();
    PyExprPtr conjunction();
    PyExprPtr inversion();
    PyExprPtr comparison();
    PyExprPtr binary(int level);
    PyExprPtr unary();
    PyExprPtr power();
    PyExprPtr primary();
    PyExprPtr call(PyExprPtr callee);
    void callArgument(PyExpr& call, bool& keywords);
    PyExprPtr subscript(PyExprPtr object);
    PyExprPtr sliceItem();
    PyExprPtr atom();
    PyExprPtr parenthesized();
    PyExprPtr listDisplay();
    PyExprPtr braceDisplay();
    PyExprPtr yieldExpression();
    void parameters(PyFunctionCode& function, std::string_view close, bool annotated);
    void checkTarget(const PyExpr& target) const;
    PyExprPtr targetList(); ///< after "for": stops at "in"
    std::vector<PyClause> clauses();
    bool startsComprehension() const;
    PyOperator comparisonOperator();
};

class PyRules : public PyExpressionRules {
public:
    explicit PyRules(const PyFile& file) : PyExpressionRules(file) {}

    PyTree module();

private:
    void statement(PyBlock& block);
    void simpleStatements(PyBlock& block);
    std::unique_ptr<PyStmt> simpleStatement();
    std::unique_ptr<PyStmt> expressionStatement();
    std::unique_ptr<PyStmt> importStatement();
    std::unique_ptr<PyStmt> importFromStatement();
    std::unique_ptr<PyStmt> compoundStatement(bool isAsync);
    std::unique_ptr<PyStmt> ifStatement();
    std::unique_ptr<PyStmt> loopStatement();
    std::unique_ptr<PyStmt> defStatement(std::vector<PyExprPtr> decorators, std::uint32_t begin, bool isAsync);
    std::unique_ptr<PyStmt> classStatement(std::vector<PyExprPtr> decorators);
    std::unique_ptr<PyStmt> withStatement();
    std::unique_ptr<PyStmt> tryStatement();
    std::unique_ptr<PyStmt> matchStatement();
    std::unique_ptr<PyStmt> decorated();
    bool startsMatch() const;
    PyPattern openPattern(); ///< after "case": a sequence needs no brackets
    PyPattern pattern();
    PyPattern closedPattern();
    PyPattern bracketedPattern();
    void classify(PyPattern& made) const;
    bool startsTypeAlias() const;
    bool withItemsInParentheses() const;
    void skipTypeParameters();
    void dottedName(std::string_view& name);
    PyBlock block(std::string_view where, bool colonMayMiss = false);
    std::unique_ptr<PyStmt> makeStatement(PyStmtKind kind) const;
};

} // namespace vitrine::engine
