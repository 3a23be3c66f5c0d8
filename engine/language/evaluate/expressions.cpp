// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/expressions.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/language/evaluate/definitions.h"
#include "engine/language/evaluate/targets.h"

namespace vitrine::engine {

using kernels::ProgramOp;
using kernels::ProgramType;

PyValue PyExpressions::evaluate(const PyExpr& expr) {
    const EvaluationDepth depth(services_.evaluation);
    try {
        services_.evaluation.step();
        return evaluatePlaced(expr);
    } catch (const PyError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw services_.evaluation.located(error, expr.range);
    }
}

PyValue PyExpressions::evaluateUnneeded(const PyExpr& expr) {
    try {
        return evaluate(expr);
    } catch (const PyError& error) {
        if (PyPoison* const poisoned = skips_.unneeded(expr, error)) {
            return poisoned;
        }
        throw;
    }
}

PyValue PyExpressions::evaluatePlaced(const PyExpr& expr) {
    switch (expr.kind) {
    case PyExprKind::FString:
        return evaluateFormatted(expr);
    case PyExprKind::Name:
        return names_.lookUp(expr.name);
    case PyExprKind::Tuple:
    case PyExprKind::List:
    case PyExprKind::Set:
        return evaluateDisplay(expr);
    case PyExprKind::Dict:
        return evaluateDict(expr);
    case PyExprKind::Attribute: {
        const PyValue object = evaluate(*expr.items[0]);
        services_.evaluation.place(expr);
        return services_.attributes.attribute(object, expr.name);
    }
    case PyExprKind::Subscript: {
        const PyValue object = evaluate(*expr.items[0]);
        if (expr.items.size() < 2) {
            fail("an empty subscript can stand in annotations only");
        }
        const PyValue at = evaluate(*expr.items[1]);
        services_.evaluation.place(expr);
        return services_.containers.index(object, at);
    }
    case PyExprKind::Slice: {
        auto* const made = services_.heap.make<PySlice>();
        PyValue* const parts[] = {&made->start, &made->stop, &made->step};
        for (std::size_t i = 0; i < 3; ++i) {
            *parts[i] = expr.items[i] ? evaluate(*expr.items[i]) : PyValue();
        }
        return made;
    }
    case PyExprKind::Call:
        return evaluateCall(expr);
    case PyExprKind::Unary:
        return evaluateUnary(expr);
    case PyExprKind::Not: {
        const PyValue value = evaluate(*expr.items[0]);
        services_.evaluation.place(expr);
        return services_.elements.logicalNot(value);
    }
    case PyExprKind::Binary: {
        const PyValue left = evaluate(*expr.items[0]);
        const PyValue right = evaluate(*expr.items[1]);
        services_.evaluation.place(expr);
        return services_.operators.operate(expr.op, left, right);
    }
    case PyExprKind::Compare:
        return evaluateCompare(expr);
    case PyExprKind::And:
    case PyExprKind::Or:
        return evaluateLogic(expr);
    case PyExprKind::Conditional:
        return evaluateConditional(expr);
    case PyExprKind::Lambda:
        return definitions_.makeFunction(*expr.extra->lambda);
    case PyExprKind::ListComprehension:
    case PyExprKind::SetComprehension:
    case PyExprKind::DictComprehension:
    case PyExprKind::Generator:
        return evaluateComprehension(expr);
    case PyExprKind::Walrus: {
        const PyValue value = evaluate(*expr.items[0]);
        names_.bind(expr.name, value, *services_.evaluation.scope);
        return value;
    }
    default:
        return evaluateLiteral(expr);
    }
}

PyValue PyExpressions::evaluateLiteral(const PyExpr& expr) {
    switch (expr.kind) {
    case PyExprKind::None:
        return {};
    case PyExprKind::True:
    case PyExprKind::False:
        return PyValue::boolean(expr.kind == PyExprKind::True);
    case PyExprKind::Ellipsis:
        return PyValue::ellipsis();
    case PyExprKind::Integer:
        return PyValue::integer(expr.integer);
    case PyExprKind::HugeInteger:
        fail("integers have 64 bits here; this one has more");
    case PyExprKind::Float:
        return PyValue::real(expr.real);
    case PyExprKind::String:
        return services_.heap.string(expr.extra->text);
    case PyExprKind::Imaginary:
        fail("complex numbers are not supported");
    case PyExprKind::Bytes:
        fail("bytes are not supported");
    case PyExprKind::Starred:
        fail("a starred value can stand in calls, lists and tuples only");
    default:
        fail("await and yield are not supported in programs");
    }
}

PyValue PyExpressions::evaluateUnary(const PyExpr& expr) {
    const PyValue value = evaluate(*expr.items[0]);
    services_.evaluation.place(expr);
    const std::string_view own = expr.op == PyOperator::Plus    ? "__pos__"
                                 : expr.op == PyOperator::Minus ? "__neg__"
                                                                : "__invert__";
    if (const auto made = services_.classes.special(value, own, {})) {
        return *made;
    }
    if (expr.op == PyOperator::Plus) {
        return services_.operators.operate(PyOperator::Add, PyValue::integer(0), value);
    }
    if (expr.op == PyOperator::Minus && value.kind() == PyValue::Kind::Int) {
        return services_.operators.operate(PyOperator::Sub, PyValue::integer(0), value); // with a check for overflow
    }
    return services_.elements.unary(expr.op == PyOperator::Minus ? ProgramOp::Neg : ProgramOp::Not, value);
}

PyValue PyExpressions::evaluateDisplay(const PyExpr& expr) {
    std::vector<PyValue> items;
    items.reserve(expr.items.size());
    for (const PyExprPtr& item : expr.items) {
        if (item->kind == PyExprKind::Starred) {
            const std::vector<PyValue> more = services_.containers.iterate(evaluate(*item->items[0]));
            items.insert(items.end(), more.begin(), more.end());
        } else {
            items.push_back(evaluate(*item));
        }
    }
    if (expr.kind == PyExprKind::Tuple) {
        return services_.heap.tuple(std::move(items));
    }
    if (expr.kind == PyExprKind::List) {
        return services_.heap.list(std::move(items));
    }
    auto* const made = services_.heap.make<PySequence>(PyKind::Set);
    for (const PyValue item : items) {
        const bool known = std::any_of(made->items.begin(), made->items.end(), [&](PyValue other) {
            services_.evaluation.step();
            return services_.operators.equal(item, other);
        });
        if (!known) {
            made->items.push_back(item);
        }
    }
    services_.heap.charge(static_cast<std::int64_t>(made->items.size()));
    return made;
}

PyValue PyExpressions::evaluateDict(const PyExpr& expr) {
    auto* const made = services_.heap.make<PyDict>();
    for (std::size_t i = 0; i < expr.items.size(); i += 2) {
        if (expr.items[i]) {
            const PyValue key = evaluate(*expr.items[i]);
            services_.containers.assignItem(made, key, evaluate(*expr.items[i + 1]));
            continue;
        }
        const PyValue other = evaluate(*expr.items[i + 1]);
        const auto* const dict = other.as<PyDict>();
        if (dict == nullptr) {
            fail(fmt::format("** needs a dict, not {}", pyTypeName(other)));
        }
        for (const auto& [key, value] : dict->entries) {
            services_.containers.assignItem(made, key, value);
        }
    }
    return made;
}

PyValue PyExpressions::evaluateCall(const PyExpr& expr) {
    const PyValue callee = evaluate(*expr.items[0]);
    PyCall made;
    const auto* const builtin = callee.as<PyBuiltin>();
    const bool onlyMask = builtin != nullptr && builtin->entry->name == "create_block_mask";
    for (std::size_t i = 1; i < expr.items.size(); ++i) {
        const std::string_view keyword = expr.extra->keywords[i - 1];
        if (onlyMask && keyword != "mask_mod" && (i > 1 || !keyword.empty())) {
            continue; // sizes, which a program does not need
        }
        const bool device = builtin != nullptr && keyword == "device"; // which changes nothing
        const PyValue value = device ? evaluateUnneeded(*expr.items[i]) : evaluate(*expr.items[i]);
        if (keyword.empty()) {
            made.arguments.push_back(value);
        } else if (keyword == "*") {
            const std::vector<PyValue> more = services_.containers.iterate(value);
            made.arguments.insert(made.arguments.end(), more.begin(), more.end());
        } else if (keyword == "**") {
            const auto* const dict = value.as<PyDict>();
            if (dict == nullptr) {
                fail(fmt::format("** needs a dict, not {}", pyTypeName(value)));
            }
            for (const auto& [key, entry] : dict->entries) {
                const auto* const name = key.as<PyString>();
                made.keywords.emplace_back(name != nullptr ? std::string_view(name->text) : "", entry);
            }
        } else {
            made.keywords.emplace_back(keyword, value);
        }
    }
    services_.evaluation.place(expr);
    return services_.caller.call(callee, made);
}

PyValue PyExpressions::evaluateCompare(const PyExpr& expr) {
    PyValue left = evaluate(*expr.items[0]);
    PyValue result = PyValue::boolean(true);
    const std::vector<PyOperator>& operators = expr.extra->operators;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const PyValue right = evaluate(*expr.items[i + 1]);
        services_.evaluation.place(expr);
        PyValue each;
        const PyOperator op = operators[i];
        if (op == PyOperator::Is || op == PyOperator::IsNot) {
            const bool same = left.kind() == right.kind() && (left.isNone() || services_.operators.equal(left, right));
            each = PyValue::boolean(same == (op == PyOperator::Is));
        } else if (op == PyOperator::In || op == PyOperator::NotIn) {
            each = services_.operators.contains(right, left);
            each = op == PyOperator::In ? each : services_.elements.logicalNot(each);
        } else {
            each = services_.operators.operate(op, left, right);
        }
        // a < b < c is (a < b) and (b < c), of symbols &.
        if (operators.size() == 1) {
            return each;
        }
        const bool known = result.kind() == PyValue::Kind::Bool && each.kind() == PyValue::Kind::Bool;
        result = known ? PyValue::boolean(result.integer() != 0 && each.integer() != 0)
                       : services_.elements.binary(ProgramOp::And, result, each);
        left = right;
    }
    return result;
}

