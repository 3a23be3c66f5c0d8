// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// One operation on numbers, constant tensors, symbols and small arrays of symbols, whichever they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"
#include "engine/language/evaluate/scope.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

ProgramConstant constantOf(ModValue value) {
    switch (value.kind()) {
    case ModValue::Kind::Bool:
        return kernels::boolConstant(value.integer() != 0);
    case ModValue::Kind::Int:
        return kernels::intConstant(ProgramType::Int64, value.integer());
    default:
        return kernels::floatConstant(value.real());
    }
}

ModValue numberOf(const ProgramConstant& constant) {
    switch (constant.type) {
    case ProgramType::Bool:
        return ModValue::boolean(constant.integer != 0);
    case ProgramType::Float:
        return ModValue::real(constant.real);
    default:
        return ModValue::integer(constant.integer);
    }
}

DType dtypeOfType(ProgramType type) {
    switch (type) {
    case ProgramType::Bool:
        return DType::Bool;
    case ProgramType::Int32:
        return DType::I32;
    case ProgramType::Int64:
        return DType::I64;
    case ProgramType::Float:
        break;
    }
    return DType::F32;
}

} // namespace

// Constants.

ModValue ModEvaluator::concrete(ModValue value) {
    if (const auto* const slider = value.as<ModSlider>()) {
        note("this number shapes the program: moving its slider makes another program");
        return slider->value;
    }
    return value;
}

ModOperand ModEvaluator::operand(ModValue value) {
    if (const auto* const tensor = value.as<ModTensor>()) {
        return {tensor, {}};
    }
    value = concrete(value);
    if (!value.isNumber()) {
        fail(fmt::format("{} where a number or a tensor is needed", modTypeName(value)));
    }
    return {nullptr, constantOf(value)};
}

ModValue ModEvaluator::sliderResult(ModValue number, ModNode node) {
    auto* const made = heap_.make<ModSlider>();
    made->value = number;
    made->node = node;
    return made;
}

// Element-wise operations.

ModValue ModEvaluator::binary(ProgramOp op, ModValue a, ModValue b) {
    const std::array<ModValue, 2> both = {a, b};
    const bool many = needsArray(both);
    if (many || needsSymbol(both)) {
        const DType narrow = narrowOf(both);
        const auto make = [&](std::span<const ModNode> nodes) {
            return fitted(op, narrow, builder_.binary(op, nodes[0], nodes[1]));
        };
        if (many) {
            return marked(narrow, arrays(both, make));
        }
        const std::array<ModNode, 2> nodes = {node(a), node(b)};
        return marked(narrow, ModValue::symbol(make(nodes)));
    }
    if (a.as<ModTensor>() != nullptr || b.as<ModTensor>() != nullptr) {
        return elementwise(heap_, op, operand(a), operand(b));
    }
    const auto* const left = a.as<ModSlider>();
    const auto* const right = b.as<ModSlider>();
    if (left != nullptr || right != nullptr) {
        const ModValue x = left != nullptr ? left->value : a;
        const ModValue y = right != nullptr ? right->value : b;
        if (x.isNumber() && y.isNumber()) {
            const ModValue number = numberOf(kernels::foldPython(op, constantOf(x), constantOf(y)));
            return sliderResult(number, builder_.binary(op, node(a), node(b)));
        }
    }
    if (!a.isNumber() || !b.isNumber()) {
        fail(fmt::format("this operation does not take {} and {}", modTypeName(a), modTypeName(b)));
    }
    return numberOf(kernels::foldPython(op, constantOf(a), constantOf(b)));
}

