// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/targets.h"

#include <fmt/format.h>

namespace vitrine::engine {

void PyTargets::assignAugmented(const PyStmt& statement) {
    const PyExpr& target = *statement.exprs[0];
    const PyValue before = expressions_.evaluate(target);
    const PyValue value = expressions_.evaluate(*statement.exprs[1]);
    services_.evaluation.place(target);
    auto* const tensor = before.as<PyTensor>();
    auto* const list = before.as<PySequence>();
    if (list != nullptr && list->kind == PyKind::List && statement.op == PyOperator::Add) {
        const std::vector<PyValue> more = services_.containers.iterate(value);
        services_.heap.charge(static_cast<std::int64_t>(more.size()));
        list->items.insert(list->items.end(), more.begin(), more.end());
        return;
    }
    const PyValue after = services_.operators.operate(statement.op, before, value);
    const auto* const result = after.as<PyTensor>();
    if (tensor != nullptr && result != nullptr && tensor->storage &&
        (!services_.evaluation.inProgram || tensor->literal)) {
        assignTensor(*tensor, {result, {}}); // in place: other views see it
        if (target.kind != PyExprKind::Subscript) {
            return;
        }
    }
    assign(target, after);
}

void PyTargets::assign(const PyExpr& target, PyValue value) {
    switch (target.kind) {
    case PyExprKind::Name:
        names_.bind(target.name, value, *services_.evaluation.scope);
        return;
    case PyExprKind::Tuple:
    case PyExprKind::List:
        unpack(target, value);
        return;
    case PyExprKind::Subscript: {
        const PyValue object = expressions_.evaluate(*target.items[0]);
        if (target.items.size() < 2) {
            fail("an empty subscript cannot be assigned to");
        }
        services_.containers.assignItem(object, expressions_.evaluate(*target.items[1]), value);
        return;
    }
    case PyExprKind::Attribute: {
        const PyValue object = expressions_.evaluate(*target.items[0]);
        if (auto* const instance = object.as<PyInstance>()) {
            const auto member =
                instance->type != nullptr ? services_.classes.declared(*instance->type, target.name) : std::nullopt;
            if (const auto* const property = member ? member->as<PyFunction>() : nullptr;
                property != nullptr && property->setter != nullptr) {
                services_.caller.call(services_.classes.boundMember(property->setter, object), {value});
                return;
            }
            if (auto* const tensor = value.as<PyTensor>(); tensor != nullptr && tensor->name.empty()) {
                tensor->name = std::string(target.name);
            }
            instance->attributes[std::string(target.name)] = value;
        } else if (auto* const type = object.as<PyClass>()) {
            type->scope->names[target.name] = value;
        }
        // Names of functions and settings of modules mean nothing to programs.
        return;
    }
    default:
        fail("this cannot be assigned to");
    }
}

void PyTargets::unpack(const PyExpr& target, PyValue value) {
    const std::vector<PyValue> items = services_.containers.iterate(value);
    const std::size_t count = target.items.size();
    std::size_t star = count;
    for (std::size_t i = 0; i < count; ++i) {
        star = target.items[i]->kind == PyExprKind::Starred ? i : star;
    }
    if (star == count ? items.size() != count : items.size() + 1 < count) {
        fail(fmt::format("{} values for {} names", items.size(), count));
    }
    const std::size_t extra = star == count ? 0 : items.size() + 1 - count;
    for (std::size_t i = 0, from = 0; i < count; ++i) {
        if (i != star) {
            assign(*target.items[i], items[from++]);
            continue;
        }
        const auto begin = items.begin() + static_cast<std::ptrdiff_t>(from);
        assign(*target.items[i]->items[0], services_.heap.list({begin, begin + static_cast<std::ptrdiff_t>(extra)}));
        from += extra;
    }
}

} // namespace vitrine::engine
