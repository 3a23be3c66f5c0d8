// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/patterns.h"

#include <algorithm>

namespace vitrine::engine {

bool PyPatterns::matches(const PyPattern& pattern, PyValue subject, Bound& names) {
    services_.evaluation.step();
    switch (pattern.kind) {
    case PyPattern::Kind::Value:
        return services_.convert.truth(
            services_.operators.operate(PyOperator::Eq, subject, expressions_.evaluate(*pattern.value)));
    case PyPattern::Kind::Is: {
        const PyValue value = expressions_.evaluate(*pattern.value);
        return subject.kind() == value.kind() && (subject.isNone() || services_.operators.equal(subject, value));
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

bool PyPatterns::matchesSequence(const PyPattern& pattern, PyValue subject, Bound& names) {
    const auto* const sequence = subject.as<PySequence>();
    if (sequence == nullptr || sequence->kind == PyKind::Set) {
        return false;
    }
    const std::size_t count = pattern.items.size();
    const auto isStar = [](const PyPattern& item) { return item.kind == PyPattern::Kind::Star; };
    const auto star = static_cast<std::size_t>(std::find_if(pattern.items.begin(), pattern.items.end(), isStar) -
                                               pattern.items.begin());
    const std::vector<PyValue> items = sequence->items; // patterns evaluate names, which might change it
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
            names.emplace_back(pattern.items[i].name,
                               services_.heap.list({begin, begin + static_cast<std::ptrdiff_t>(extra)}));
        }
        from += extra;
    }
    return true;
}

} // namespace vitrine::engine
