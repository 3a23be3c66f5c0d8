// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// itertools and operator.
#include <fmt/format.h>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

PyValue accumulate(E& e, C& c) {
    std::vector<PyValue> made;
    for (const PyValue item : e.containers.iterate(c.required(0, "iterable"))) {
        made.push_back(made.empty() ? item : e.operators.operate(PyOperator::Add, made.back(), item));
    }
    const auto initial = c.keyword("initial");
    c.finish();
    if (initial) {
        for (PyValue& item : made) {
            item = e.operators.operate(PyOperator::Add, item, *initial);
        }
        made.insert(made.begin(), *initial);
    }
    return e.heap.list(std::move(made));
}

PyValue chain(E& e, C& c) {
    std::vector<PyValue> made;
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        const std::vector<PyValue> items = e.containers.iterate(c.required(i, ""));
        e.heap.charge(static_cast<std::int64_t>(items.size()));
        made.insert(made.end(), items.begin(), items.end());
    }
    c.finish();
    return e.heap.list(std::move(made));
}

PyValue chainOf(E& e, C& c) {
    C inner;
    inner.arguments = e.containers.iterate(c.required(0, "iterable"));
    c.finish();
    return chain(e, inner);
}

PyValue repeat(E& e, C& c) {
    const PyValue item = c.required(0, "object");
    const std::int64_t times = e.convert.integer(c.required(1, "times"), "the number of repetitions");
    c.finish();
    const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(times, 0, kMaxElements + 1));
    e.heap.charge(static_cast<std::int64_t>(count));
    return e.heap.list(std::vector<PyValue>(count, item));
}

/// All tuples of one item of each; the last changes first.
PyValue product(E& e, C& c) {
    std::vector<std::vector<PyValue>> pools;
    pools.reserve(c.arguments.size());
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        pools.push_back(e.containers.iterate(c.required(i, "")));
    }
    const auto given = c.keyword("repeat");
    const std::int64_t times = given ? e.convert.integer(*given, "repeat") : 1;
    c.finish();
    if (times < 0 || times > 64 || times * static_cast<std::int64_t>(pools.size()) > 64) {
        fail("product() of more than 64 lists");
    }
    std::vector<std::vector<PyValue>> rows(1);
    for (std::int64_t round = 0; round < times; ++round) {
        for (const std::vector<PyValue>& pool : pools) {
            std::vector<std::vector<PyValue>> longer;
            for (const std::vector<PyValue>& row : rows) {
                for (const PyValue item : pool) {
                    e.heap.charge(static_cast<std::int64_t>(row.size()) + 1);
                    longer.push_back(row);
                    longer.back().push_back(item);
                }
            }
            rows = std::move(longer);
        }
    }
    std::vector<PyValue> made;
    made.reserve(rows.size());
    for (std::vector<PyValue>& row : rows) {
        made.emplace_back(e.heap.tuple(std::move(row)));
    }
    return e.heap.list(std::move(made));
}

/// Two different places of a list, or r of them.
PyValue combinations(E& e, C& c) {
    const std::vector<PyValue> items = e.containers.iterate(c.required(0, "iterable"));
    const std::int64_t size = e.convert.integer(c.required(1, "r"), "the number of items");
    c.finish();
    const auto extent = static_cast<std::int64_t>(items.size());
    std::vector<PyValue> made;
    if (size < 0 || size > extent) {
        return e.heap.list({});
    }
    std::vector<std::int64_t> at(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
        at[static_cast<std::size_t>(i)] = i;
    }
    for (;;) {
        std::vector<PyValue> row;
        row.reserve(at.size());
        for (const std::int64_t place : at) {
            row.push_back(items[static_cast<std::size_t>(place)]);
        }
        e.heap.charge(size + 1);
        made.emplace_back(e.heap.tuple(std::move(row)));
        std::int64_t moved = size - 1;
        while (moved >= 0 && at[static_cast<std::size_t>(moved)] == extent - size + moved) {
            --moved;
        }
        if (moved < 0) {
            return e.heap.list(std::move(made));
        }
        std::int64_t next = ++at[static_cast<std::size_t>(moved)];
        for (std::int64_t i = moved + 1; i < size; ++i) {
            at[static_cast<std::size_t>(i)] = ++next;
        }
    }
}

template <PyOperator Op> PyValue two(E& e, C& c) {
    const PyValue a = c.required(0, "a");
    const PyValue b = c.required(1, "b");
    c.finish();
    return e.operators.operate(Op, a, b);
}

constexpr std::array kIteration = std::to_array<BuiltinEntry>({
    {"itertools.accumulate", accumulate},
    {"itertools.chain", chain},
    {"itertools.chain.from_iterable", chainOf},
    {"itertools.repeat", repeat},
    {"itertools.product", product},
    {"itertools.combinations", combinations},
    {"operator.and_", two<PyOperator::And>},
    {"operator.or_", two<PyOperator::Or>},
    {"operator.xor", two<PyOperator::Xor>},
    {"operator.add", two<PyOperator::Add>},
    {"operator.sub", two<PyOperator::Sub>},
    {"operator.mul", two<PyOperator::Mul>},
    {"operator.truediv", two<PyOperator::Div>},
    {"operator.floordiv", two<PyOperator::FloorDiv>},
    {"operator.mod", two<PyOperator::Mod>},
    {"operator.lt", two<PyOperator::Lt>},
    {"operator.le", two<PyOperator::Le>},
    {"operator.gt", two<PyOperator::Gt>},
    {"operator.ge", two<PyOperator::Ge>},
    {"operator.eq", two<PyOperator::Eq>},
    {"operator.ne", two<PyOperator::Ne>},
});

} // namespace

std::span<const BuiltinEntry> iterationBuiltins() {
    return kIteration;
}

} // namespace vitrine::engine
