// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/python/rules.h"

namespace vitrine::engine {

namespace {

struct BinaryOperator {
    std::string_view text;
    PyOperator op;
    int level; ///< higher binds tighter
};

constexpr std::array<BinaryOperator, 12> kBinary = {{{"|", PyOperator::Or, 0},
                                                     {"^", PyOperator::Xor, 1},
                                                     {"&", PyOperator::And, 2},
                                                     {"<<", PyOperator::ShiftLeft, 3},
                                                     {">>", PyOperator::ShiftRight, 3},
                                                     {"+", PyOperator::Add, 4},
                                                     {"-", PyOperator::Sub, 4},
                                                     {"*", PyOperator::Mul, 5},
                                                     {"/", PyOperator::Div, 5},
                                                     {"//", PyOperator::FloorDiv, 5},
                                                     {"%", PyOperator::Mod, 5},
                                                     {"@", PyOperator::MatMul, 5}}};
constexpr int kTightest = 5;

} // namespace

PyExprPtr PyExpressionRules::expressions(bool starred) {
    const std::uint32_t begin = peek().begin;
    PyExprPtr first = starred ? starredOrNamed() : expression();
    if (!is(",")) {
        return first;
    }
    PyExprPtr tuple = make(PyExprKind::Tuple, begin);
    tuple->items.push_back(std::move(first));
    static constexpr std::array<std::string_view, 7> kEnds = {")", "]", "}", "=", ":", ";", "in"};
    while (accept(",")) {
        const bool ended = peek().kind == PyTokenKind::Newline || peek().kind == PyTokenKind::End ||
                           std::any_of(kEnds.begin(), kEnds.end(), [this](auto end) { return is(end); });
        if (ended) {
            break;
        }
        tuple->items.push_back(starred ? starredOrNamed() : expression());
    }
    return finish(std::move(tuple));
}

PyExprPtr PyExpressionRules::starredOrNamed() {
    if (!is("*")) {
        return namedExpression();
    }
    PyExprPtr made = make(PyExprKind::Starred, take().begin);
    made->items.push_back(binary(0));
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::namedExpression() {
    if (peek().kind == PyTokenKind::Name && is(":=", 1) && !isPythonKeyword(text(peek()))) {
        PyExprPtr made = make(PyExprKind::Walrus, peek().begin);
        made->name = text(take());
        take();
        made->items.push_back(expression());
        return finish(std::move(made));
    }
    return expression();
}

PyExprPtr PyExpressionRules::expression() {
    const Nested nested(*this);
    if (is("lambda")) {
        return lambda();
    }
    const std::uint32_t begin = peek().begin;
    PyExprPtr value = disjunction();
    if (!accept("if")) {
        return value;
    }
    PyExprPtr made = make(PyExprKind::Conditional, begin);
    PyExprPtr condition = disjunction();
    expect("else", "of a conditional expression");
    made->items.push_back(std::move(condition));
    made->items.push_back(std::move(value));
    made->items.push_back(expression());
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::lambda() {
    PyExprPtr made = make(PyExprKind::Lambda, take().begin);
    auto function = std::make_unique<PyFunctionCode>();
    parameters(*function, ":", false);
    expect(":", "after the parameters of a lambda");
    function->result = expression();
    function->range = {made->range.begin, lastEnd()};
    function->head = function->range;
    extra(*made).lambda = std::move(function);
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::disjunction() {
    const std::uint32_t begin = peek().begin;
    PyExprPtr first = conjunction();
    if (!is("or")) {
        return first;
    }
    PyExprPtr made = make(PyExprKind::Or, begin);
    made->items.push_back(std::move(first));
    while (accept("or")) {
        made->items.push_back(conjunction());
    }
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::conjunction() {
    const std::uint32_t begin = peek().begin;
    PyExprPtr first = inversion();
    if (!is("and")) {
        return first;
    }
    PyExprPtr made = make(PyExprKind::And, begin);
    made->items.push_back(std::move(first));
    while (accept("and")) {
        made->items.push_back(inversion());
    }
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::inversion() {
    if (!is("not")) {
        return comparison();
    }
    const Nested nested(*this);
    PyExprPtr made = make(PyExprKind::Not, take().begin);
    made->items.push_back(inversion());
    return finish(std::move(made));
}

PyOperator PyExpressionRules::comparisonOperator() {
    struct Comparison {
        std::string_view text;
        PyOperator op;
    };
    static constexpr std::array<Comparison, 7> kComparisons = {{{"<", PyOperator::Lt},
                                                                {"<=", PyOperator::Le},
                                                                {">", PyOperator::Gt},
                                                                {">=", PyOperator::Ge},
                                                                {"==", PyOperator::Eq},
                                                                {"!=", PyOperator::Ne},
                                                                {"in", PyOperator::In}}};
    for (const Comparison& comparison : kComparisons) {
        if (accept(comparison.text)) {
            return comparison.op;
        }
    }
    if (accept("is")) {
        return accept("not") ? PyOperator::IsNot : PyOperator::Is;
    }
    if (is("not") && is("in", 1)) {
        take();
        take();
        return PyOperator::NotIn;
    }
    return PyOperator::None;
}

PyExprPtr PyExpressionRules::comparison() {
    const std::uint32_t begin = peek().begin;
    PyExprPtr first = binary(0);
    PyOperator op = comparisonOperator();
    if (op == PyOperator::None) {
        return first;
    }
    PyExprPtr made = make(PyExprKind::Compare, begin);
    made->items.push_back(std::move(first));
    for (; op != PyOperator::None; op = comparisonOperator()) {
        extra(*made).operators.push_back(op);
        made->items.push_back(binary(0));
    }
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::binary(int level) {
    const std::uint32_t begin = peek().begin;
    PyExprPtr left = unary();
    for (;;) {
        const auto* const found = std::find_if(kBinary.begin(), kBinary.end(), [this, level](const BinaryOperator& op) {
            return op.level >= level && is(op.text);
        });
        if (found == kBinary.end()) {
            return left;
        }
        take();
        PyExprPtr made = make(PyExprKind::Binary, begin);
        made->op = found->op;
        made->items.push_back(std::move(left));
        made->items.push_back(found->level == kTightest ? unary() : binary(found->level + 1));
        left = finish(std::move(made));
    }
}

PyExprPtr PyExpressionRules::unary() {
    const PyOperator op = is("-")   ? PyOperator::Minus
                          : is("+") ? PyOperator::Plus
                          : is("~") ? PyOperator::Invert
                                    : PyOperator::None;
    if (op == PyOperator::None) {
        return power();
    }
    const Nested nested(*this);
    PyExprPtr made = make(PyExprKind::Unary, take().begin);
    made->op = op;
    made->items.push_back(unary());
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::power() {
    const std::uint32_t begin = peek().begin;
    PyExprPtr base = primary();
    if (!is("**")) {
        return base;
    }
    const Nested nested(*this);
    take();
    PyExprPtr made = make(PyExprKind::Binary, begin);
    made->op = PyOperator::Pow;
    made->items.push_back(std::move(base));
    made->items.push_back(unary());
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::primary() {
    const std::uint32_t begin = peek().begin;
    if (is("await")) {
        const Nested nested(*this);
        PyExprPtr made = make(PyExprKind::Await, take().begin);
        made->items.push_back(primary());
        return finish(std::move(made));
    }
    PyExprPtr value = atom();
    for (;;) {
        if (is("(")) {
            value = call(std::move(value));
        } else if (is("[")) {
            value = subscript(std::move(value));
        } else if (accept(".")) {
            PyExprPtr made = make(PyExprKind::Attribute, begin);
            made->name = text(expectName("an attribute's name after '.'"));
            made->items.push_back(std::move(value));
            value = finish(std::move(made));
        } else {
            return value;
        }
    }
}

PyExprPtr PyExpressionRules::call(PyExprPtr callee) {
    PyExprPtr made = make(PyExprKind::Call, callee->range.begin);
    made->items.push_back(std::move(callee));
    extra(*made);
    take();
    bool keywords = false;
    while (!is(")")) {
        callArgument(*made, keywords);
        if (!accept(",")) {
            break;
        }
    }
    expect(")", "after the arguments");
    return finish(std::move(made));
}

void PyExpressionRules::callArgument(PyExpr& call, bool& keywords) {
    std::string_view keyword;
    if (is("**") || is("*")) {
        keyword = text(take());
        keywords = keywords || keyword == "**";
        call.items.push_back(expression());
    } else if (peek().kind == PyTokenKind::Name && is("=", 1) && !isPythonKeyword(text(peek()))) {
        keyword = text(take());
        for (const std::string_view before : call.extra->keywords) {
            if (before == keyword) {
                failAt({tokens_[at_ - 1].begin, lastEnd()}, fmt::format("the argument '{}' is given twice", keyword));
            }
        }
        take();
        keywords = true;
        call.items.push_back(expression());
    } else {
        const std::uint32_t begin = peek().begin;
        PyExprPtr value = namedExpression();
        if (startsComprehension()) {
            PyExprPtr generator = make(PyExprKind::Generator, begin);
            generator->items.push_back(std::move(value));
            extra(*generator).clauses = clauses();
            value = finish(std::move(generator));
        }
        if (keywords) {
            lenient(value->range, "a positional argument after a keyword argument, which Python refuses");
        }
        call.items.push_back(std::move(value));
    }
    call.extra->keywords.push_back(keyword);
}

PyExprPtr PyExpressionRules::subscript(PyExprPtr object) {
    PyExprPtr made = make(PyExprKind::Subscript, object->range.begin);
    made->items.push_back(std::move(object));
    const std::uint32_t open = take().begin;
    if (is("]")) {
        take();
        lenient({open, lastEnd()}, "an empty subscript, which Python refuses");
        return finish(std::move(made));
    }
    const std::uint32_t begin = peek().begin;
    PyExprPtr index = sliceItem();
    if (is(",")) {
        PyExprPtr tuple = make(PyExprKind::Tuple, begin);
        tuple->items.push_back(std::move(index));
        while (accept(",") && !is("]")) {
            tuple->items.push_back(sliceItem());
        }
        index = finish(std::move(tuple));
    }
    made->items.push_back(std::move(index));
    expect("]", "after the index");
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::sliceItem() {
    const std::uint32_t begin = peek().begin;
    PyExprPtr first;
    if (!is(":")) {
        first = starredOrNamed();
        if (!is(":")) {
            return first;
        }
    }
    PyExprPtr made = make(PyExprKind::Slice, begin);
    made->items.push_back(std::move(first));
    for (int part = 1; part < 3; ++part) {
        const bool given = accept(":") && !is(":") && !is("]") && !is(",");
        made->items.push_back(given ? expression() : nullptr);
    }
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::atom() {
    const PyToken token = peek();
    switch (token.kind) {
    case PyTokenKind::Number: {
        PyExprPtr made = number(take());
        return finish(std::move(made));
    }
    case PyTokenKind::String:
    case PyTokenKind::FString:
        return strings();
    case PyTokenKind::Name: {
        struct Constant {
            std::string_view text;
            PyExprKind kind;
        };
        static constexpr std::array<Constant, 3> kConstants = {
            {{"None", PyExprKind::None}, {"True", PyExprKind::True}, {"False", PyExprKind::False}}};
        for (const Constant& constant : kConstants) {
            if (is(constant.text)) {
                take();
                return finish(make(constant.kind, token.begin));
            }
        }
        if (isPythonKeyword(text(token))) {
            fail(token, "expected an expression");
        }
        PyExprPtr made = make(PyExprKind::Name, token.begin);
        made->name = text(take());
        return finish(std::move(made));
    }
    default:
        break;
    }
    const Nested nested(*this);
    if (is("(")) {
        return parenthesized();
    }
    if (is("[")) {
        return listDisplay();
    }
    if (is("{")) {
        return braceDisplay();
    }
    if (accept("...")) {
        return finish(make(PyExprKind::Ellipsis, token.begin));
    }
    fail(token, "expected an expression");
}

bool PyExpressionRules::startsComprehension() const {
    return is("for") || (is("async") && is("for", 1));
}

PyExprPtr PyExpressionRules::parenthesized() {
    const std::uint32_t begin = take().begin;
    if (accept(")")) {
        return finish(make(PyExprKind::Tuple, begin));
    }
    PyExprPtr value = is("yield") ? yieldExpression() : starredOrNamed();
    if (startsComprehension()) {
        PyExprPtr generator = make(PyExprKind::Generator, begin);
        generator->items.push_back(std::move(value));
        extra(*generator).clauses = clauses();
        value = std::move(generator);
    } else if (is(",")) {
        PyExprPtr tuple = make(PyExprKind::Tuple, begin);
        tuple->items.push_back(std::move(value));
        while (accept(",") && !is(")")) {
            tuple->items.push_back(starredOrNamed());
        }
        value = std::move(tuple);
    } else {
        expect(")", "after the expression");
        return value;
    }
    expect(")", "after the expression");
    return finish(std::move(value));
}

PyExprPtr PyExpressionRules::listDisplay() {
    PyExprPtr made = make(PyExprKind::List, take().begin);
    while (!is("]")) {
        made->items.push_back(starredOrNamed());
        if (made->items.size() == 1 && startsComprehension()) {
            made->kind = PyExprKind::ListComprehension;
            extra(*made).clauses = clauses();
            break;
        }
        if (!accept(",")) {
            break;
        }
    }
    expect("]", "after the list");
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::braceDisplay() {
    PyExprPtr made = make(PyExprKind::Dict, take().begin);
    bool dict = is("}");
    for (bool first = true; !is("}"); first = false) {
        if (accept("**")) {
            dict = true;
            made->items.push_back(nullptr);
            made->items.push_back(binary(0));
        } else {
            made->items.push_back(starredOrNamed());
            dict = first ? is(":") : dict;
            if (dict) {
                expect(":", "between key and value");
                made->items.push_back(expression());
            }
        }
        if (first && startsComprehension()) {
            made->kind = dict ? PyExprKind::DictComprehension : PyExprKind::SetComprehension;
            extra(*made).clauses = clauses();
            break;
        }
        if (!accept(",")) {
            break;
        }
    }
    expect("}", "after the entries");
    if (!dict && made->kind == PyExprKind::Dict) {
        made->kind = PyExprKind::Set;
    }
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::yieldExpression() {
    PyExprPtr made = make(PyExprKind::Yield, take().begin);
    sawYield_ = true;
    accept("from");
    if (peek().kind != PyTokenKind::Newline && !is(")") && !is("]") && !is("}") && !is(";") && !is("=")) {
        made->items.push_back(expressions(true));
    }
    return finish(std::move(made));
}

PyExprPtr PyExpressionRules::targetList() {
    const std::uint32_t begin = peek().begin;
    // "in" ends the targets: a comparison would take it for its operator.
    const auto target = [this] {
        if (!is("*")) {
            return primary();
        }
        PyExprPtr made = make(PyExprKind::Starred, take().begin);
        made->items.push_back(primary());
        return finish(std::move(made));
    };
    PyExprPtr first = target();
    if (is(",")) {
        PyExprPtr tuple = make(PyExprKind::Tuple, begin);
        tuple->items.push_back(std::move(first));
        while (accept(",") && !is("in")) {
            tuple->items.push_back(target());
        }
        first = finish(std::move(tuple));
    }
    checkTarget(*first);
    return first;
}

std::vector<PyClause> PyExpressionRules::clauses() {
    std::vector<PyClause> made;
    while (startsComprehension()) {
        accept("async");
        take();
        PyClause clause;
        clause.target = targetList();
        expect("in", "of a comprehension");
        clause.iterable = disjunction();
        while (accept("if")) {
            clause.conditions.push_back(is("lambda") ? lambda() : disjunction());
        }
        made.push_back(std::move(clause));
    }
    return made;
}

} // namespace vitrine::engine
