// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Operators of the text's own classes: a + b calls __add__ or __radd__.
#include <algorithm>
#include <array>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

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

std::optional<ModValue> ModEvaluator::special(ModValue object, std::string_view name,
                                              const std::vector<ModValue>& arguments) {
    const auto* const instance = object.as<ModInstance>();
    if (instance == nullptr || instance->type == nullptr) {
        return std::nullopt;
    }
    const auto found = findInClass(*instance->type, name, 0);
    return found ? std::optional(call(boundMember(*found, object), arguments)) : std::nullopt;
}

std::optional<ModValue> ModEvaluator::overloaded(PyOperator op, ModValue a, ModValue b) {
    const auto* const overload =
        std::find_if(kOverloads.begin(), kOverloads.end(), [op](const Overload& item) { return item.op == op; });
    if (overload == kOverloads.end()) {
        return std::nullopt;
    }
    const auto made = special(a, overload->name, {b});
    return made ? made : special(b, overload->reflected, {a});
}

} // namespace vitrine::engine
