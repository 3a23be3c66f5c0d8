// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/operators.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/evaluate/containers.h"

namespace vitrine::engine {

using kernels::ProgramOp;

namespace {

struct Overload {
    PyOperator op;
    std::string_view name, reflected;
};
constexpr std::array<Overload, 19> kOverloads = {{{PyOperator::Add, "__add__", "__radd__"},
                                                  {PyOperator::Sub, "__sub__", "__rsub__"},
                                                  {PyOperator::Mul, "__mul__", "__rmul__"},
                                                  {PyOperator::Div, "__truediv__", "__rtruediv__"},
                                                  {PyOperator::FloorDiv, "__floordiv__", "__rfloordiv__"},
                                                  {PyOperator::Mod, "__mod__", "__rmod__"},
                                                  {PyOperator::Pow, "__pow__", "__rpow__"},
                                                  {PyOperator::MatMul, "__matmul__", "__rmatmul__"},
                                                  {PyOperator::And, "__and__", "__rand__"},
                                                  {PyOperator::Or, "__or__", "__ror__"},
                                                  {PyOperator::Xor, "__xor__", "__rxor__"},
                                                  {PyOperator::ShiftLeft, "__lshift__", "__rlshift__"},
                                                  {PyOperator::ShiftRight, "__rshift__", "__rrshift__"},
                                                  {PyOperator::Lt, "__lt__", "__gt__"},
                                                  {PyOperator::Le, "__le__", "__ge__"},
                                                  {PyOperator::Gt, "__gt__", "__lt__"},
                                                  {PyOperator::Ge, "__ge__", "__le__"},
                                                  {PyOperator::Eq, "__eq__", "__eq__"},
                                                  {PyOperator::Ne, "__ne__", "__ne__"}}};

} // namespace

PyValue PyOperators::operate(PyOperator op, PyValue a, PyValue b) {
    struct Meaning {
        PyOperator python;
        ProgramOp op;
        bool swapped;
    };
    static constexpr std::array<Meaning, 18> kMeanings = {{{PyOperator::Add, ProgramOp::Add, false},
                                                           {PyOperator::Sub, ProgramOp::Sub, false},
                                                           {PyOperator::Mul, ProgramOp::Mul, false},
                                                           {PyOperator::Div, ProgramOp::Div, false},
                                                           {PyOperator::FloorDiv, ProgramOp::FloorDiv, false},
                                                           {PyOperator::Mod, ProgramOp::Mod, false},
                                                           {PyOperator::Pow, ProgramOp::Pow, false},
                                                           {PyOperator::And, ProgramOp::And, false},
                                                           {PyOperator::Or, ProgramOp::Or, false},
                                                           {PyOperator::Xor, ProgramOp::Xor, false},
                                                           {PyOperator::ShiftLeft, ProgramOp::ShiftLeft, false},
                                                           {PyOperator::ShiftRight, ProgramOp::ShiftRight, false},
                                                           {PyOperator::Lt, ProgramOp::Lt, false},
                                                           {PyOperator::Le, ProgramOp::Le, false},
                                                           {PyOperator::Gt, ProgramOp::Lt, true},
                                                           {PyOperator::Ge, ProgramOp::Le, true},
                                                           {PyOperator::Eq, ProgramOp::Eq, false},
                                                           {PyOperator::Ne, ProgramOp::Ne, false}}};
    const auto plain = [](PyValue value) {
        return value.isNumber() || value.as<PySlider>() != nullptr || isTensorLike(value);
    };
    if (!plain(a) || !plain(b)) {
        return operateObjects(op, a, b);
    }
    const auto* const meaning =
        std::find_if(kMeanings.begin(), kMeanings.end(), [op](const Meaning& item) { return item.python == op; });
    if (meaning == kMeanings.end()) {
        return caller_.callBuiltin("torch.matmul", {a, b});
    }
    return meaning->swapped ? elements_.binary(meaning->op, b, a) : elements_.binary(meaning->op, a, b);
}

// A list or tuple that is repeated.
PyValue PyOperators::repeated(const PySequence& sequence, PyValue count) {
    const std::int64_t times = std::max<std::int64_t>(0, convert_.integer(count, "the number of repetitions"));
    const auto length = static_cast<std::int64_t>(sequence.items.size());
    if (length > 0 && times > kMaxElements / length) {
        evaluation_.heap.charge(kMaxElements + 1);
    }
    std::vector<PyValue> items;
    evaluation_.heap.charge(length * times);
    for (std::int64_t i = 0; i < times && length > 0; ++i) {
        items.insert(items.end(), sequence.items.begin(), sequence.items.end());
    }
    return sequence.kind == PyKind::List ? evaluation_.heap.list(std::move(items))
                                         : evaluation_.heap.tuple(std::move(items));
}

// Union, intersection and difference of two sets.
PyValue PyOperators::combinedSets(PyOperator op, const PySequence& left, const PySequence& right) {
    auto* const made = evaluation_.heap.make<PySequence>(PyKind::Set);
    const auto has = [this](const PySequence& items, PyValue value) {
        return std::any_of(items.items.begin(), items.items.end(), [&](PyValue item) {
            evaluation_.step();
            return equal(item, value);
        });
    };
    for (const PyValue item : left.items) {
        if (op == PyOperator::Or || has(right, item) == (op == PyOperator::And)) {
            made->items.push_back(item);
        }
    }
    for (const PyValue item : right.items) {
        if (op == PyOperator::Or && !has(left, item)) {
            made->items.push_back(item);
        }
    }
    evaluation_.heap.charge(static_cast<std::int64_t>(made->items.size()));
    return made;
}

// A new dict with the entries of both; those of `b` win.
PyValue PyOperators::joinedDicts(PyValue a, PyValue b) {
    PyCall more;
    more.arguments = {caller_.callBuiltin("dict.copy", {a}), b};
    static_cast<void>(caller_.callBuiltin("dict.update", more));
    return more.arguments[0];
}

// Comparison of two strings, lists or tuples; none for other operators and values.
std::optional<PyValue> PyOperators::ordered(PyOperator op, PyValue a, PyValue b) {
    if (op < PyOperator::Lt || op > PyOperator::Ge) {
        return std::nullopt;
    }
    const auto* const left = a.as<PySequence>();
    const auto* const right = b.as<PySequence>();
    if (left != nullptr && right != nullptr && left->kind == right->kind && left->kind != PyKind::Set) {
        const bool swapped = op == PyOperator::Gt || op == PyOperator::Le;
        const bool below = swapped ? less(b, a) : less(a, b);
        return PyValue::boolean(below == (op == PyOperator::Lt || op == PyOperator::Gt));
    }
    const auto* const text = a.as<PyString>();
    const auto* const tail = b.as<PyString>();
    if (text == nullptr || tail == nullptr) {
        return std::nullopt;
    }
    const int order = text->text.compare(tail->text);
    return PyValue::boolean(op == PyOperator::Lt   ? order < 0
                            : op == PyOperator::Le ? order <= 0
                            : op == PyOperator::Gt ? order > 0
                                                   : order >= 0);
}

// Strings, lists and tuples.
PyValue PyOperators::operateObjects(PyOperator op, PyValue a, PyValue b) {
    if (const auto own = overloaded(op, a, b)) {
        return *own;
    }
    const auto* const ignored = a.as<PyIgnored>() != nullptr ? a.as<PyIgnored>() : b.as<PyIgnored>();
    if (op == PyOperator::Eq || op == PyOperator::Ne) {
        if (ignored != nullptr && (a.as<PyIgnored>() == nullptr || b.as<PyIgnored>() == nullptr)) {
            evaluation_.note(fmt::format("'{}' is not known here and counts as equal to nothing", ignored->what));
        }
        return PyValue::boolean(equal(a, b) == (op == PyOperator::Eq));
    }
    const auto* const left = a.as<PySequence>();
    const auto* const right = b.as<PySequence>();
    if (op == PyOperator::Add && left != nullptr && right != nullptr && left->kind == right->kind) {
        std::vector<PyValue> items = left->items;
        items.insert(items.end(), right->items.begin(), right->items.end());
        return left->kind == PyKind::List ? evaluation_.heap.list(std::move(items))
                                          : evaluation_.heap.tuple(std::move(items));
    }
    const auto* const text = a.as<PyString>();
    const auto* const tail = b.as<PyString>();
    if (op == PyOperator::Add && text != nullptr && tail != nullptr) {
        return evaluation_.heap.string(text->text + tail->text);
    }
    if (op == PyOperator::Mod && text != nullptr) {
        return caller_.callBuiltin("str.__mod__", {a, b});
    }
    if (op == PyOperator::Mul && (left != nullptr || right != nullptr)) {
        return repeated(left != nullptr ? *left : *right, left != nullptr ? b : a);
    }
    const auto* const entries = a.as<PyDict>();
    if (op == PyOperator::Or && entries != nullptr && b.as<PyDict>() != nullptr) {
        return joinedDicts(a, b);
    }
    const bool sets = left != nullptr && right != nullptr && left->kind == PyKind::Set && right->kind == PyKind::Set;
    if (sets && (op == PyOperator::Or || op == PyOperator::And || op == PyOperator::Sub)) {
        return combinedSets(op, *left, *right);
    }
    if (const auto made = ordered(op, a, b)) {
        return *made;
    }
    if (ignored != nullptr) {
        failNotKnown(fmt::format("'{}' is not known here, so this operator has no result", ignored->what));
    }
    fail(fmt::format("this operator does not take {} and {}", pyTypeName(a), pyTypeName(b)));
}

std::optional<PyValue> PyOperators::overloaded(PyOperator op, PyValue a, PyValue b) {
    const auto* const overload =
        std::find_if(kOverloads.begin(), kOverloads.end(), [op](const Overload& item) { return item.op == op; });
    if (overload == kOverloads.end()) {
        return std::nullopt;
    }
    const auto made = classes_.special(a, overload->name, {b});
    return made ? made : classes_.special(b, overload->reflected, {a});
}

bool PyOperators::less(PyValue a, PyValue b) {
    const auto* const items = a.as<PySequence>();
    const auto* const others = b.as<PySequence>();
    if (items == nullptr || others == nullptr || items->kind != others->kind || items->kind == PyKind::Set) {
        return convert_.truth(operate(PyOperator::Lt, a, b));
    }
    const EvaluationDepth depth(evaluation_);
    for (std::size_t i = 0; i < std::min(items->items.size(), others->items.size()); ++i) {
        evaluation_.step();
        if (!equal(items->items[i], others->items[i])) {
            return less(items->items[i], others->items[i]);
        }
    }
    return items->items.size() < others->items.size();
}

bool PyOperators::equal(PyValue a, PyValue b) {
    a = convert_.concrete(a);
    b = convert_.concrete(b);
    if (a.isNumber() && b.isNumber()) {
        return a.number() == b.number();
    }
    if (a.kind() != b.kind() || a.kind() != PyValue::Kind::Object) {
        return a.kind() == b.kind() && !a.isSymbol();
    }
    const auto* const left = a.as<PyString>();
    const auto* const right = b.as<PyString>();
    if (left != nullptr && right != nullptr) {
        return left->text == right->text;
    }
    const auto* const x = a.as<PyDtype>();
    const auto* const y = b.as<PyDtype>();
    if (x != nullptr && y != nullptr) {
        return x->dtype == y->dtype;
    }
    if (a.as<PyIgnored>() != nullptr && b.as<PyIgnored>() != nullptr) {
        return true; // devices: there is one
    }
    const auto* const items = a.as<PySequence>();
    const auto* const others = b.as<PySequence>();
    if (items != nullptr && others != nullptr && items->kind == others->kind && items != others) {
        const EvaluationDepth depth(evaluation_);
        if (items->kind == PyKind::Set) {
            return items->items.size() == others->items.size() &&
                   std::all_of(items->items.begin(), items->items.end(),
                               [&](PyValue item) { return convert_.truth(contains(b, item)); });
        }
        return std::equal(items->items.begin(), items->items.end(), others->items.begin(), others->items.end(),
                          [this](PyValue p, PyValue q) {
                              evaluation_.step();
                              return equal(p, q);
                          });
    }
    return a.object() == b.object();
}

PyValue PyOperators::contains(PyValue container, PyValue item) {
    if (const auto* const string = container.as<PyString>()) {
        return PyValue::boolean(string->text.find(convert_.text(item, "what is searched in a string")) !=
                                std::string::npos);
    }
    if (const auto made = classes_.special(container, "__contains__", {item})) {
        return *made;
    }
    const auto* const dict = container.as<PyDict>();
    std::vector<PyValue> items;
    if (dict != nullptr) {
        for (const auto& [key, value] : dict->entries) {
            items.push_back(key);
        }
    } else {
        items = containers_.iterate(container);
    }
    const bool symbolic = isTensorLike(item);
    PyValue result = PyValue::boolean(false);
    for (const PyValue other : items) {
        evaluation_.step();
        if (symbolic || isTensorLike(other)) {
            result = elements_.binary(ProgramOp::Or, result, elements_.binary(ProgramOp::Eq, item, other));
        } else if (equal(item, other)) {
            return PyValue::boolean(true);
        }
    }
    return result;
}

} // namespace vitrine::engine