ModValue ModEvaluator::unary(ProgramOp op, ModValue a) {
    const std::array<ModValue, 1> one = {a};
    const bool many = needsArray(one);
    if (many || needsSymbol(one)) {
        const DType narrow = narrowOf(one);
        const auto make = [&](std::span<const ModNode> nodes) {
            return fitted(op, narrow, builder_.unary(op, nodes[0]));
        };
        if (many) {
            return marked(narrow, arrays(one, make));
        }
        const std::array<ModNode, 1> nodes = {node(a)};
        return marked(narrow, ModValue::symbol(make(nodes)));
    }
    if (const auto* const tensor = a.as<ModTensor>()) {
        return elementwise(heap_, op, *tensor);
    }
    if (const auto* const slider = a.as<ModSlider>()) {
        return sliderResult(unary(op, slider->value), builder_.unary(op, slider->node));
    }
    if (!a.isNumber()) {
        fail(fmt::format("this operation does not take {}", modTypeName(a)));
    }
    ProgramConstant value = constantOf(a);
    const bool keeps = op == ProgramOp::Neg || op == ProgramOp::Abs || op == ProgramOp::Sign || op == ProgramOp::Not;
    if (op == ProgramOp::Not && value.type == ProgramType::Float) {
        fail("~ needs a boolean or an integer, not a float");
    }
    if (!keeps) {
        value = kernels::foldCast(ProgramType::Float, value);
    } else if (value.type == ProgramType::Bool) {
        value = kernels::foldCast(ProgramType::Int64, value); // ~True is -2 in Python, -True is -1
    }
    return numberOf(kernels::foldUnary(op, value));
}

ModValue ModEvaluator::select(ModValue condition, ModValue a, ModValue b) {
    const std::array<ModValue, 3> all = {condition, a, b};
    const std::array<ModValue, 2> both = {a, b};
    if (needsArray(all)) {
        return marked(narrowOf(both), arrays(all, [&](std::span<const ModNode> nodes) {
                          return builder_.select(nodes[0], nodes[1], nodes[2]);
                      }));
    }
    if (needsSymbol(all)) {
        const ModNode which = node(condition);
        const ModNode yes = node(a);
        const ModNode no = node(b);
        return marked(narrowOf(both), ModValue::symbol(builder_.select(which, yes, no)));
    }
    if (const auto* const tensor = condition.as<ModTensor>()) {
        return whereTensor(heap_, *tensor, operand(a), operand(b));
    }
    const bool which = truth(condition);
    if (a.as<ModTensor>() != nullptr || b.as<ModTensor>() != nullptr) {
        ModTensor* const constant = scalarTensor(heap_, DType::Bool, kernels::boolConstant(which));
        constant->literal = true;
        return whereTensor(heap_, *constant, operand(a), operand(b));
    }
    return which ? a : b;
}

ModValue ModEvaluator::cast(DType dtype, ModValue value) {
    const std::array<ModValue, 1> one = {value};
    const ProgramType type = programTypeOf(dtype);
    const bool many = needsArray(one);
    if (many || needsSymbol(one)) {
        const DType narrow = narrowed(dtype);
        const bool changes = narrow != DType::None && dtypeOf(value) != dtype && dtypeOf(value) != DType::Bool;
        const auto make = [&](std::span<const ModNode> nodes) {
            const ModNode made = builder_.cast(type, nodes[0]);
            return changes ? wrapped(narrow, made) : made;
        };
        if (many) {
            const ModValue made = arrays(one, make);
            if (auto* const symbols = made.as<ModArray>()) {
                symbols->narrow = narrow;
            }
            return made;
        }
        const std::array<ModNode, 1> nodes = {node(value)};
        return ModValue::symbol(make(nodes), narrow);
    }
    if (const auto* const tensor = value.as<ModTensor>()) {
        return tensor->dtype == dtype ? value : ModValue(castTensor(heap_, *tensor, dtype));
    }
    if (const auto* const slider = value.as<ModSlider>()) {
        return sliderResult(cast(dtype, slider->value), builder_.cast(type, slider->node));
    }
    if (!value.isNumber()) {
        fail(fmt::format("{} cannot be converted to a number", modTypeName(value)));
    }
    const ProgramType wide = type == ProgramType::Int32 ? ProgramType::Int64 : type;
    return numberOf(kernels::foldCast(wide, constantOf(value)));
}

ModDims ModEvaluator::dimsOf(ModValue value) {
    if (const auto* const tensor = value.as<ModTensor>()) {
        return tensor->dims;
    }
    if (const auto* const row = value.as<ModRow>()) {
        return {row->tensor->dims.begin() + static_cast<std::ptrdiff_t>(row->indices.size()), row->tensor->dims.end()};
    }
    const auto* const symbols = value.as<ModArray>();
    return symbols != nullptr ? symbols->dims : ModDims{};
}

