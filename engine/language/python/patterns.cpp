// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "match" and its patterns.
#include "engine/language/python/rules.h"

namespace vitrine::engine {

// "match" is a name everywhere else: the line must end with ":" and the block begin with "case".
bool PyRules::startsMatch() const {
    if (!is("match")) {
        return false;
    }
    std::size_t ahead = 1;
    while (peek(ahead).kind != PyTokenKind::Newline && peek(ahead).kind != PyTokenKind::End) {
        ++ahead;
    }
    return ahead > 2 && is(":", ahead - 1) && peek(ahead + 1).kind == PyTokenKind::Indent && is("case", ahead + 2);
}

std::unique_ptr<PyStmt> PyRules::matchStatement() {
    auto made = makeStatement(PyStmtKind::Match);
    take();
    made->exprs.push_back(expressions(true));
    made->range.end = lastEnd();
    expect(":", "after 'match'");
    take(); // the end of the line
    take(); // the indentation
    while (accept("case")) {
        made->patterns.push_back(openPattern());
        made->exprs.push_back(accept("if") ? namedExpression() : nullptr);
        made->blocks.push_back(block("after the pattern"));
    }
    if (peek().kind != PyTokenKind::Dedent) {
        fail(peek(), "expected 'case'");
    }
    take();
    return made;
}

PyPattern PyRules::openPattern() {
    const std::uint32_t begin = peek().begin;
    PyPattern first = pattern();
    if (!is(",")) {
        if (first.kind == PyPattern::Kind::Star) {
            failAt(first.range, "a pattern with '*' needs other patterns or brackets around it");
        }
        return first;
    }
    PyPattern made{PyPattern::Kind::Sequence, {begin, begin}, {}, nullptr, {}};
    made.items.push_back(std::move(first));
    while (accept(",")) {
        if (is(":") || is("if")) {
            break;
        }
        made.items.push_back(pattern());
    }
    made.range.end = lastEnd();
    return made;
}

// Alternatives, then a name for what matched.
PyPattern PyRules::pattern() {
    const Nested nested(*this);
    const std::uint32_t begin = peek().begin;
    PyPattern made = closedPattern();
    if (is("|")) {
        PyPattern alternatives{PyPattern::Kind::Alternatives, {begin, begin}, {}, nullptr, {}};
        alternatives.items.push_back(std::move(made));
        while (accept("|")) {
            alternatives.items.push_back(closedPattern());
        }
        alternatives.range.end = lastEnd();
        made = std::move(alternatives);
    }
    if (accept("as")) {
        PyPattern named{PyPattern::Kind::Named, {begin, begin}, text(expectName("a name")), nullptr, {}};
        named.items.push_back(std::move(made));
        named.range.end = lastEnd();
        return named;
    }
    return made;
}

PyPattern PyRules::closedPattern() {
    const std::uint32_t begin = peek().begin;
    PyPattern made{PyPattern::Kind::Value, {begin, begin}, {}, nullptr, {}};
    if (accept("*")) {
        made.kind = PyPattern::Kind::Star;
        made.name = text(expectName("a name after '*'"));
    } else if (is("(") || is("[")) {
        return bracketedPattern();
    } else if (is("{")) {
        made.kind = PyPattern::Kind::Unsupported;
        int open = 0;
        do {
            if (peek().kind == PyTokenKind::End) {
                fail(peek(), "expected '}' after the pattern");
            }
            open += bracketStep();
            take();
        } while (open > 0);
    } else {
        made.value = binary(4); // "-1" and "1 + 2j", above "|"
        classify(made);
    }
    made.range.end = lastEnd();
    return made;
}

void PyRules::classify(PyPattern& made) const {
    switch (made.value->kind) {
    case PyExprKind::Name:
        made.kind = PyPattern::Kind::Capture;
        made.name = made.value->name;
        made.value = nullptr;
        return;
    case PyExprKind::None:
    case PyExprKind::True:
    case PyExprKind::False:
        made.kind = PyPattern::Kind::Is;
        return;
    case PyExprKind::Integer:
    case PyExprKind::HugeInteger:
    case PyExprKind::Float:
    case PyExprKind::String:
    case PyExprKind::Attribute:
    case PyExprKind::Unary:
        return;
    case PyExprKind::Call:
    case PyExprKind::Bytes:
    case PyExprKind::Binary:
        made.kind = PyPattern::Kind::Unsupported;
        return;
    default:
        failAt(made.value->range, "this is no pattern; write a literal, a name, a sequence or alternatives with '|'");
    }
}

PyPattern PyRules::bracketedPattern() {
    const bool list = is("[");
    const std::string_view close = list ? "]" : ")";
    PyPattern made{PyPattern::Kind::Sequence, {take().begin, 0}, {}, nullptr, {}};
    bool comma = false;
    while (!is(close)) {
        made.items.push_back(pattern());
        comma = accept(",") || comma;
        if (!is(close) && !comma) {
            break;
        }
    }
    expect(close, "after the pattern");
    made.range.end = lastEnd();
    if (!list && !comma && made.items.size() == 1 && made.items[0].kind != PyPattern::Kind::Star) {
        PyPattern inner = std::move(made.items[0]);
        return inner;
    }
    return made;
}

} // namespace vitrine::engine
