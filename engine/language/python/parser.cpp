// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/parser.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/python/rules.h"

namespace vitrine::engine {

PyTree parsePython(const PyFile& file) {
    return PyRules(file).module();
}

PyExprPtr parsePythonExpression(const PyFile& file) {
    return PyExpressionRules(file).onlyExpression();
}

PyCursor::Nested::Nested(PyCursor& cursor) : cursor_(cursor) {
    // A level of the text passes through at most four counted rules.
    if (++cursor_.nesting_ > 4 * kMaxNesting) {
        const PyToken token = cursor_.peek();
        --cursor_.nesting_; // the destructor of an object that was never made does not run
        cursor_.fail(token, "the text is nested too deeply");
    }
}

const PyToken& PyCursor::peek(std::size_t ahead) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

std::string_view PyCursor::text(const PyToken& token) const {
    return std::string_view(file_.text).substr(token.begin, token.end - token.begin);
}

bool PyCursor::is(std::string_view op, std::size_t ahead) const {
    const PyToken& token = peek(ahead);
    return (token.kind == PyTokenKind::Operator || token.kind == PyTokenKind::Name) && text(token) == op;
}

int PyCursor::bracketStep(std::size_t ahead) const {
    if (is("(", ahead) || is("[", ahead) || is("{", ahead)) {
        return 1;
    }
    return is(")", ahead) || is("]", ahead) || is("}", ahead) ? -1 : 0;
}

bool PyCursor::accept(std::string_view op) {
    if (!is(op)) {
        return false;
    }
    ++at_;
    return true;
}

PyToken PyCursor::take() {
    const PyToken token = peek();
    at_ = std::min(at_ + 1, tokens_.size() - 1);
    return token;
}

PyToken PyCursor::expect(std::string_view op, std::string_view where) {
    if (!is(op)) {
        fail(peek(), fmt::format("expected '{}' {}", op, where));
    }
    return take();
}

PyToken PyCursor::expectName(std::string_view what) {
    const PyToken token = peek();
    if (token.kind != PyTokenKind::Name || isPythonKeyword(text(token))) {
        fail(token, fmt::format("expected {}", what));
    }
    return take();
}

void PyCursor::fail(const PyToken& token, const std::string& what) const {
    const std::string_view found = token.kind == PyTokenKind::End       ? "the end of the text"
                                   : token.kind == PyTokenKind::Newline ? "the end of the line"
                                   : token.kind == PyTokenKind::Indent  ? "an indented line"
                                   : token.kind == PyTokenKind::Dedent  ? "the end of the block"
                                                                        : "";
    const std::string shown = found.empty() ? fmt::format("'{}'", text(token).substr(0, 40)) : std::string(found);
    throw errorAt(file_, token.begin, token.end, fmt::format("{}, found {}", what, shown));
}

void PyCursor::failAt(PyRange range, const std::string& what) const {
    throw errorAt(file_, range.begin, range.end, what);
}

void PyCursor::lenient(PyRange range, const std::string& what) {
    const PyPlace place = placeOf(file_, range.begin, range.end);
    leniencies_.push_back(fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, what));
}

PyTree PyRules::module() {
    PyTree tree;
    while (peek().kind != PyTokenKind::End) {
        if (peek().kind == PyTokenKind::Indent) {
            fail(peek(), "this line is indented without a block");
        }
        statement(tree.body);
    }
    tree.leniencies = std::move(leniencies_);
    return tree;
}

PyExprPtr PyExpressionRules::onlyExpression() {
    if (peek().kind == PyTokenKind::Indent) {
        take(); // spaces in front
    }
    PyExprPtr expr = expressions(true);
    while (peek().kind == PyTokenKind::Newline || peek().kind == PyTokenKind::Dedent) {
        take();
    }
    if (peek().kind != PyTokenKind::End) {
        fail(peek(), "expected one expression");
    }
    return expr;
}

std::unique_ptr<PyStmt> PyRules::makeStatement(PyStmtKind kind) const {
    auto made = std::make_unique<PyStmt>();
    made->kind = kind;
    made->range = {peek().begin, peek().end};
    return made;
}