DType ModEvaluator::dtypeOf(ModValue value) {
    if (const auto* const tensor = value.as<ModTensor>()) {
        return tensor->dtype;
    }
    if (const auto* const row = value.as<ModRow>()) {
        return row->tensor->dtype;
    }
    if (const auto* const symbols = value.as<ModArray>()) {
        return symbols->narrow != DType::None ? symbols->narrow
               : symbols->elements.empty()    ? DType::F32
                                              : dtypeOfType(builder_.type(symbols->elements[0]));
    }
    if (value.isSymbol() && value.narrow() != DType::None) {
        return value.narrow();
    }
    return dtypeOfType(builder_.type(node(value)));
}

// Python's operators.

ModValue ModEvaluator::operate(PyOperator op, ModValue a, ModValue b) {
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
    const auto plain = [this](ModValue value) {
        return value.isNumber() || value.as<ModSlider>() != nullptr || isTensorLike(value);
    };
    if (!plain(a) || !plain(b)) {
        return operateObjects(op, a, b);
    }
    const auto* const meaning =
        std::find_if(kMeanings.begin(), kMeanings.end(), [op](const Meaning& item) { return item.python == op; });
    if (meaning == kMeanings.end()) {
        ModCall product;
        product.arguments = {a, b};
        return findBuiltin("torch.matmul")->call(*this, product);
    }
    return meaning->swapped ? binary(meaning->op, b, a) : binary(meaning->op, a, b);
}

// A list or tuple that is repeated.
ModValue ModEvaluator::repeated(const ModSequence& sequence, ModValue count) {
    const std::int64_t times = std::max<std::int64_t>(0, integer(count, "the number of repetitions"));
    const auto length = static_cast<std::int64_t>(sequence.items.size());
    if (length > 0 && times > kMaxModConstants / length) {
        heap_.charge(kMaxModConstants + 1);
    }
    std::vector<ModValue> items;
    heap_.charge(length * times);
    for (std::int64_t i = 0; i < times && length > 0; ++i) {
        items.insert(items.end(), sequence.items.begin(), sequence.items.end());
    }
    return sequence.kind == ModKind::List ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
}

// Union, intersection and difference of two sets.
ModValue ModEvaluator::combinedSets(PyOperator op, const ModSequence& left, const ModSequence& right) {
    auto* const made = heap_.make<ModSequence>(ModKind::Set);
    const auto has = [this](const ModSequence& items, ModValue value) {
        return std::any_of(items.items.begin(), items.items.end(), [&](ModValue item) {
            step();
            return equal(item, value);
        });
    };
    for (const ModValue item : left.items) {
        if (op == PyOperator::Or || has(right, item) == (op == PyOperator::And)) {
            made->items.push_back(item);
        }
    }
    for (const ModValue item : right.items) {
        if (op == PyOperator::Or && !has(left, item)) {
            made->items.push_back(item);
        }
    }
    heap_.charge(static_cast<std::int64_t>(made->items.size()));
    return made;
}