// Of constants as in Python; with a symbol, "and" means & and "or" means |.
PyValue PyExpressions::evaluateLogic(const PyExpr& expr) {
    const bool isAnd = expr.kind == PyExprKind::And;
    PyValue result = evaluate(*expr.items[0]);
    for (std::size_t i = 1; i < expr.items.size(); ++i) {
        const bool symbolic = result.isSymbol() && !services_.builder.real(result.node());
        if (!symbolic && services_.convert.truth(result) != isAnd) {
            return result;
        }
        const PyValue next = evaluate(*expr.items[i]);
        services_.evaluation.place(expr);
        if (!symbolic) {
            result = next;
            continue;
        }
        if (!next.isSymbol() && !next.isNumber() && !isTensorLike(next)) {
            fail(fmt::format("'{}' of a value that is known only for each element and {}", isAnd ? "and" : "or",
                             pyTypeName(next)));
        }
        const NodeIndex left = services_.builder.cast(ProgramType::Bool, services_.symbols.node(result));
        const NodeIndex right = services_.builder.cast(ProgramType::Bool, services_.symbols.node(next));
        result = PyValue::symbol(services_.builder.binary(isAnd ? ProgramOp::And : ProgramOp::Or, left, right));
    }
    return result;
}

PyValue PyExpressions::evaluateConditional(const PyExpr& expr) {
    const PyValue condition = evaluate(*expr.items[0]);
    if (!condition.isSymbol() || services_.builder.real(condition.node())) {
        return evaluate(*expr.items[services_.convert.truth(condition) ? 1 : 2]);
    }
    const PyValue yes = evaluate(*expr.items[1]);
    const PyValue no = evaluate(*expr.items[2]);
    services_.evaluation.place(expr);
    return services_.elements.select(condition, yes, no);
}