void PyRules::statement(PyBlock& block) {
    const Nested nested(*this);
    static constexpr std::array<std::string_view, 8> kCompound = {"if",    "for",  "while", "def",
                                                                  "class", "with", "try",   "@"};
    const bool compound = std::any_of(kCompound.begin(), kCompound.end(), [this](auto word) { return is(word); });
    if (compound || startsMatch()) {
        block.push_back(compoundStatement(false));
    } else if (is("async") && (is("def", 1) || is("for", 1) || is("with", 1))) {
        take();
        block.push_back(compoundStatement(true));
    } else {
        simpleStatements(block);
    }
}

std::unique_ptr<PyStmt> PyRules::compoundStatement(bool isAsync) {
    if (is("if")) {
        return ifStatement();
    }
    if (is("for") || is("while")) {
        return loopStatement();
    }
    if (is("def")) {
        return defStatement({}, peek().begin, isAsync);
    }
    if (is("class")) {
        return classStatement({});
    }
    if (is("with")) {
        return withStatement();
    }
    if (is("try")) {
        return tryStatement();
    }
    return is("@") ? decorated() : matchStatement();
}

void PyRules::simpleStatements(PyBlock& block) {
    do {
        block.push_back(simpleStatement());
    } while (accept(";") && peek().kind != PyTokenKind::Newline);
    if (peek().kind != PyTokenKind::Newline) {
        fail(peek(), "expected the end of the statement");
    }
    take();
}

std::unique_ptr<PyStmt> PyRules::simpleStatement() {
    struct Word {
        std::string_view word;
        PyStmtKind kind;
    };
    static constexpr std::array<Word, 3> kPlain = {
        {{"pass", PyStmtKind::Pass}, {"break", PyStmtKind::Break}, {"continue", PyStmtKind::Continue}}};
    for (const Word& plain : kPlain) {
        if (is(plain.word)) {
            auto made = makeStatement(plain.kind);
            take();
            return made;
        }
    }
    const bool global = is("global");
    if (global || is("nonlocal")) {
        auto made = makeStatement(global ? PyStmtKind::Global : PyStmtKind::Nonlocal);
        take();
        do {
            const PyToken name = expectName("a name");
            made->aliases.push_back({text(name), {}, {name.begin, name.end}});
        } while (accept(","));
        return made;
    }
    if (is("import")) {
        return importStatement();
    }
    if (is("from")) {
        return importFromStatement();
    }
    static constexpr std::array<Word, 4> kWithValue = {{{"return", PyStmtKind::Return},
                                                        {"raise", PyStmtKind::Raise},
                                                        {"assert", PyStmtKind::Assert},
                                                        {"del", PyStmtKind::Delete}}};
    for (const Word& word : kWithValue) {
        if (!is(word.word)) {
            continue;
        }
        auto made = makeStatement(word.kind);
        take();
        if (peek().kind != PyTokenKind::Newline && !is(";")) {
            made->exprs.push_back(word.kind == PyStmtKind::Assert ? expression() : expressions(true));
            if ((word.kind == PyStmtKind::Assert && accept(",")) ||
                (word.kind == PyStmtKind::Raise && accept("from"))) {
                made->exprs.push_back(expression());
            }
        } else if (word.kind == PyStmtKind::Assert || word.kind == PyStmtKind::Delete) {
            fail(peek(), fmt::format("expected an expression after '{}'", word.word));
        }
        made->range.end = lastEnd();
        return made;
    }
    if (startsTypeAlias()) {
        auto made = makeStatement(PyStmtKind::TypeAlias);
        take();
        made->name = text(take());
        skipTypeParameters();
        expect("=", "of a type alias");
        made->exprs.push_back(expression());
        made->range.end = lastEnd();
        return made;
    }
    return expressionStatement();
}

