// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "match" over constants.
#include <algorithm>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

ModEvaluator::Flow ModEvaluator::executeMatch(const PyStmt& statement) {
    const ModValue subject = evaluate(*statement.exprs[0]);
    for (std::size_t i = 0; i < statement.patterns.size(); ++i) {
        Bound names;
        range_ = statement.patterns[i].range;
        try {
            if (!matches(statement.patterns[i], subject, names)) {
                continue;
            }
        } catch (const ModError&) {
            throw;
        } catch (const base::BadInput& error) {
            throw located(error, statement.patterns[i].range);
        }
        for (const auto& [name, value] : names) {
            bind(name, value, *scope_);
        }
        const PyExpr* const guard = statement.exprs[i + 1].get();
        if (guard == nullptr || truth(evaluate(*guard))) {
            return execute(statement.blocks[i]);
        }
    }
    return Flow::Next;
}

bool ModEvaluator::matches(const PyPattern& pattern, ModValue subject, Bound& names) {
    step();
    switch (pattern.kind) {
    case PyPattern::Kind::Value:
        return truth(operate(PyOperator::Eq, subject, evaluate(*pattern.value)));
    case PyPattern::Kind::Is: {
        const ModValue value = evaluate(*pattern.value);
        return subject.kind() == value.kind() && (subject.isNone() || equal(subject, value));
    }
    case PyPattern::Kind::Capture:
        if (pattern.name != "_") {
            names.emplace_back(pattern.name, subject);
        }
        return true;
    case PyPattern::Kind::Named:
        names.emplace_back(pattern.name, subject);
        return matches(pattern.items[0], subject, names);
    case PyPattern::Kind::Alternatives:
        return std::any_of(pattern.items.begin(), pattern.items.end(),
                           [&](const PyPattern& item) { return matches(item, subject, names); });
    case PyPattern::Kind::Sequence:
        return matchesSequence(pattern, subject, names);
    default:
        fail("patterns of classes and dicts are not supported; use literals, names, sequences and guards, or if and "
             "elif");
    }
}

bool ModEvaluator::matchesSequence(const PyPattern& pattern, ModValue subject, Bound& names) {
    const auto* const sequence = subject.as<ModSequence>();
    if (sequence == nullptr || sequence->kind == ModKind::Set) {
        return false;
    }
    const std::size_t count = pattern.items.size();
    const auto isStar = [](const PyPattern& item) { return item.kind == PyPattern::Kind::Star; };
    const auto star = static_cast<std::size_t>(std::find_if(pattern.items.begin(), pattern.items.end(), isStar) -
                                               pattern.items.begin());
    const std::vector<ModValue> items = sequence->items; // patterns evaluate names, which might change it
    if (star == count ? items.size() != count : items.size() + 1 < count) {
        return false;
    }
    const std::size_t extra = star == count ? 0 : items.size() + 1 - count;
    for (std::size_t i = 0, from = 0; i < count; ++i) {
        if (i != star) {
            if (!matches(pattern.items[i], items[from++], names)) {
                return false;
            }
            continue;
        }
        const auto begin = items.begin() + static_cast<std::ptrdiff_t>(from);
        if (pattern.items[i].name != "_") {
            names.emplace_back(pattern.items[i].name, heap_.list({begin, begin + static_cast<std::ptrdiff_t>(extra)}));
        }
        from += extra;
    }
    return true;
}

} // namespace vitrine::engine