PyValue PyExpressions::evaluateFormatted(const PyExpr& expr) {
    std::string text;
    for (const PyExprPtr& item : expr.items) {
        text += item->kind == PyExprKind::String ? item->extra->text : pyText(evaluate(*item->items[0]));
    }
    return services_.heap.string(std::move(text));
}

void PyExpressions::comprehend(const PyExpr& expr, std::size_t clause, const std::function<void()>& body) {
    if (clause == expr.extra->clauses.size()) {
        body();
        return;
    }
    const EvaluationDepth depth(services_.evaluation);
    const PyClause& each = expr.extra->clauses[clause];
    for (const PyValue item : services_.containers.iterate(evaluate(*each.iterable))) {
        services_.evaluation.step();
        targets_.assign(*each.target, item);
        const bool taken =
            std::all_of(each.conditions.begin(), each.conditions.end(),
                        [this](const PyExprPtr& condition) { return services_.convert.truth(evaluate(*condition)); });
        if (taken) {
            comprehend(expr, clause + 1, body);
        }
    }
}

PyValue PyExpressions::evaluateComprehension(const PyExpr& expr) {
    const PlaceGuard inside(services_.evaluation, services_.evaluation.text,
                            services_.heap.scope(services_.evaluation.scope));
    if (expr.kind == PyExprKind::DictComprehension) {
        auto* const made = services_.heap.make<PyDict>();
        comprehend(expr, 0, [&] {
            const PyValue key = evaluate(*expr.items[0]);
            services_.containers.assignItem(made, key, evaluate(*expr.items[1]));
        });
        return made;
    }
    // A generator is a list here: no program can see the difference.
    auto* const made =
        services_.heap.make<PySequence>(expr.kind == PyExprKind::SetComprehension ? PyKind::Set : PyKind::List);
    comprehend(expr, 0, [&] {
        const PyValue item = evaluate(*expr.items[0]);
        const bool known = made->kind == PyKind::Set && services_.operators.contains(made, item).integer() != 0;
        if (!known) {
            services_.heap.charge(1);
            made->items.push_back(item);
        }
    });
    return made;
}

} // namespace vitrine::engine