std::unique_ptr<PyStmt> PyRules::expressionStatement() {
    struct Augmented {
        std::string_view text;
        PyOperator op;
    };
    static constexpr std::array<Augmented, 13> kAugmented = {{{"+=", PyOperator::Add},
                                                              {"-=", PyOperator::Sub},
                                                              {"*=", PyOperator::Mul},
                                                              {"/=", PyOperator::Div},
                                                              {"//=", PyOperator::FloorDiv},
                                                              {"%=", PyOperator::Mod},
                                                              {"**=", PyOperator::Pow},
                                                              {"@=", PyOperator::MatMul},
                                                              {"&=", PyOperator::And},
                                                              {"|=", PyOperator::Or},
                                                              {"^=", PyOperator::Xor},
                                                              {"<<=", PyOperator::ShiftLeft},
                                                              {">>=", PyOperator::ShiftRight}}};
    auto made = makeStatement(PyStmtKind::Expression);
    made->exprs.push_back(is("yield") ? yieldExpression() : expressions(true));
    const auto value = [this] { return is("yield") ? yieldExpression() : expressions(true); };
    if (is(":")) {
        take();
        made->kind = PyStmtKind::AnnotatedAssign;
        if (made->exprs[0]->kind != PyExprKind::Tuple) { // "Q, K, V: Tensor[...]" of articles declares three names
            checkTarget(*made->exprs[0]);
        }
        made->exprs.push_back(expression());
        made->exprs.push_back(accept("=") ? value() : nullptr);
    } else if (is("=")) {
        made->kind = PyStmtKind::Assign;
        while (accept("=")) {
            checkTarget(*made->exprs.back());
            made->exprs.push_back(value());
        }
    } else {
        for (const Augmented& augmented : kAugmented) {
            if (accept(augmented.text)) {
                made->kind = PyStmtKind::AugmentedAssign;
                made->op = augmented.op;
                checkTarget(*made->exprs[0]);
                made->exprs.push_back(value());
                break;
            }
        }
    }
    made->range.end = lastEnd();
    return made;
}

void PyExpressionRules::checkTarget(const PyExpr& target) const {
    switch (target.kind) {
    case PyExprKind::Name:
    case PyExprKind::Attribute:
    case PyExprKind::Subscript:
        return;
    case PyExprKind::Tuple:
    case PyExprKind::List:
    case PyExprKind::Starred:
        for (const PyExprPtr& item : target.items) {
            checkTarget(*item);
        }
        return;
    default:
        failAt(target.range,
               "this cannot be assigned to; targets are names, attributes, subscripts and tuples of them");
    }
}

void PyRules::dottedName(std::string_view& name) {
    const std::uint32_t begin = expectName("a module's name").begin;
    while (is(".")) {
        take();
        expectName("a module's name");
    }
    name = std::string_view(file_.text).substr(begin, lastEnd() - begin);
}

std::unique_ptr<PyStmt> PyRules::importStatement() {
    auto made = makeStatement(PyStmtKind::Import);
    take();
    do {
        PyAlias alias;
        alias.range = {peek().begin, peek().end};
        dottedName(alias.name);
        if (accept("as")) {
            alias.asName = text(expectName("a name"));
        }
        alias.range.end = lastEnd();
        made->aliases.push_back(alias);
    } while (accept(","));
    made->range.end = lastEnd();
    return made;
}

std::unique_ptr<PyStmt> PyRules::importFromStatement() {
    auto made = makeStatement(PyStmtKind::ImportFrom);
    take();
    const std::uint32_t begin = peek().begin;
    while (accept(".") || accept("...")) {
    }
    if (!is("import")) {
        std::string_view name;
        dottedName(name);
    }
    made->name = std::string_view(file_.text).substr(begin, lastEnd() > begin ? lastEnd() - begin : 0);
    expect("import", "of 'from'");
    if (is("*")) {
        made->aliases.push_back({text(peek()), {}, {peek().begin, peek().end}});
        take();
    } else {
        const bool parenthesis = accept("(");
        do {
            if (parenthesis && is(")")) {
                break;
            }
            const PyToken name = expectName("a name to import");
            PyAlias alias{text(name), {}, {name.begin, name.end}};
            if (accept("as")) {
                alias.asName = text(expectName("a name"));
            }
            made->aliases.push_back(alias);
        } while (accept(","));
        if (parenthesis) {
            expect(")", "after the imported names");
        }
    }
    made->range.end = lastEnd();
    return made;
}

