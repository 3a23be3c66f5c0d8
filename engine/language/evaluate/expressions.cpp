// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"
#include "engine/language/evaluate/scope.h"
#include "engine/language/python/lexer.h"

namespace vitrine::engine {

using kernels::ProgramOp;
using kernels::ProgramType;

// Nodes made from here on come from this expression.
void ModEvaluator::place(const PyExpr& expr) {
    range_ = expr.range;
    auto found = sources_.find(text_);
    if (found == sources_.end()) {
        found = sources_.emplace(text_, builder_.addSource(text_->file.text)).first;
    }
    builder_.setSpan(
        {found->second, static_cast<std::int32_t>(expr.range.begin), static_cast<std::int32_t>(expr.range.end)});
}

ModValue ModEvaluator::evaluate(const PyExpr& expr) {
    const Depth depth(*this);
    try {
        step();
        return evaluatePlaced(expr);
    } catch (const ModError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw located(error, expr.range);
    }
}

ModValue ModEvaluator::evaluateIn(const ModText& text, const PyExpr& expr, ModScope& scope) {
    const Inside inside(*this, &text, &scope);
    return evaluate(expr);
}

ModValue ModEvaluator::evaluatePlaced(const PyExpr& expr) {
    switch (expr.kind) {
    case PyExprKind::FString:
        return evaluateFormatted(expr);
    case PyExprKind::Name:
        return lookUp(expr.name);
    case PyExprKind::Tuple:
    case PyExprKind::List:
    case PyExprKind::Set:
        return evaluateDisplay(expr);
    case PyExprKind::Dict:
        return evaluateDict(expr);
    case PyExprKind::Attribute: {
        const ModValue object = evaluate(*expr.items[0]);
        place(expr);
        return attribute(object, expr.name);
    }
    case PyExprKind::Subscript: {
        const ModValue object = evaluate(*expr.items[0]);
        if (expr.items.size() < 2) {
            fail("an empty subscript can stand in annotations only");
        }
        const ModValue at = evaluate(*expr.items[1]);
        place(expr);
        return index(object, at);
    }
    case PyExprKind::Slice: {
        auto* const made = heap_.make<ModSlice>();
        ModValue* const parts[] = {&made->start, &made->stop, &made->step};
        for (std::size_t i = 0; i < 3; ++i) {
            *parts[i] = expr.items[i] ? evaluate(*expr.items[i]) : ModValue();
        }
        return made;
    }
    case PyExprKind::Call:
        return evaluateCall(expr);
    case PyExprKind::Unary:
        return evaluateUnary(expr);
    case PyExprKind::Not: {
        const ModValue value = evaluate(*expr.items[0]);
        place(expr);
        return logicalNot(value);
    }
    case PyExprKind::Binary: {
        const ModValue left = evaluate(*expr.items[0]);
        const ModValue right = evaluate(*expr.items[1]);
        place(expr);
        return operate(expr.op, left, right);
    }
    case PyExprKind::Compare:
        return evaluateCompare(expr);
    case PyExprKind::And:
    case PyExprKind::Or:
        return evaluateLogic(expr);
    case PyExprKind::Conditional:
        return evaluateConditional(expr);
    case PyExprKind::Lambda:
        return makeFunction(*expr.extra->lambda);
    case PyExprKind::ListComprehension:
    case PyExprKind::SetComprehension:
    case PyExprKind::DictComprehension:
    case PyExprKind::Generator:
        return evaluateComprehension(expr);
    case PyExprKind::Walrus: {
        const ModValue value = evaluate(*expr.items[0]);
        bind(expr.name, value, *scope_);
        return value;
    }
    default:
        return evaluateLiteral(expr);
    }
}

ModValue ModEvaluator::evaluateLiteral(const PyExpr& expr) {
    switch (expr.kind) {
    case PyExprKind::None:
        return {};
    case PyExprKind::True:
    case PyExprKind::False:
        return ModValue::boolean(expr.kind == PyExprKind::True);
    case PyExprKind::Ellipsis:
        return ModValue::ellipsis();
    case PyExprKind::Integer:
        return ModValue::integer(expr.integer);
    case PyExprKind::HugeInteger:
        fail("integers have 64 bits here; this one has more");
    case PyExprKind::Float:
        return ModValue::real(expr.real);
    case PyExprKind::String:
        return heap_.string(expr.extra->text);
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

ModValue ModEvaluator::evaluateUnary(const PyExpr& expr) {
    const ModValue value = evaluate(*expr.items[0]);
    place(expr);
    const std::string_view own = expr.op == PyOperator::Plus    ? "__pos__"
                                 : expr.op == PyOperator::Minus ? "__neg__"
                                                                : "__invert__";
    if (const auto made = special(value, own, {})) {
        return *made;
    }
    if (expr.op == PyOperator::Plus) {
        return operate(PyOperator::Add, ModValue::integer(0), value);
    }
    if (expr.op == PyOperator::Minus && value.kind() == ModValue::Kind::Int) {
        return operate(PyOperator::Sub, ModValue::integer(0), value); // with a check for overflow
    }
    return unary(expr.op == PyOperator::Minus ? ProgramOp::Neg : ProgramOp::Not, value);
}

ModValue ModEvaluator::evaluateDisplay(const PyExpr& expr) {
    std::vector<ModValue> items;
    items.reserve(expr.items.size());
    for (const PyExprPtr& item : expr.items) {
        if (item->kind == PyExprKind::Starred) {
            const std::vector<ModValue> more = iterate(evaluate(*item->items[0]));
            items.insert(items.end(), more.begin(), more.end());
        } else {
            items.push_back(evaluate(*item));
        }
    }
    if (expr.kind == PyExprKind::Tuple) {
        return heap_.tuple(std::move(items));
    }
    if (expr.kind == PyExprKind::List) {
        return heap_.list(std::move(items));
    }
    auto* const made = heap_.make<ModSequence>(ModKind::Set);
    for (const ModValue item : items) {
        const bool known = std::any_of(made->items.begin(), made->items.end(), [&](ModValue other) {
            step();
            return equal(item, other);
        });
        if (!known) {
            made->items.push_back(item);
        }
    }
    heap_.charge(static_cast<std::int64_t>(made->items.size()));
    return made;
}

ModValue ModEvaluator::evaluateDict(const PyExpr& expr) {
    auto* const made = heap_.make<ModDict>();
    for (std::size_t i = 0; i < expr.items.size(); i += 2) {
        if (expr.items[i]) {
            const ModValue key = evaluate(*expr.items[i]);
            assignItem(made, key, evaluate(*expr.items[i + 1]));
            continue;
        }
        const ModValue other = evaluate(*expr.items[i + 1]);
        const auto* const dict = other.as<ModDict>();
        if (dict == nullptr) {
            fail(fmt::format("** needs a dict, not {}", modTypeName(other)));
        }
        for (const auto& [key, value] : dict->entries) {
            assignItem(made, key, value);
        }
    }
    return made;
}

ModValue ModEvaluator::evaluateCall(const PyExpr& expr) {
    const ModValue callee = evaluate(*expr.items[0]);
    ModCall made;
    const auto* const builtin = callee.as<ModBuiltin>();
    const bool onlyMask = builtin != nullptr && builtin->entry->name == "create_block_mask";
    for (std::size_t i = 1; i < expr.items.size(); ++i) {
        const std::string_view keyword = expr.extra->keywords[i - 1];
        if (onlyMask && keyword != "mask_mod" && (i > 1 || !keyword.empty())) {
            continue; // sizes, which a program does not need
        }
        const ModValue value = evaluate(*expr.items[i]);
        if (keyword.empty()) {
            made.arguments.push_back(value);
        } else if (keyword == "*") {
            const std::vector<ModValue> more = iterate(value);
            made.arguments.insert(made.arguments.end(), more.begin(), more.end());
        } else if (keyword == "**") {
            const auto* const dict = value.as<ModDict>();
            if (dict == nullptr) {
                fail(fmt::format("** needs a dict, not {}", modTypeName(value)));
            }
            for (const auto& [key, entry] : dict->entries) {
                const auto* const name = key.as<ModString>();
                made.keywords.emplace_back(name != nullptr ? std::string_view(name->text) : "", entry);
            }
        } else {
            made.keywords.emplace_back(keyword, value);
        }
    }
    place(expr);
    return call(callee, made);
}

ModValue ModEvaluator::evaluateCompare(const PyExpr& expr) {
    ModValue left = evaluate(*expr.items[0]);
    ModValue result = ModValue::boolean(true);
    const std::vector<PyOperator>& operators = expr.extra->operators;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const ModValue right = evaluate(*expr.items[i + 1]);
        place(expr);
        ModValue each;
        const PyOperator op = operators[i];
        if (op == PyOperator::Is || op == PyOperator::IsNot) {
            const bool same = left.kind() == right.kind() && (left.isNone() || equal(left, right));
            each = ModValue::boolean(same == (op == PyOperator::Is));
        } else if (op == PyOperator::In || op == PyOperator::NotIn) {
            each = contains(right, left);
            each = op == PyOperator::In ? each : logicalNot(each);
        } else {
            each = operate(op, left, right);
        }
        // a < b < c is (a < b) and (b < c), of symbols &.
        if (operators.size() == 1) {
            return each;
        }
        const bool known = result.kind() == ModValue::Kind::Bool && each.kind() == ModValue::Kind::Bool;
        result = known ? ModValue::boolean(result.integer() != 0 && each.integer() != 0)
                       : binary(ProgramOp::And, result, each);
        left = right;
    }
    return result;
}

ModValue ModEvaluator::contains(ModValue container, ModValue item) {
    if (const auto* const string = container.as<ModString>()) {
        return ModValue::boolean(string->text.find(text(item, "what is searched in a string")) != std::string::npos);
    }
    if (const auto made = special(container, "__contains__", {item})) {
        return *made;
    }
    const auto* const dict = container.as<ModDict>();
    std::vector<ModValue> items;
    if (dict != nullptr) {
        for (const auto& [key, value] : dict->entries) {
            items.push_back(key);
        }
    } else {
        items = iterate(container);
    }
    const bool symbolic = isTensorLike(item);
    ModValue result = ModValue::boolean(false);
    for (const ModValue other : items) {
        step();
        if (symbolic || isTensorLike(other)) {
            result = binary(ProgramOp::Or, result, binary(ProgramOp::Eq, item, other));
        } else if (equal(item, other)) {
            return ModValue::boolean(true);
        }
    }
    return result;
}

// Of constants as in Python; with a symbol, "and" means & and "or" means |.
ModValue ModEvaluator::evaluateLogic(const PyExpr& expr) {
    const bool isAnd = expr.kind == PyExprKind::And;
    ModValue result = evaluate(*expr.items[0]);
    for (std::size_t i = 1; i < expr.items.size(); ++i) {
        const bool symbolic = result.isSymbol() && !builder_.real(result.node());
        if (!symbolic && truth(result) != isAnd) {
            return result;
        }
        const ModValue next = evaluate(*expr.items[i]);
        place(expr);
        if (!symbolic) {
            result = next;
            continue;
        }
        if (!next.isSymbol() && !next.isNumber() && !isTensorLike(next)) {
            fail(fmt::format("'{}' of a value that is known only for each element and {}", isAnd ? "and" : "or",
                             modTypeName(next)));
        }
        const ModNode left = builder_.cast(ProgramType::Bool, node(result));
        const ModNode right = builder_.cast(ProgramType::Bool, node(next));
        result = ModValue::symbol(builder_.binary(isAnd ? ProgramOp::And : ProgramOp::Or, left, right));
    }
    return result;
}

ModValue ModEvaluator::evaluateConditional(const PyExpr& expr) {
    const ModValue condition = evaluate(*expr.items[0]);
    if (!condition.isSymbol() || builder_.real(condition.node())) {
        return evaluate(*expr.items[truth(condition) ? 1 : 2]);
    }
    const ModValue yes = evaluate(*expr.items[1]);
    const ModValue no = evaluate(*expr.items[2]);
    place(expr);
    return select(condition, yes, no);
}

ModValue ModEvaluator::evaluateFormatted(const PyExpr& expr) {
    std::string text;
    for (const PyExprPtr& item : expr.items) {
        text += item->kind == PyExprKind::String ? item->extra->text : modText(evaluate(*item->items[0]));
    }
    return heap_.string(std::move(text));
}

void ModEvaluator::comprehend(const PyExpr& expr, std::size_t clause, const std::function<void()>& body) {
    if (clause == expr.extra->clauses.size()) {
        body();
        return;
    }
    const Depth depth(*this);
    const PyClause& each = expr.extra->clauses[clause];
    for (const ModValue item : iterate(evaluate(*each.iterable))) {
        step();
        assign(*each.target, item);
        const bool taken = std::all_of(each.conditions.begin(), each.conditions.end(),
                                       [this](const PyExprPtr& condition) { return truth(evaluate(*condition)); });
        if (taken) {
            comprehend(expr, clause + 1, body);
        }
    }
}

ModValue ModEvaluator::evaluateComprehension(const PyExpr& expr) {
    const Inside inside(*this, text_, heap_.scope(scope_));
    if (expr.kind == PyExprKind::DictComprehension) {
        auto* const made = heap_.make<ModDict>();
        comprehend(expr, 0, [&] {
            const ModValue key = evaluate(*expr.items[0]);
            assignItem(made, key, evaluate(*expr.items[1]));
        });
        return made;
    }
    // A generator is a list here: nothing can tell.
    auto* const made =
        heap_.make<ModSequence>(expr.kind == PyExprKind::SetComprehension ? ModKind::Set : ModKind::List);
    comprehend(expr, 0, [&] {
        const ModValue item = evaluate(*expr.items[0]);
        const bool known = made->kind == ModKind::Set && contains(made, item).integer() != 0;
        if (!known) {
            heap_.charge(1);
            made->items.push_back(item);
        }
    });
    return made;
}

std::vector<ModValue> ModEvaluator::iterate(ModValue value) {
    if (const auto* const items = value.as<ModSequence>()) {
        return items->items;
    }
    std::vector<ModValue> made;
    if (const auto* const range = value.as<ModRange>()) {
        steps(range->count);
        for (std::int64_t i = 0; i < range->count; ++i) {
            made.push_back(ModValue::integer(range->start + i * range->step));
        }
        return made;
    }
    if (const auto* const dict = value.as<ModDict>()) {
        for (const auto& [key, entry] : dict->entries) {
            made.push_back(key);
        }
        return made;
    }
    if (const auto* const string = value.as<ModString>()) {
        steps(static_cast<std::int64_t>(string->text.size()));
        for (const char c : string->text) {
            made.emplace_back(heap_.string(std::string(1, c)));
        }
        return made;
    }
    if (value.as<ModTensor>() != nullptr || value.as<ModRow>() != nullptr || value.as<ModArray>() != nullptr) {
        const ModDims dims = dimsOf(value);
        if (dims.empty()) {
            fail("a tensor without dimensions cannot be iterated");
        }
        steps(dims[0]);
        for (std::int64_t i = 0; i < dims[0]; ++i) {
            made.push_back(index(value, ModValue::integer(i)));
        }
        return made;
    }
    if (value.isSymbol()) {
        fail("a value that is known only for each element cannot be iterated or counted by; use constants, and "
             "torch.where");
    }
    if (const auto* const object = value.as<ModInstance>();
        object != nullptr && object->type != nullptr && object->type->isData) {
        for (const std::string_view field : fieldsOf(*object->type, 0)) {
            made.push_back(attribute(value, field));
        }
        return made;
    }
    fail(fmt::format("{} cannot be iterated", modTypeName(value)));
}

} // namespace vitrine::engine