// Strings, lists and tuples.
ModValue ModEvaluator::operateObjects(PyOperator op, ModValue a, ModValue b) {
    if (const auto own = overloaded(op, a, b)) {
        return *own;
    }
    if (op == PyOperator::Eq || op == PyOperator::Ne) {
        return ModValue::boolean(equal(a, b) == (op == PyOperator::Eq));
    }
    const auto* const left = a.as<ModSequence>();
    const auto* const right = b.as<ModSequence>();
    if (op == PyOperator::Add && left != nullptr && right != nullptr && left->kind == right->kind) {
        std::vector<ModValue> items = left->items;
        items.insert(items.end(), right->items.begin(), right->items.end());
        return left->kind == ModKind::List ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
    }
    const auto* const text = a.as<ModString>();
    const auto* const tail = b.as<ModString>();
    if (op == PyOperator::Add && text != nullptr && tail != nullptr) {
        return heap_.string(text->text + tail->text);
    }
    if (op == PyOperator::Mod && text != nullptr) {
        ModCall format;
        format.arguments = {a, b};
        return findBuiltin("str.__mod__")->call(*this, format);
    }
    if (op == PyOperator::Mul && (left != nullptr || right != nullptr)) {
        return repeated(left != nullptr ? *left : *right, left != nullptr ? b : a);
    }
    const auto* const entries = a.as<ModDict>();
    if (op == PyOperator::Or && entries != nullptr && b.as<ModDict>() != nullptr) {
        ModCall copy;
        copy.arguments = {a};
        ModCall more;
        more.arguments = {findBuiltin("dict.copy")->call(*this, copy), b};
        static_cast<void>(findBuiltin("dict.update")->call(*this, more));
        return more.arguments[0];
    }
    const bool sets = left != nullptr && right != nullptr && left->kind == ModKind::Set && right->kind == ModKind::Set;
    if (sets && (op == PyOperator::Or || op == PyOperator::And || op == PyOperator::Sub)) {
        return combinedSets(op, *left, *right);
    }
    const bool ordered = left != nullptr && right != nullptr && left->kind == right->kind && left->kind != ModKind::Set;
    if (op >= PyOperator::Lt && op <= PyOperator::Ge && ordered) {
        const bool swapped = op == PyOperator::Gt || op == PyOperator::Le;
        const bool below = swapped ? less(b, a) : less(a, b);
        return ModValue::boolean(below == (op == PyOperator::Lt || op == PyOperator::Gt));
    }
    if (op >= PyOperator::Lt && op <= PyOperator::Ge && text != nullptr && tail != nullptr) {
        const int order = text->text.compare(tail->text);
        return ModValue::boolean(op == PyOperator::Lt   ? order < 0
                                 : op == PyOperator::Le ? order <= 0
                                 : op == PyOperator::Gt ? order > 0
                                                        : order >= 0);
    }
    fail(fmt::format("this operator does not take {} and {}", modTypeName(a), modTypeName(b)));
}

ModValue ModEvaluator::logicalNot(ModValue value) {
    const std::array<ModValue, 1> one = {value};
    if (needsSymbol(one)) {
        return ModValue::symbol(builder_.unary(ProgramOp::Not, builder_.cast(ProgramType::Bool, node(value))));
    }
    return ModValue::boolean(!truth(value));
}

bool ModEvaluator::less(ModValue a, ModValue b) {
    const auto* const items = a.as<ModSequence>();
    const auto* const others = b.as<ModSequence>();
    if (items == nullptr || others == nullptr || items->kind != others->kind || items->kind == ModKind::Set) {
        return truth(operate(PyOperator::Lt, a, b));
    }
    const Depth depth(*this);
    for (std::size_t i = 0; i < std::min(items->items.size(), others->items.size()); ++i) {
        step();
        if (!equal(items->items[i], others->items[i])) {
            return less(items->items[i], others->items[i]);
        }
    }
    return items->items.size() < others->items.size();
}

bool ModEvaluator::equal(ModValue a, ModValue b) {
    a = concrete(a);
    b = concrete(b);
    if (a.isNumber() && b.isNumber()) {
        return a.number() == b.number();
    }
    if (a.kind() != b.kind() || a.kind() != ModValue::Kind::Object) {
        return a.kind() == b.kind() && !a.isSymbol();
    }
    const auto* const left = a.as<ModString>();
    const auto* const right = b.as<ModString>();
    if (left != nullptr && right != nullptr) {
        return left->text == right->text;
    }
    const auto* const x = a.as<ModDtype>();
    const auto* const y = b.as<ModDtype>();
    if (x != nullptr && y != nullptr) {
        return x->dtype == y->dtype;
    }
    if (a.as<ModIgnored>() != nullptr && b.as<ModIgnored>() != nullptr) {
        return true; // devices: there is one
    }
    const auto* const items = a.as<ModSequence>();
    const auto* const others = b.as<ModSequence>();
    if (items != nullptr && others != nullptr && items->kind == others->kind && items != others) {
        const Depth depth(*this);
        if (items->kind == ModKind::Set) {
            return items->items.size() == others->items.size() &&
                   std::all_of(items->items.begin(), items->items.end(),
                               [&](ModValue item) { return truth(contains(b, item)); });
        }
        return std::equal(items->items.begin(), items->items.end(), others->items.begin(), others->items.end(),
                          [this](ModValue p, ModValue q) {
                              step();
                              return equal(p, q);
                          });
    }
    return a.object() == b.object();
}

} // namespace vitrine::engine