PyBlock PyRules::block(std::string_view where, bool colonMayMiss) {
    if (colonMayMiss && peek().kind == PyTokenKind::Newline && peek(1).kind == PyTokenKind::Indent) {
        lenient({lastEnd() - 1, lastEnd()}, fmt::format("a ':' is missing {}; read as if it were there", where));
    } else {
        expect(":", where);
    }
    PyBlock made;
    if (peek().kind != PyTokenKind::Newline) {
        simpleStatements(made);
        return made;
    }
    take();
    if (peek().kind != PyTokenKind::Indent) {
        fail(peek(), fmt::format("expected an indented block {}", where));
    }
    take();
    while (peek().kind != PyTokenKind::Dedent && peek().kind != PyTokenKind::End) {
        if (peek().kind == PyTokenKind::Indent) {
            fail(peek(), "this line is indented without a block");
        }
        statement(made);
    }
    take();
    return made;
}

std::unique_ptr<PyStmt> PyRules::ifStatement() {
    auto made = makeStatement(PyStmtKind::If);
    take();
    made->exprs.push_back(namedExpression());
    made->range.end = lastEnd();
    made->blocks.push_back(block("after the condition"));
    while (accept("elif")) {
        made->exprs.push_back(namedExpression());
        made->blocks.push_back(block("after the condition"));
    }
    if (accept("else")) {
        made->blocks.push_back(block("after 'else'"));
    }
    return made;
}

std::unique_ptr<PyStmt> PyRules::loopStatement() {
    const bool isFor = is("for");
    auto made = makeStatement(isFor ? PyStmtKind::For : PyStmtKind::While);
    take();
    if (isFor) {
        made->exprs.push_back(targetList());
        expect("in", "of 'for'");
        made->exprs.push_back(expressions(true));
    } else {
        made->exprs.push_back(namedExpression());
    }
    made->range.end = lastEnd();
    made->blocks.push_back(block("after the head of the loop"));
    if (accept("else")) {
        made->blocks.push_back(block("after 'else'"));
    }
    return made;
}

void PyRules::skipTypeParameters() {
    if (!is("[")) {
        return;
    }
    int open = 0;
    do {
        open += bracketStep();
        take();
    } while (open > 0 && peek().kind != PyTokenKind::End);
}

void PyExpressionRules::parameters(PyFunctionCode& function, std::string_view close, bool annotated) {
    bool keywordOnly = false;
    while (!is(close)) {
        PyParameter parameter;
        parameter.range = {peek().begin, peek().end};
        if (accept("/")) {
            for (PyParameter& before : function.parameters) {
                before.kind = PyParameter::Kind::PositionalOnly;
            }
        } else if (is("*") && is(",", 1)) {
            take();
            keywordOnly = true;
        } else {
            parameter.kind = accept("**")  ? PyParameter::Kind::VarKeyword
                             : accept("*") ? PyParameter::Kind::VarPositional
                             : keywordOnly ? PyParameter::Kind::KeywordOnly
                                           : PyParameter::Kind::Normal;
            keywordOnly = keywordOnly || parameter.kind == PyParameter::Kind::VarPositional;
            parameter.name = text(expectName("a parameter"));
            if (annotated && accept(":")) {
                parameter.annotation = is("*") ? starredOrNamed() : expression();
            }
            if (accept("=")) {
                parameter.value = expression();
            }
            parameter.range.end = lastEnd();
            for (const PyParameter& before : function.parameters) {
                if (before.name == parameter.name) {
                    failAt(parameter.range, fmt::format("two parameters are called '{}'", parameter.name));
                }
            }
            function.parameters.push_back(std::move(parameter));
        }
        if (!accept(",")) {
            break;
        }
    }
}

std::unique_ptr<PyStmt> PyRules::defStatement(std::vector<PyExprPtr> decorators, std::uint32_t begin, bool isAsync) {
    auto made = makeStatement(PyStmtKind::Def);
    take();
    made->function = std::make_unique<PyFunctionCode>();
    PyFunctionCode& function = *made->function;
    function.isAsync = isAsync;
    function.decorators = std::move(decorators);
    function.name = text(expectName("the function's name"));
    skipTypeParameters();
    expect("(", "after the function's name");
    parameters(function, ")", true);
    expect(")", "after the parameters");
    if (accept("->")) {
        expression(); // an annotation of the result means nothing here
    }
    function.head = {made->range.begin, lastEnd()};
    made->range = function.head;
    const bool outer = sawYield_;
    sawYield_ = false;
    function.body = block("after the head of the function", true);
    function.isGenerator = sawYield_;
    sawYield_ = outer;
    function.range = {begin, lastEnd()};
    return made;
}

std::unique_ptr<PyStmt> PyRules::classStatement(std::vector<PyExprPtr> decorators) {
    auto made = makeStatement(PyStmtKind::Class);
    take();
    made->decorators = std::move(decorators);
    made->name = text(expectName("the class's name"));
    skipTypeParameters();
    if (is("(")) {
        PyExprPtr bases = call(make(PyExprKind::None, peek().begin));
        for (std::size_t i = 1; i < bases->items.size(); ++i) {
            if (bases->extra->keywords[i - 1].empty()) {
                made->exprs.push_back(std::move(bases->items[i]));
            }
        }
    }
    made->range.end = lastEnd();
    made->blocks.push_back(block("after the head of the class"));
    return made;
}

std::unique_ptr<PyStmt> PyRules::decorated() {
    const std::uint32_t begin = peek().begin;
    std::vector<PyExprPtr> decorators;
    while (accept("@")) {
        decorators.push_back(namedExpression());
        if (peek().kind != PyTokenKind::Newline) {
            fail(peek(), "expected the end of the line after a decorator");
        }
        take();
    }
    const bool isAsync = accept("async");
    if (is("class") && !isAsync) {
        return classStatement(std::move(decorators));
    }
    if (!is("def")) {
        fail(peek(), "expected 'def' or 'class' after a decorator");
    }
    return defStatement(std::move(decorators), begin, isAsync);
}

// "with (open(a) as f, open(b) as g):" against "with (a, b):" or "with (a).b:": an "as" directly inside.
bool PyRules::withItemsInParentheses() const {
    if (!is("(")) {
        return false;
    }
    int open = 0;
    bool as = false;
    for (std::size_t ahead = 0; peek(ahead).kind != PyTokenKind::End; ++ahead) {
        open += bracketStep(ahead);
        as = as || (open == 1 && is("as", ahead));
        if (open == 0) {
            return as && is(":", ahead + 1);
        }
    }
    return false;
}

std::unique_ptr<PyStmt> PyRules::withStatement() {
    auto made = makeStatement(PyStmtKind::With);
    take();
    const bool parenthesis = withItemsInParentheses() && accept("(");
    do {
        if (parenthesis && is(")")) {
            break;
        }
        made->exprs.push_back(expression());
        if (accept("as")) {
            made->exprs.push_back(primary());
            checkTarget(*made->exprs.back());
        } else {
            made->exprs.push_back(nullptr);
        }
    } while (accept(","));
    if (parenthesis) {
        expect(")", "after the contexts");
    }
    made->range.end = lastEnd();
    made->blocks.push_back(block("after 'with'"));
    return made;
}

std::unique_ptr<PyStmt> PyRules::tryStatement() {
    auto made = makeStatement(PyStmtKind::Try);
    take();
    made->blocks.push_back(block("after 'try'"));
    while (accept("except")) {
        accept("*");
        PyAlias alias;
        if (!is(":")) {
            expressions(false);
            if (accept("as")) {
                alias.name = text(expectName("a name"));
            }
        }
        made->aliases.push_back(alias);
        made->blocks.push_back(block("after 'except'"));
        ++made->handlers;
    }
    if (made->handlers > 0 && accept("else")) {
        made->hasElse = true;
        made->blocks.push_back(block("after 'else'"));
    }
    if (accept("finally")) {
        made->hasFinally = true;
        made->blocks.push_back(block("after 'finally'"));
    }
    if (made->handlers == 0 && !made->hasFinally) {
        fail(peek(), "expected 'except' or 'finally'");
    }
    return made;
}

bool PyRules::startsTypeAlias() const {
    return is("type") && peek(1).kind == PyTokenKind::Name && !isPythonKeyword(text(peek(1))) &&
           (is("=", 2) || is("[", 2));
}

} // namespace vitrine::engine
